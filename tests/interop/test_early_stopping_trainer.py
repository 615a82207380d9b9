"""Early stopping in real runs of the Trainer: a tiny BERT from scratch, no downloads. Needs the extra [trainer]."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import zlib
from math import isnan, nan
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import multimodal_eval
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.interop.early_stopping import monitored, trainer_compute_metrics, trainer_early_stopping

EXAMPLES = Path(__file__).parents[2] / "examples"
ANSWERS = runpy.run_path(str(EXAMPLES / "evasion_answers.py"))
LABELS = list(ANSWERS["WAYS"])


def evaluated(predictions, label_ids=None):
    """The essential part of what the Trainer passes on."""
    return SimpleNamespace(predictions=predictions, label_ids=label_ids)


LOGITS = np.eye(9, dtype=np.float32)[[0, 4, 2]]  # Explicit, Dodging, General


def test_the_key_is_the_same_with_and_without_annotators():
    annotators = [["Explicit"], ["Dodging", "General"], [""]]
    value = pytest.approx(2 / 9)  # two classes right, of nine
    expected = {"monitored_f1": value, "evasion_f1_multiannotator": value}
    assert trainer_compute_metrics(LABELS, annotator_labels=annotators)(evaluated(LOGITS)) == expected
    strict = trainer_compute_metrics(LABELS, gold_labels=["Explicit", "General", "General"])(evaluated(LOGITS))
    value = pytest.approx((1 + 2 / 3) / 9)  # Explicit 1, General 2 * 1 / (2 + 1)
    assert strict == {"monitored_f1": value, "evasion_f1_strict": value}


def test_the_labels_of_the_evaluation_set_are_the_gold_labels():
    compute_metrics = trainer_compute_metrics(LABELS)
    with_an_unlabelled_row = evaluated(LOGITS, np.array([0, -100, 2]))
    assert compute_metrics(with_an_unlabelled_row)["evasion_f1_strict"] == pytest.approx(2 / 9)


def test_tuples_and_ids_are_accepted():
    # A model may return more than logits, and `preprocess_logits_for_metrics` may return class ids.
    golds = np.array([0, 2, 2])
    compute_metrics = trainer_compute_metrics(LABELS)
    expected = compute_metrics(evaluated(LOGITS, golds))
    assert compute_metrics(evaluated((LOGITS, np.zeros((3, 5))), golds)) == expected
    assert compute_metrics(evaluated(np.array([0, 4, 2]), golds)) == expected


def test_logits_that_are_nan_have_no_value():
    broken = LOGITS.copy()
    broken[1, 3] = nan
    assert isnan(trainer_compute_metrics(LABELS)(evaluated(broken, np.array([0, 4, 2])))["monitored_f1"])


@pytest.fixture(scope="module")
def transformers(torch_libraries):
    import transformers

    return transformers


def encoded(rows):
    import torch

    data = []
    for row in rows:
        words = [1 + zlib.crc32(word.strip(",").lower().encode()) % 255 for word in row.answer.split()]
        ids = torch.tensor(words[:12] + [0] * (12 - len(words)))
        data.append(
            {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor(LABELS.index(row.label))}
        )
    return data


@pytest.fixture
def make_trainer(transformers, tmp_path):
    def make(callback, *, annotated=True, **settings):
        transformers.set_seed(0)
        train, dev = ANSWERS["rows"](99, seed=1), ANSWERS["rows"](54, seed=2)
        shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        config = transformers.BertConfig(vocab_size=256, max_position_embeddings=12, num_labels=9, **shape)
        annotators = [row.annotators if annotated else ("", "", "") for row in dev]
        arguments = {
            "output_dir": str(tmp_path / "checkpoints"),
            "num_train_epochs": 40,
            "learning_rate": 1e-2,
            "per_device_train_batch_size": 33,
            "eval_strategy": "epoch",
            "save_strategy": "epoch",
            "metric_for_best_model": "monitored_f1",
            "load_best_model_at_end": True,
            "report_to": "none",
            "disable_tqdm": True,
            "use_cpu": True,
            "dataloader_pin_memory": False,
            **settings,
        }
        return transformers.Trainer(
            model=transformers.BertForSequenceClassification(config),
            args=transformers.TrainingArguments(**arguments),
            train_dataset=encoded(train),
            eval_dataset=encoded(dev),
            compute_metrics=trainer_compute_metrics(LABELS, [row.label for row in dev], annotators),
            callbacks=[callback],
        )

    return make


def values_of(trainer):
    return [entry["eval_monitored_f1"] for entry in trainer.state.log_history if "eval_monitored_f1" in entry]


@pytest.mark.parametrize("annotated", [True, False])
def test_training_stops_and_restores_the_best_weights(make_trainer, annotated):
    callback = trainer_early_stopping(patience=3)
    trainer = make_trainer(callback, annotated=annotated)
    trainer.train()
    values, stopping = values_of(trainer), callback.stopping
    best = int(np.argmax(values))
    assert len(values) == best + 1 + 3 < 40
    assert (stopping.best_value, stopping.best_step) == (values[best], 3 * (best + 1))  # three steps per epoch
    assert trainer.state.best_model_checkpoint.endswith(f"checkpoint-{stopping.best_step}")
    counts = stopping.state_dict()
    predicted = trainer.predict(trainer.eval_dataset).predictions.argmax(-1)
    dev = ANSWERS["rows"](54, seed=2)
    annotators = [row.annotators for row in dev] if annotated else None
    name, value = monitored([LABELS[index] for index in predicted], [row.label for row in dev], annotators)
    assert value == values[best] != values[-1]
    assert trainer.evaluate()[f"eval_{name}"] == value
    assert stopping.state_dict() == counts  # an evaluation after training does not count


def test_the_callback_of_transformers_accepts_the_value_too(make_trainer, transformers):
    trainer = make_trainer(transformers.EarlyStoppingCallback(early_stopping_patience=3))
    trainer.train()
    values = values_of(trainer)
    assert len(values) == int(np.argmax(values)) + 1 + 3 < 40


def test_diverging_training_stops_and_nan_is_never_the_best(make_trainer):
    import torch

    callback = trainer_early_stopping(patience=2)
    trainer = make_trainer(callback)
    torch.nn.init.constant_(trainer.model.classifier.weight, nan)
    with pytest.warns(UserWarning, match=r"the monitored value at step \d is nan"):
        trainer.train()
    assert (len(values_of(trainer)), callback.stopping.non_finite, callback.stopping.best_value) == (2, 2, None)


def test_resumed_training_continues_counting(make_trainer, tmp_path):
    whole = trainer_early_stopping(patience=3)
    trainer = make_trainer(whole)
    trainer.train()
    stopped = trainer.state.global_step
    checkpoint = tmp_path / "checkpoints" / f"checkpoint-{stopped - 3}"  # one epoch before the stop: two misses
    saved = json.loads((checkpoint / "trainer_state.json").read_text())["stateful_callbacks"]["TrainerEarlyStopping"]
    assert saved["attributes"]["saved"]["misses"] == 2
    resumed = make_trainer(trainer_early_stopping(patience=3), restore_callback_states_from_checkpoint=True)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert resumed.state.global_step == stopped
    assert resumed.state.best_model_checkpoint.endswith(f"checkpoint-{whole.stopping.best_step}")
    (callback,) = [callback for callback in resumed.callback_handler.callbacks if type(callback) is type(whole)]
    assert callback.stopping.state_dict() == whole.stopping.state_dict()


def test_settings_that_lose_the_best_weights_or_the_order_are_refused(make_trainer, transformers):
    with pytest.raises(ConfigError, match="load_best_model_at_end=True"):
        make_trainer(trainer_early_stopping(), load_best_model_at_end=False).train()
    old = hasattr(transformers.TrainingArguments, "group_by_length")  # before transformers 5
    grouped = {"group_by_length": True} if old else {"train_sampling_strategy": "group_by_length"}
    with pytest.raises(ConfigError, match="another order"):
        make_trainer(trainer_early_stopping(), **grouped).train()


def test_the_example_runs(transformers, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(multimodal_eval.__file__).parents[1])}
    command = [sys.executable, str(EXAMPLES / "early_stopping_trainer.py"), str(tmp_path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
    (step, best, value) = re.fullmatch(
        r"stopped at step (\d+); restored the model of step (\d+): (\S+)", lines[-1]
    ).groups()
    assert int(step) == int(best) + 4 * 7  # four evaluations, each after seven steps
    assert float(value) > 1 / 9  # it learned something
