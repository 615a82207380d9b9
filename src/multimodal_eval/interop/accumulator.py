"""Metrics in a validation loop: an object that collects batches, and a function for two lists.

    scores = Accumulator("cider_d", "bleu")
    for batch in loader:
        scores.update(model.generate(batch), batch["references"], id=batch["id"])
    scores.compute()["cider_d"]  # a float with its interval

The texts are collected, and `compute` scores them with `evaluate`. The results are therefore equal to those of one
`evaluate` over all samples, to the last bit, and do not depend on how batches were split over processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any, Self

from multimodal_eval.core.display import HasHtml
from multimodal_eval.core.errors import ConfigError, InputError, NothingNamedError, Problem, did_you_mean, shorten
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.runs.run import figures_of
from multimodal_eval.interop.list_scores import records_of
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.evaluate import evaluate
from multimodal_eval.run.plan import make_plan

_ENGINE = ("engine", "workers")  # arguments of `evaluate` that are not settings of a run
_NOT_COLUMNS = ("generated_answer", "references", "expected_answer", "task", "metadata")


class ScoreValue(HasHtml, float):
    """A score over all samples: a float with its standard error, 95% interval and number of scored samples.

    It is NaN if no sample was scored; `method` then says so.
    """

    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    n_scored: int | None = None  # None for a part of a metric
    n_total: int | None = None

    @classmethod
    def of(cls, figure: Figure) -> ScoreValue:
        """The value of a result of a run."""
        score = cls("nan" if figure.value is None else figure.value)
        score.stderr, score.low, score.high, score.method = figure.stderr, figure.low, figure.high, figure.method
        if figure.n_total is not None:
            score.n_scored, score.n_total = figure.n_scored, figure.n_total
        return score

    def __repr__(self) -> str:
        notes = [] if self.low is None or self.high is None else [f"{self.low:.4f} to {self.high:.4f}"]
        if self.n_scored != self.n_total:
            notes.append(f"{self.n_scored:,} of {self.n_total:,} scored")
        if isnan(self):
            notes.append(self.method)
        return f"{float(self):.4f}" + (f" ({'; '.join(notes)})" if notes else "")


class Accumulator:
    """Collects predictions and references batch by batch, then computes metrics over all of them.

    `metrics` are names as in `evaluate` (also `coco`), and `settings` are its settings: `task`, `options`, `labels`,
    `workers`, …. Unknown names are refused at once. The object can be pickled, so that processes can exchange it:
    `torch.distributed.all_gather_object(parts, scores)`, then `Accumulator.merged(parts)`.
    """

    def __init__(self, *metrics: str, **settings: Any) -> None:
        self.metrics = metrics
        self.settings = settings
        self._records: list[dict[str, object]] = []
        for name in ("progress", "output", "config", "limit", "map"):
            if name in settings:
                raise ConfigError(f"an Accumulator has no setting {name!r}")
        if not metrics and not settings.get("task"):
            raise NothingNamedError("name metrics, such as 'cider_d', or a task, such as task='vqa'")
        make_plan(overlaid(None, **self._run_settings()))

    def _run_settings(self) -> dict[str, Any]:
        settings = {name: value for name, value in self.settings.items() if name not in _ENGINE}
        names = [name.strip() for entry in self.metrics for name in entry.split(",")]
        # A value that is not a number says that nothing is scored; a training loop continues.
        return {"skip_lint": True, "allow_empty": True, "metrics": names or None, **settings}

    def update(
        self,
        predictions: Sequence[str | int],
        references: Sequence[str | int | Sequence[str]] | None = None,
        **fields: Sequence[Any],
    ) -> None:
        """Add a batch: one prediction per sample, and one reference or a list of references.

        Labels may be integers. `fields` are further lists by the names of sample fields: `id`, `image`, `question`,
        `annotations`, …. With ids, samples that occur twice with the same content count once: a distributed sampler
        repeats some to fill its last batch.
        """
        for name in fields:
            if name not in FIELDS or name in _NOT_COLUMNS:
                known = [field for field in FIELDS if field not in _NOT_COLUMNS]
                raise ConfigError(f"`update` has no field {name!r}.{did_you_mean(name, known)}")
        self._records = _joined(self._records, records_of(predictions, references, **fields))

    def compute(self) -> dict[str, ScoreValue]:
        """The metrics and their parts over everything added so far, by name: floats with intervals."""
        engine = {name: self.settings[name] for name in _ENGINE if name in self.settings}
        records, settings = _without_repeats(self._records), self._run_settings()
        try:
            run = evaluate(records, progress=False, **settings, **engine)
        except InputError as error:
            names = [metric.name for metric in make_plan(overlaid(None, **settings)).metrics if metric.corpus is None]
            if {problem.code for problem in error.problems} != {"CORPUS_TOO_SMALL"} or not names:
                raise
            return self._without_corpus(names, records, error, engine)
        return {name: ScoreValue.of(figure) for name, figure in figures_of(run).items()}

    def _without_corpus(
        self, names: list[str], records: list[dict[str, object]], error: InputError, engine: dict[str, Any]
    ) -> dict[str, ScoreValue]:
        """The metrics that need no corpus. The others are not numbers, and say why."""
        settings = self._run_settings()
        chosen = {name: values for name, values in settings.get("options", {}).items() if name in names}
        plan = make_plan(overlaid(None, **settings))
        run = evaluate(records, progress=False, **{**settings, "metrics": names, "options": chosen}, **engine)
        values = {name: ScoreValue.of(figure) for name, figure in figures_of(run).items()}
        for metric in plan.metrics:
            if metric.name not in values:
                hint = f" Choose other frequencies: options={{{metric.name!r}: {{'df': 'coco-val2014'}}}}"
                reason = error.problems[0].message + (hint if "df" in metric.options else "")
                left_out = Figure(None, None, None, None, reason, n_scored=0, n_total=len(records))
                values[metric.name] = ScoreValue.of(left_out)
        return values

    def reset(self) -> None:
        """Remove everything added so far."""
        self._records = []

    def merge(self, *others: Accumulator) -> Self:
        """Add the samples of other accumulators with the same metrics and settings, in their order."""
        for other in others:
            if not isinstance(other, Accumulator):
                raise ConfigError(f"only another Accumulator can be merged. Got {shorten(other)}.")
            if (other.metrics, other.settings) != (self.metrics, self.settings):
                raise ConfigError("accumulators with different metrics or settings cannot be merged")
            self._records = _joined(self._records, other._records)
        return self

    @staticmethod
    def merged(accumulators: Sequence[Accumulator]) -> Accumulator:
        """A new accumulator with the samples of all given ones."""
        if not accumulators:
            raise ConfigError("there are no accumulators to merge")
        first = accumulators[0]
        return Accumulator(*first.metrics, **first.settings).merge(*accumulators)

    def __add__(self, other: Accumulator) -> Accumulator:
        return Accumulator.merged([self, other])

    def __len__(self) -> int:
        """The number of samples added so far."""
        return len(self._records)

    def __repr__(self) -> str:
        names = [*map(repr, self.metrics), *(f"{name}={value!r}" for name, value in self.settings.items())]
        return f"<Accumulator {', '.join(names)}: {len(self):,} samples>"


def compute(
    *,
    predictions: Sequence[str | int],
    references: Sequence[str | int | Sequence[str]] | None = None,
    metrics: Sequence[str] | str = (),
    **more: Any,
) -> dict[str, ScoreValue]:
    """Metrics of two lists, by name: floats with intervals.

    `references` has one string or a list of strings per prediction. `more` are lists of further sample fields (`image`,
    `question`, `id`, …) and settings of `evaluate` (`task`, `options`, `labels`, …).
    """
    fields = {name: values for name, values in more.items() if name in FIELDS and name not in _NOT_COLUMNS}
    settings = {name: value for name, value in more.items() if name not in fields}
    scores = Accumulator(*([metrics] if isinstance(metrics, str) else metrics), **settings)
    scores.update(predictions, references, **fields)
    return scores.compute()


def _joined(before: list[dict[str, object]], after: list[dict[str, object]]) -> list[dict[str, object]]:
    """Both lists. Either all samples have an id, or none."""
    if before and after and ("id" in before[0]) != ("id" in after[0]):
        message = "some batches have ids and others do not. Pass `id` for all of them, or for none."
        raise InputError([Problem(code="MISSING_ID", message=message, field="id")])
    return before + after


def _without_repeats(records: list[dict[str, object]]) -> list[dict[str, object]]:
    """The samples in the order of their ids, without repeats; in the order of the batches if they have no ids.

    The same id with other content stays, and `evaluate` refuses it.
    """
    if not records or "id" not in records[0]:
        return records
    kept: dict[str, list[dict[str, object]]] = {}
    for record in records:
        same = kept.setdefault(str(record["id"]), [])
        if record not in same:
            same.append(record)
    return [record for key in sorted(kept, key=_in_order) for record in kept[key]]


def _in_order(sample_id: str) -> tuple[bool, int, str]:
    """Numbers by their value, then other ids as text."""
    is_number = sample_id.isascii() and sample_id.isdigit()
    return not is_number, int(sample_id) if is_number else 0, sample_id
