"""A sample that brings down every process that scores it is found by halving, and left out as an error."""

from __future__ import annotations

from typing import Any

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.run.executor import Died, Executor
from multimodal_eval.run.part import Worker

MOST_POISONED = 20  # samples of one part: with more, it is not the samples that are ill


def scored_without_poison(executor: Executor, worker: Worker, part: int, size: int) -> Any:
    """Score a part that no process survived, without the samples that are to blame."""
    rows = poisoned_rows(executor, worker, part, size)
    worker.poison(part, rows)
    (result,) = executor.map(worker, "score", [part])
    if isinstance(result, Died):
        raise RunFolderError(f"part {part} cannot be scored: {result.reason}")
    return result


def poisoned_rows(executor: Executor, worker: Worker, part: int, size: int) -> list[int]:
    """The rows of a part, from 0, that bring a process down by themselves."""
    found: list[int] = []
    suspects = [(part, 0, size)]
    while suspects:
        halves = [half for suspect in suspects for half in _halves(suspect)]
        results = executor.map(worker, "probe", halves)
        dead = [half for half, result in zip(halves, results, strict=True) if isinstance(result, Died)]
        found += [start for _, start, stop in dead if stop - start == 1]
        suspects = [half for half in dead if half[2] - half[1] > 1]
        if len(found) + len(suspects) > MOST_POISONED:
            raise RunFolderError(f"part {part}: over {MOST_POISONED} samples bring down the process that scores them")
    return sorted(found)


def _halves(suspect: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    part, start, stop = suspect
    middle = (start + stop) // 2
    return [suspect] if stop - start == 1 else [(part, start, middle), (part, middle, stop)]
