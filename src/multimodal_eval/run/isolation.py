"""A sample that brings down every process that scores it is found by halving, and left out as an error."""

from __future__ import annotations

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.run.engine.base import Died, Executor
from multimodal_eval.run.part import OpenPart, Suspect, Worker

MOST_POISONED = 20  # samples of one part: with more, it is not the samples that are ill


def score_without_poison(executor: Executor, worker: Worker, part: int, size: int) -> OpenPart | None:
    """Score a part that no process survived, without the samples that are to blame."""
    worker.poison(part, poisoned_rows(executor, worker, part, size))
    (result,) = executor.map(worker, "score_again", [part])
    if isinstance(result, Died):
        raise RunFolderError(
            f"part {part} cannot be scored: {result.reason}, and no sample of it does that by itself. "
            "Is there enough memory?"
        )
    return result if isinstance(result, OpenPart) else None


def poisoned_rows(executor: Executor, worker: Worker, part: int, size: int) -> dict[str, list[int]]:
    """The rows of a part, from 0, that bring a process down by themselves, by metric."""
    found: dict[str, list[int]] = {}
    suspects = [Suspect(part, metric.name, 0, size) for metric in worker.fresh]
    while suspects:
        halves = [half for suspect in suspects for half in suspect.halves]
        results = executor.map(worker, "probe", halves)
        dead = [half for half, result in zip(halves, results, strict=True) if isinstance(result, Died)]
        for single in (half for half in dead if half.is_single):
            found.setdefault(single.metric, []).append(single.start)
        suspects = [half for half in dead if not half.is_single]
        _refuse_too_many(part, [*found, *(suspect.metric for suspect in suspects)], found, len(suspects))
    return {metric: sorted(rows) for metric, rows in found.items()}


def _refuse_too_many(part: int, metrics: list[str], found: dict[str, list[int]], suspected: int) -> None:
    if sum(map(len, found.values())) + suspected <= MOST_POISONED:
        return
    names = ", ".join(dict.fromkeys(metrics))
    raise RunFolderError(
        f"part {part}: over {MOST_POISONED} samples bring down the process that scores them with {names}. "
        "Leave it out, or repair it: with a declared version it can be resumed, else it takes a new run"
    )
