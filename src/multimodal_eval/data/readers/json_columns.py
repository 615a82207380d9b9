"""JSONL in blocks of lines that are scanned at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multimodal_eval.data.readers.blocks import Block, line_blocks, open_bytes
from multimodal_eval.data.readers.json_file import record_of_line
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.readers.scanned import Line, Scanned, Scanners


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """Some complete lines of a file."""

    file: str
    block: Block

    @property
    def first_line(self) -> int:
        """The number of the first line."""
        return self.block.first_line

    def scan(self, scanners: Scanners) -> tuple[Any, ...]:
        """The items of `Scanned`."""
        return scanners.json.scan(self.block.data)

    def end_of(self, scanned: Scanned, row: int) -> int:
        """The end of the line of an accepted row."""
        end = self.block.data.find(b"\n", int(scanned.begins[row]))
        return len(self.block.data) if end < 0 else end

    def record(self, line: Line, problems: Problems, last_good: int) -> Columns | None:
        """The record of a line, or None; `last_good` is the number of the last line that is a record."""
        place, _, begin, end = line
        text = self.block.data[begin:end]
        if self.block.budget is not None:
            self.block.budget.spend_json(text)
        return record_of_line(
            text,
            self.file,
            problems,
            line=self.first_line + place,
            start=self.block.offset + begin,
            cut_off=not self.block.ends_in_newline and end == len(self.block.data),
            last_good=last_good,
        )


def json_blocks(path: Path) -> Iterator[JsonBlock]:
    """The lines of a file, in blocks."""
    with open_bytes(path) as stream:
        for block in line_blocks(stream, str(path)):
            yield JsonBlock(str(path), block)
