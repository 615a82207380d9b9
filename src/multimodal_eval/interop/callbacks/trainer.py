"""Scores with intervals in the `Trainer` of transformers, in all trackers that its `report_to` names.

`trainer_compute_scores` is a `compute_metrics` for a Trainer that generates. `add_trainer_scores` is for all others: a
function of the user writes the answers after each evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.core.optional import require
from multimodal_eval.interop.accumulator import Accumulator
from multimodal_eval.interop.trackers.content import flat_values

__all__ = ["add_trainer_scores", "trainer_compute_scores"]

_IGNORED = -100  # what the Trainer fills rows and labels with


def trainer_compute_scores(
    *metrics: str,
    tokenizer: Any,
    references: Sequence[str | Sequence[str]] | None = None,
    **settings: Any,
) -> Callable[[Any], dict[str, float]]:
    """The `compute_metrics` of a `Seq2SeqTrainer` with `predict_with_generate=True`.

    `tokenizer` is a tokenizer or a processor. `references` has one text or a list of texts per row of the evaluation
    set, in its order; without it, the decoded labels are the references. `settings` are those of `Accumulator`. The
    result has every score with `_low`, `_high`, `_stderr` and `_coverage`.
    """
    scores = Accumulator(*metrics, **settings)

    def compute_metrics(evaluated: Any) -> dict[str, float]:
        predictions = evaluated.predictions
        texts = _decoded(tokenizer, predictions[0] if isinstance(predictions, tuple) else predictions)
        golds = _decoded(tokenizer, evaluated.label_ids) if references is None else references
        if len(golds) != len(texts):
            message = f"there are {len(golds):,} references for {len(texts):,} rows of the evaluation set"
            raise InputError([Problem(code="LENGTH", message=message)])
        scores.reset()
        scores.update(texts, golds)
        return flat_values(scores.compute())

    return compute_metrics


def _decoded(tokenizer: Any, ids: Any) -> list[str]:
    import numpy as np

    if ids is None:
        raise ConfigError("the evaluation set has no labels. Pass `references`.")
    ids = np.asarray(ids)
    if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
        raise ConfigError(
            f"the evaluation has arrays of shape {ids.shape} and type {ids.dtype} instead of generated tokens. Use a "
            "Seq2SeqTrainer with predict_with_generate=True, or `add_trainer_scores`."
        )
    inner = getattr(tokenizer, "tokenizer", tokenizer)  # of a processor
    fill = inner.pad_token_id if inner.pad_token_id is not None else inner.eos_token_id
    texts: list[str] = tokenizer.batch_decode(np.where(ids == _IGNORED, fill or 0, ids), skip_special_tokens=True)
    return [text.strip() for text in texts]


def add_trainer_scores(
    trainer: Any,
    answers: Callable[[Any], Sequence[str]],
    references: Sequence[str | Sequence[str]] | None = None,
    *metrics: str,
    prefix: str = "eval_",
    **settings: Any,
) -> Any:
    """Add a callback to a Trainer: after each evaluation it scores `answers(model)` and logs the scores.

    `answers` generates one answer per reference. The scores go where the Trainer's own do (`report_to`, its log
    history), and `metric_for_best_model` may be one of them: `eval_cider_d`. Lists of further sample fields (`id`,
    `image`, …) and settings of `Accumulator` may follow. Returns the callback, for `trainer.remove_callback`.
    """
    from multimodal_eval.core.sample import FIELDS

    fields = {name: settings.pop(name) for name in list(settings) if name in FIELDS and name != "task"}
    scores = Accumulator(*metrics, **settings)

    def scored(model: Any) -> dict[str, float]:
        scores.reset()
        scores.update(answers(model), references, **fields)
        return flat_values(scores.compute(), prefix)

    callback = _callback_class()(trainer, scored)
    trainer.add_callback(callback)
    return callback


@cache
def _callback_class() -> Any:
    """The class, created on first use because transformers is slow to import and may not be installed."""
    library: Any = require("transformers.trainer_callback", extra="trainer", purpose="scores in a Trainer")

    class TrainerScores(library.TrainerCallback):  # type: ignore[misc]
        """Scores the model after each evaluation, before the Trainer looks for the best one."""

        def __init__(self, trainer: Any, scored: Callable[[Any], dict[str, float]]) -> None:
            self.trainer, self.scored = trainer, scored

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **kwargs: Any) -> None:
            model = kwargs["model"]
            was_training = model.training
            model.eval()
            try:
                values = self.scored(model)
            finally:
                model.train(was_training)
            metrics.update(values)
            self.trainer.log(values)

    return TrainerScores
