"""Refuse what can be refused before anything is asked or scored: missing fields, bad samples, bad labels.

Samples that a metric cannot score are an input error, with the file and line of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.errors import Problem
from multimodal_eval.core.metric import Metric, declared_options, registered_name, sample_problems
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.data.readers.problems import MAX_KEPT, Problems
from multimodal_eval.run.engine.base import Phase, refuse_crashed
from multimodal_eval.run.nothing_scored import refuse_missing_fields
from multimodal_eval.run.start import described_metrics
from multimodal_eval.run.step import Step

if TYPE_CHECKING:
    from multimodal_eval.data.readers.parts import Input
    from multimodal_eval.data.runs.run_folder import RunFolder

CODE = "SAMPLE"
_NOTING = "reading_note"  # the method of a metric that says how it read the samples
_REFERENCES = ("references", "expected_answer", "caption")


class Refused(msgspec.Struct, frozen=True):
    """The problems of a part: the first of them, and their number."""

    problems: list[Problem]
    total: int


def checked_part(folder: RunFolder, part: int, metrics: list[Metric]) -> Refused:
    """Ask the metrics about every sample of a part."""
    samples = folder.read_samples(part, _fields(metrics))
    metrics = _without_repeats(metrics)
    asked = {metric.name: sample_problems(metric) for metric in metrics}
    problems: list[Problem] = []
    total = 0
    for sample in samples:
        for metric in metrics:
            for message in filter(None, (problem(sample) for problem in asked[metric.name])):
                total += 1
                if len(problems) < MAX_KEPT:
                    problems.append(Problem(code=CODE, message=f"{metric.name}: {message}", id=sample.id))
    return Refused(problems, total)


def _without_repeats(metrics: Sequence[Metric]) -> list[Metric]:
    """One of the metrics that differ only in the rule: what a rule does with an answer refuses no sample."""
    by_key: dict[object, Metric] = {}
    for metric in metrics:
        rules = {name for name, option in declared_options(metric).items() if option.rules is not None}
        options = sorted((name, repr(value)) for name, value in metric.options.items() if name not in rules)
        by_key.setdefault((registered_name(metric), tuple(options)), metric)
    return list(by_key.values())


def _fields(metrics: list[Metric]) -> set[str]:
    needs = {field.partition(".")[0] for metric in metrics for need in metric.needs for field in need.split("|")}
    return needs.union(_REFERENCES) if "references" in needs else needs


def reading_notes(metrics: Sequence[Metric], folder: RunFolder, parts: int) -> list[str]:
    """What the metrics say about how they read the samples of a run, if they say anything."""
    notes: list[str] = []
    telling = [metric for metric in metrics if hasattr(type(metric), _NOTING)]
    for metric in _without_repeats(telling) if telling else ():
        fields = _fields([metric])
        with blamed_on(metric.name, "describing how it read the samples"):
            note: str | None = getattr(metric, _NOTING)(folder.read_batch(part, fields) for part in range(parts))
            notes += [] if note is None else [note]
    return notes


class Check(Step):
    """Makes no file. A run that is being scored has passed it."""

    feeds_results = False

    is_answered: bool = True  # if not, a model will give the answers

    def left(self) -> Sequence[Any]:
        """[None] if the next step was not started."""
        is_passed = self.run.info.signatures if self.is_answered else self.run.info.generation
        return [] if is_passed else [None]

    def make(self, left: Sequence[Any]) -> None:
        """Check all samples."""
        run = self.run
        if run.plan.extras and not any(run.folder.has_values("samples", part, _REFERENCES) for part in run.parts):
            run.plan = run.plan.without_extras()
            run.info = msgspec.structs.replace(run.info, **described_metrics(run.plan))
        refuse_missing_fields(run.plan, run.folder, run.info, is_answered=self.is_answered)
        if self._checking:
            self._refuse_bad_samples()
        if run.plan.config.human:
            from multimodal_eval.run.steps.asked_results import refuse_bad_labels

            refuse_bad_labels(run.plan, run.folder, run.info)

    @cached_property
    def _checking(self) -> list[Metric]:
        """The metrics that refuse some samples."""
        fresh = [metric for metric in self.run.plan.metrics if metric.name not in self.run.reusable]
        return [metric for metric in fresh if sample_problems(metric)]

    def part(self, part: int) -> Refused:
        """Ask the metrics about every sample of a part."""
        return checked_part(self.run.folder, part, self._checking)

    def _refuse_bad_samples(self) -> None:
        """Refuse an input with samples that a metric of the plan cannot score."""
        kept: list[Problem] = []
        total = 0
        for result in self.run.engine.map(self, Phase("part", self.run.parts, "process")):
            refuse_crashed(result, "checking the samples")
            kept += result.problems[: MAX_KEPT - len(kept)]
            total += result.total
        if not total:
            return
        problems = Problems()
        problems.kept, problems.total = list(_placed(kept, self.run.input)), total
        problems.raise_if_any()


def _placed(problems: list[Problem], source: Input | None) -> Iterator[Problem]:
    """The problems with file and line, from a second pass over the input."""
    wanted = {problem.id for problem in problems}
    places: dict[str | None, tuple[str | None, int]] = {}
    for file, line, name in source.places() if source is not None else ():
        if name in wanted:
            places.setdefault(name, (file, line))
            if len(places) == len(wanted):
                break
    for problem in problems:
        file, place = places.get(problem.id, (None, None))
        yield msgspec.structs.replace(problem, file=file, line=place)
