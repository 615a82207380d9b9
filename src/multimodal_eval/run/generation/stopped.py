"""A run whose generation stopped early: only the drawn samples stay in its folder, and its results say so."""

from __future__ import annotations

import re

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.records import Entry, RunInfo
from multimodal_eval.data.runs.part_files import Kind, part_name
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.generation.until import Verdict
from multimodal_eval.stats.betting import confidence_sequence

__all__ = ["notes_of", "stopped", "trim", "with_sequence"]

_PART = re.compile(r"part-(\d+)\.parquet")


def stopped(info: RunInfo, verdict: Verdict) -> RunInfo:
    """The description of the run with only the rows that were drawn until the verdict."""
    assert info.generation is not None
    sizes, left = [], verdict.rows
    for size in info.parts:
        if left > 0:
            sizes.append(min(size, left))
        left -= size
    generation = msgspec.structs.replace(info.generation, population=verdict.population, stopped=verdict.reason)
    return msgspec.structs.replace(info, parts=sizes, generation=generation)


def trim(folder: RunFolder, info: RunInfo) -> None:
    """Remove the rows that do not belong to a stopped run. Doing so again changes nothing."""
    last = len(info.parts) - 1
    kinds: tuple[Kind, ...] = ("samples", "exchanges", "answers")
    for kind in kinds:
        for name in folder.storage.names(kind):
            match = _PART.fullmatch(name)
            if match is not None and int(match[1]) > last:
                folder.storage.remove(part_name(kind, int(match[1])))
        if folder.has_part(kind, last):
            table = folder.read_part(kind, last)
            if len(table) > info.parts[last]:
                folder.write_part(kind, last, table.slice(0, info.parts[last]).combine_chunks())
    folder.record_checksums()


def with_sequence(entry: Entry, name: str, values: NDArray[np.float64], info: RunInfo) -> Entry:
    """The entry of the metric that generation was stopped by, with an interval that is valid at any stopping time."""
    config, generation = info.config.generation, info.generation
    if config is None or generation is None or not generation.stopped or generation.population is None:
        return entry
    low, high = info.bounds_of(name)
    if config.until is None or config.until.metric != name or low is None or high is None or entry.value is None:
        return entry
    interval = confidence_sequence(
        np.where(np.isfinite(values), values, np.nan),
        generation.population,
        (float(low), float(high)),
        width=config.until.width,
        level=config.until.confidence,
        size=config.epochs,
    )
    return msgspec.structs.replace(entry, stderr=None, low=interval.low, high=interval.high, method=interval.method)


def notes_of(info: RunInfo) -> list[str]:
    """What the results say about the stop."""
    config, generation = info.config.generation, info.generation
    if config is None or generation is None or config.until is None:
        return []
    rows, total = sum(info.parts), sum(info.parts) if info.counts is None else info.counts.samples
    if not generation.stopped:
        return [f"all {rows // config.epochs:,} samples were needed: {config.until.metric} was not certain before"]
    drawn, samples, name = rows // config.epochs, total // config.epochs, config.until.metric
    saved = f"{1 - rows / total:.0%} of the requests saved"
    notes = [f"stopped after {drawn:,} of {samples:,} samples, {saved}: {generation.stopped}"]
    if len(info.metrics) > 1:
        notes.append(f"the interval of {name} accounts for the stop; those of other metrics do not")
    return notes
