"""Scores in real trainings with the Trainer of transformers. Needs the extra [trainer]."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from multimodal_eval import compute
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.interop.callbacks.trainer import add_trainer_scores, trainer_compute_scores
from multimodal_eval.interop.trackers.content import flat_values

torch = pytest.importorskip("torch", reason="the extra [trainer] is not installed")
transformers = pytest.importorskip("transformers", reason="the extra [trainer] is not installed")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

GOLD = ["a dog", "a cat"]
WORDS = ["<pad>", "<end>", "a", "dog", "cat", "runs"]


class Tokenizer:
    """Words by number; 0 and 1 are special."""

    pad_token_id, eos_token_id = 0, 1

    def batch_decode(self, rows, skip_special_tokens):
        assert skip_special_tokens
        return [" ".join(WORDS[index] for index in row if index > 1) for row in rows.tolist()]


class Processor:
    """As of a vision-language model: it has a tokenizer."""

    tokenizer = Tokenizer()
    batch_decode = tokenizer.batch_decode


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x, labels=None):
        return {"loss": ((self.weight - x) ** 2).mean(), "logits": x}


def trainer(folder, **settings):
    data = [{"x": torch.ones(1), "labels": torch.ones(1)} for _ in range(4)]
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=2,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **settings,
    )
    return transformers.Trainer(model=Model(), args=arguments, train_dataset=data, eval_dataset=data)


def test_generated_tokens_are_decoded_and_scored():
    predicted = np.array([[2, 3, 1, -100], [2, 4, 5, 1]])
    labels = np.array([[2, 3, -100], [2, 4, -100]])
    expected = flat_values(
        compute(predictions=["a dog", "a cat runs"], references=GOLD, metrics=["exact_match", "bleu"])
    )
    for tokenizer in (Tokenizer(), Processor()):
        function = trainer_compute_scores("exact_match", "bleu", tokenizer=tokenizer)
        for _ in range(2):  # each evaluation starts from nothing
            assert function(SimpleNamespace(predictions=predicted, label_ids=labels)) == expected
    assert expected["exact_match"] == 0.5
    references = [["a dog"], ["a cat runs", "a cat"]]
    function = trainer_compute_scores("exact_match", tokenizer=Tokenizer(), references=references)
    assert function(SimpleNamespace(predictions=(predicted, None), label_ids=None))["exact_match"] == 1


def test_a_trainer_that_generates(tmp_path):
    sizes = dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings"), 8)
    counts = ("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads")
    tokens_of_end = ("bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id")
    ones = dict.fromkeys(counts + tokens_of_end, 1)
    torch.manual_seed(0)
    config = transformers.BartConfig(vocab_size=len(WORDS), pad_token_id=0, **sizes, **ones)
    data = [{"input_ids": torch.tensor([2, 3, 1]), "labels": torch.tensor([2, last, 1])} for last in (3, 4, 3)]
    arguments = transformers.Seq2SeqTrainingArguments(
        output_dir=str(tmp_path),
        predict_with_generate=True,
        generation_max_length=6,
        per_device_eval_batch_size=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    loop = transformers.Seq2SeqTrainer(
        model=transformers.BartForConditionalGeneration(config),
        args=arguments,
        eval_dataset=data,
        compute_metrics=trainer_compute_scores("wer", tokenizer=Tokenizer()),
    )
    tokens = loop.predict(data).predictions
    answers = [" ".join(WORDS[index] for index in row if index > 1) for row in tokens.tolist()]
    scores = compute(predictions=answers, references=["a dog", "a cat", "a dog"], metrics=["wer"])
    assert loop.evaluate().items() >= flat_values(scores, "eval_").items()


def test_what_cannot_be_scored_is_refused():
    function = trainer_compute_scores("exact_match", tokenizer=Tokenizer())
    with pytest.raises(ConfigError, match="predict_with_generate=True"):
        function(SimpleNamespace(predictions=np.zeros((2, 3, 6)), label_ids=None))
    with pytest.raises(ConfigError, match="Pass `references`"):
        function(SimpleNamespace(predictions=np.zeros((2, 3), int), label_ids=None))
    function = trainer_compute_scores("exact_match", tokenizer=Tokenizer(), references=["a"])
    with pytest.raises(InputError, match="1 references for 2 rows"):
        function(SimpleNamespace(predictions=np.zeros((2, 3), int), label_ids=None))
    with pytest.raises(Exception, match="Did you mean 'exact_match'"):
        trainer_compute_scores("exact_macth", tokenizer=Tokenizer())


def test_answers_are_scored_after_each_evaluation(tmp_path):
    loop = trainer(tmp_path)
    given = [["a dog", "no"], GOLD]
    seen = []

    def answers(model):
        seen.append(model.training)
        return given[len(seen) - 1]

    add_trainer_scores(loop, answers, GOLD, "exact_match", id=["1", "2"])
    loop.train()
    assert seen == [False, False]  # as in an evaluation
    logged = [each for each in loop.state.log_history if "eval_exact_match" in each]
    assert [each["eval_exact_match"] for each in logged] == [0.5, 1.0]
    first = compute(predictions=given[0], references=GOLD, metrics=["exact_match"])["exact_match"]
    assert (logged[0]["eval_exact_match_low"], logged[0]["eval_exact_match_high"]) == (first.low, first.high)
    assert logged[0]["eval_exact_match_coverage"] == 1


def test_a_score_may_choose_the_best_model(tmp_path):
    loop = trainer(tmp_path, load_best_model_at_end=True, metric_for_best_model="exact_match", greater_is_better=True)
    given = iter([GOLD, ["no", "no"]])
    add_trainer_scores(loop, lambda model: next(given), GOLD, "exact_match")
    loop.train()
    assert loop.state.best_metric == 1.0
    assert loop.state.best_model_checkpoint is not None
    assert loop.state.best_model_checkpoint.endswith("checkpoint-1")


def test_the_trackers_of_the_trainer_get_the_scores(tmp_path):
    logged = []

    class Tracker(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        def on_log(self, args, state, control, logs=None, **kwargs):
            logged.append(dict(logs))

    loop = trainer(tmp_path)
    loop.add_callback(Tracker)
    callback = add_trainer_scores(loop, lambda model: GOLD, GOLD, "exact_match", prefix="test_")
    loop.evaluate()
    assert any(each.get("test_exact_match") == 1 and "test_exact_match_low" in each for each in logged)
    loop.remove_callback(callback)
    logged.clear()
    loop.evaluate()
    assert not any("test_exact_match" in each for each in logged)
