"""Runs with small parts, and runs that are interrupted: the only file that knows where the steps keep their limits."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Any, NoReturn

import multimodal_eval
from multimodal_eval.core.config import RunConfig
from multimodal_eval.run import plan
from multimodal_eval.run.engine import base

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from multimodal_eval.core.metric import Metric

STEPS = "multimodal_eval.run.steps"
LIMITS = {
    "batch": f"{STEPS}.score.BATCH",
    "crashing": f"{STEPS}.score.MAX_CRASHING",
    "parts_per_bucket": f"{STEPS}.fit.PARTS_PER_BUCKET",
}


def set_part_size(patch: pytest.MonkeyPatch, size: int | None = None, *, with_model: int | None = None) -> None:
    """Runs have parts of `size` samples, or of `with_model` if a model scores or answers them."""
    for name, number in _part_sizes(size, with_model).items():
        patch.setattr(plan, name, number)


def use_part_size(size: int | None = None, *, with_model: int | None = None) -> None:
    """The same for the rest of this process, which a test has started."""
    vars(plan).update(_part_sizes(size, with_model))


def started_with_part_size(size: int | str, *, with_model: bool = False) -> str:
    """The first lines of a script whose runs have parts of `size` samples: a number, or an expression."""
    name = "with_model" if with_model else "size"
    paths = [str(Path(file).parents[1]) for file in (__file__, multimodal_eval.__file__)]
    return f"import sys; sys.path[:0] = {paths}; from tests.parts import use_part_size; use_part_size({name}={size})"


def part_size_with(metrics: Sequence[Metric]) -> int:
    """The number of samples per part of a run with these metrics."""
    return plan.Plan(RunConfig(), None, tuple(metrics), {}, composite=False).part_size


def _part_sizes(size: int | None, with_model: int | None) -> dict[str, Any]:
    sizes = {"PART_SIZE": size, "PART_SIZE_WITH_MODEL": with_model}
    return {name: number for name, number in sizes.items() if number is not None}


def set_limit(patch: pytest.MonkeyPatch, name: str, size: int) -> None:
    """Another limit of a step: a name of `LIMITS`."""
    patch.setattr(LIMITS[name], size)


def leave_out(patch: pytest.MonkeyPatch, step: str) -> None:
    """No run does what a step should do: "Fit" or "Score"."""
    patch.setattr(f"{STEPS}.{step.lower()}.{step}.left", lambda step: [])


def interrupt(patch: pytest.MonkeyPatch, step: str) -> None:
    """Every run is interrupted as by Ctrl-C when it comes to a step: "Fit" or "Score"."""
    patch.setattr(f"{STEPS}.{step.lower()}.{step}.make", _interrupted)


def leave_columns_uneven(patch: pytest.MonkeyPatch) -> None:
    """The parts of a run keep the columns that they have, whatever the other parts have."""
    patch.setattr(f"{STEPS}.aggregate.align_columns", lambda folder, parts: None)


def threads_of(patch: pytest.MonkeyPatch, step: str) -> set[Thread]:
    """The threads that will have worked on the parts of a step."""
    threads: set[Thread] = set()
    name = f"{STEPS}.{step.lower()}.{step}.part"
    work = resolve_name(name.replace(f".{step}.", f":{step}."))

    def noted(*arguments: Any) -> Any:
        threads.add(current_thread())
        return work(*arguments)

    patch.setattr(name, noted)
    return threads


def workers_on(patch: pytest.MonkeyPatch, cores: int) -> list[int]:
    """The numbers of threads that steps will have asked for on a machine with so many cores. No step gets a result."""
    used: list[int] = []

    def noted(step: object, phase: object, workers: int) -> tuple[()]:
        used.append(workers)
        return ()

    patch.setattr(base, "cores", lambda: cores)
    patch.setattr(base, "_in_threads", noted)
    return used


def _interrupted(*arguments: object) -> NoReturn:
    raise KeyboardInterrupt
