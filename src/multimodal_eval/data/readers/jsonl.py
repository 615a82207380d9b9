"""JSON Lines: one object a line, decoded block by block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.data.readers.blocks import Block, DamagedStreamError, line_blocks, open_bytes
from multimodal_eval.data.readers.json_faults import DECODE_ERRORS, note_fault, note_repeated_keys, repeated_by_line
from multimodal_eval.data.readers.problems import Problems

Record = tuple[int, dict[str, Any]]


def read_jsonl(path: Path, problems: Problems) -> Iterator[Record]:
    """(line number, fields) of every line that holds a record; what is wrong with the others is noted."""
    last_good = 0
    try:
        with open_bytes(path) as stream:
            for block in line_blocks(stream, str(path)):
                for line, fields in _records(block, path, problems, last_good):
                    last_good = line
                    yield line, fields
    except DamagedStreamError as damage:
        problems.add(damage.code, f"{damage}; the last good record is line {last_good}", file=str(path))


def _records(block: Block, path: Path, problems: Problems, last_good: int) -> Iterator[Record]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    file = str(path)
    repeating = repeated_by_line(block.data, block.first_line, line_delimited=True)
    lines = block.data.split(b"\n")
    if block.ends_in_newline:
        lines.pop()
    start = block.offset
    for line, text in enumerate(lines, block.first_line):
        begin, start = start, start + len(text) + 1
        if not text or text.isspace():
            continue
        if line in repeating:
            note_repeated_keys(problems, file, {line: repeating[line]})
            continue
        try:
            fields = decode(text)
        except DECODE_ERRORS as error:
            cut_off = not block.ends_in_newline and start > block.offset + len(block.data)
            note_fault(problems, file, text, error, line=line, start=begin, cut_off=cut_off, last_good=last_good)
            continue
        last_good = line
        yield line, fields
