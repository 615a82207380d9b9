"""Read an input in parallel and from start to end, and compare everything that is stored or reported."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.data.readers import blocks, splits
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.engine.base import Crashed, Inline, Local
from multimodal_eval.run.start import describe, planned
from multimodal_eval.run.step import RunContext
from multimodal_eval.run.steps import parallel_reading, reading_tasks
from multimodal_eval.run.steps.read import Read
from multimodal_eval.run.steps.reading_tasks import ReadTask
from tests.parts import set_part_size


@contextmanager
def small_splits(split, part=3, block=1 << 20, bucket=1 << 20, chunk=None):
    """Splits of a few bytes, so that small files are read in parallel. `chunk`: predictions are divided row by row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "SPLIT", split)
        patch.setattr(splits, "SMALLEST_SPLIT", split)
        set_part_size(patch, part)
        for module in (blocks, splits, splits):
            patch.setattr(module, "BLOCK", block)
        patch.setattr(reading_tasks, "ROWS_PER_BUCKET", bucket)
        if chunk is not None:
            patch.setattr(reading_tasks, "CHUNK", chunk)
            patch.setattr(reading_tasks, "_ROWS", 2 * chunk)
        yield


class Together(Inline):
    """One after the other, but planned for three workers."""

    workers = 3


class Crashing(Together):
    """The first process that reads crashes on every attempt."""

    def map(self, step, phase):
        results = list(super().map(step, phase))
        is_reading = any(isinstance(item, ReadTask) for item in phase.items)
        return iter([Crashed("x"), *results[1:]] if is_reading else results)


def read_in_order(data, predictions=None, **settings):
    """What `read` gives if the input is read from start to end."""
    return read(Inline(), data, predictions, **settings)


def read_by_processes(data, many):
    """What `read` gives with five workers. Inputs with `many` splits are read by processes, and not by this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_reading, "MANY_SPLITS", many)
        if many == 1:
            patch.setattr(reading_tasks, "_read", None)  # in this process
        return read(Local(5), data)


def read(executor, data, predictions=None, **settings):
    """(whether it was read in parallel, the stored files, fields of run.json, the error)."""
    ways = []
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:

        def noted(*arguments):
            ways.append(in_parallel(*arguments))
            return ways[-1]

        in_parallel = parallel_reading.read_in_parallel
        patch.setattr(parallel_reading, "read_in_parallel", noted)
        error = info = None
        folder = Path(scratch) / "run"
        try:
            plan, source = planned(overlaid(None, metrics=["rouge_l"], **settings), data, predictions)
            run_folder = RunFolder.create(folder, describe(plan, source.recipe()), is_durable=False)
            run = RunContext(plan, run_folder, run_folder.read_info(), engine=executor, source=lambda: source)
            Read(run).make([None])
            info = run.info
        except MultimodalEvalError as refusal:
            error = f"{type(refusal).__name__}: {refusal}"
        stored = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "run.json"
        }
    return any(ways), stored, info and msgspec.structs.replace(info, created="", source=None), error


def assert_both_ways_equal(data, predictions=None, workers=None, **settings):
    """Whether the input was read in parallel, which stores and reports the same as reading from start to end."""
    executor = Together() if workers is None else Local(workers)
    before = read_in_order(data, predictions, **settings)
    assert not before[0]
    after = read(executor, data, predictions, **settings)
    assert after[2:] == before[2:]
    if before[3] is None:
        assert after[1] == before[1]
    return after[0]
