"""Crash recovery: bisect a part to find the samples that crash their process, and mark them as errors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.run.engine.base import Crashed
from multimodal_eval.run.steps.score import OpenPart, Score

MAX_CRASHING = 20  # samples per part: with more, the samples are unlikely to be the cause


def score_without_crashes(step: Score, part: int, size: int) -> OpenPart | None:
    """Score a part that crashed its process, without the samples that cause the crash."""
    step.exclude(part, crashing_rows(step, part, size))
    (result,) = step.run.engine.map(step, step.phase("part", [part], is_apart=True))
    if isinstance(result, Crashed):
        raise RunFolderError(
            f"part {part} cannot be scored: {result.reason}, but no single sample of it causes the crash. "
            "Is there enough memory?"
        )
    return result if isinstance(result, OpenPart) else None


def crashing_rows(step: Score, part: int, size: int) -> dict[str, list[int]]:
    """The rows of a part, from 0, that crash a process on their own, by metric."""
    crashing: dict[str, list[int]] = {}
    suspects = [Suspect(part, metric.name, 0, size) for metric in step.fresh]
    while suspects:
        halves = [half for suspect in suspects for half in suspect.halves]
        results = step.run.engine.map(step, step.phase("probe", halves, is_apart=True))
        crashed = [half for half, result in zip(halves, results, strict=True) if isinstance(result, Crashed)]
        for single in (half for half in crashed if half.is_single):
            crashing.setdefault(single.metric, []).append(single.start)
        suspects = [half for half in crashed if not half.is_single]
        _refuse_too_many(part, [*crashing, *(suspect.metric for suspect in suspects)], crashing, len(suspects))
    return {metric: sorted(rows) for metric, rows in crashing.items()}


def _refuse_too_many(part: int, metrics: list[str], crashing: dict[str, list[int]], suspected: int) -> None:
    if sum(map(len, crashing.values())) + suspected <= MAX_CRASHING:
        return
    names = ", ".join(dict.fromkeys(metrics))
    raise RunFolderError(
        f"part {part}: over {MAX_CRASHING} samples crash the process that scores them with {names}. "
        "Leave it out, or fix it: with a declared version the run can be resumed, otherwise start a new run"
    )


@dataclass(frozen=True)
class Suspect:
    """A range of samples of a part that may crash a metric."""

    part: int
    metric: str
    start: int
    stop: int

    @property
    def is_single(self) -> bool:
        """Whether the range has one sample."""
        return self.stop - self.start == 1

    @property
    def halves(self) -> list[Suspect]:
        """The two halves, or the range itself if it has one sample."""
        middle = (self.start + self.stop) // 2
        return [self] if self.is_single else [replace(self, stop=middle), replace(self, start=middle)]
