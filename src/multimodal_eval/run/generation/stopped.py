"""A run whose generation stopped early: only the drawn samples stay in its folder."""

from __future__ import annotations

import re

import msgspec

from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.run_content import Kind, part_name
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.generation.until import Verdict

__all__ = ["stopped", "trim"]

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
