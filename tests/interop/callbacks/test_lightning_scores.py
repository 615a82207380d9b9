"""Scores in real fits of Lightning. Needs the extra [lightning]."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from multimodal_eval import compute
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.interop.callbacks.lightning import lightning_scores
from multimodal_eval.interop.early_stopping import lightning_early_stopping
from multimodal_eval.interop.trackers.content import flat_values

torch = pytest.importorskip("torch", reason="the extra [lightning] is not installed")
lightning = pytest.importorskip("lightning.pytorch", reason="the extra [lightning] is not installed")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

GOLD = ["a dog", "a cat", "a red bird"]
# answers of three validations: 1, 3 and 2 of 3 right
ANSWERS = [["a dog", "no", "no"], GOLD, ["a dog", "a cat", "no"]]


class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self, with_ids=False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.with_ids = with_ids

    def training_step(self, batch, index):
        return self.weight.sum()

    def validation_step(self, batch, index):
        rows = batch[0].tolist()
        answers = ANSWERS[self.current_epoch]
        rows_of_batch = {"predictions": [answers[row] for row in rows], "references": [GOLD[row] for row in rows]}
        return {**rows_of_batch, "id": rows, "loss": self.weight.sum()} if self.with_ids else rows_of_batch

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def loader():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(3)), batch_size=2)


class Loggers(lightning.loggers.Logger):  # type: ignore[misc, name-defined]
    name, version = "kept", "0"

    def __init__(self):
        super().__init__()
        self.logged = []

    def log_metrics(self, metrics, step=None):
        self.logged.append(metrics)

    def log_hyperparams(self, params, *args, **kwargs):
        pass


def fit(module, *callbacks, logger=False, folder, **settings):
    trainer = lightning.Trainer(
        max_epochs=3,
        callbacks=list(callbacks),
        logger=logger,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=folder,
        **settings,
    )
    trainer.fit(module, loader(), loader())
    return trainer


def expected(epoch):
    scores = compute(predictions=ANSWERS[epoch], references=GOLD, metrics=["exact_match", "wer"])
    return flat_values(scores, "val_")


@pytest.mark.parametrize("with_ids", [False, True])
def test_every_validation_is_scored_with_intervals(tmp_path, with_ids):
    logger = Loggers()
    fit(Module(with_ids), lightning_scores("exact_match", "wer"), logger=logger, folder=tmp_path)
    validations = [each for each in logger.logged if "val_exact_match" in each]
    for epoch, logged in enumerate(validations):
        for name, value in expected(epoch).items():
            assert logged[name] == pytest.approx(value, rel=1e-6), name  # Lightning stores 32 bits
    assert len(validations) == 3  # none for the check before training


def test_another_callback_may_monitor_a_score(tmp_path):
    stopping = lightning_early_stopping("val_exact_match", patience=1)
    trainer = fit(Module(), lightning_scores("exact_match"), stopping, folder=tmp_path)
    assert trainer.current_epoch == 3
    assert stopping.stopping.best_value == 1
    assert stopping.stopping.misses == 1


def test_a_step_that_returns_no_answers_is_named(tmp_path):
    class Silent(Module):
        def validation_step(self, batch, index):
            return None

    with pytest.raises(ConfigError, match="`validation_step` must return a dict with `predictions`"):
        fit(Silent(), lightning_scores("exact_match"), folder=tmp_path, num_sanity_val_steps=0)


def test_two_processes_score_every_row_once(tmp_path):
    # Three rows on two processes: the sampler repeats one of them.
    script = Path(__file__).with_name("two_processes.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(script), str(tmp_path / "values.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    values = json.loads((tmp_path / "values.json").read_text())
    scores = compute(predictions=["a dog", "no", "no"], references=GOLD, metrics=["exact_match", "wer"])
    assert values == pytest.approx(flat_values(scores, "val_"), rel=1e-6)  # Lightning stores 32 bits
