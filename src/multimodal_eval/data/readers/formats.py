"""The reader for each file suffix, and the readers of CSV, TSV and Parquet."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from multimodal_eval.core.csv_cells import has_escapes, unescaped
from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.visible import storable, visible
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import (
    BLOCK,
    DamagedStreamError,
    bare_suffix,
    open_bytes,
    refuse_utf16,
)
from multimodal_eval.data.readers.coco_and_vqa import has_questions, read_vqa
from multimodal_eval.data.readers.json_file import first_character, read_coco_annotations, read_json_array, read_jsonl
from multimodal_eval.data.readers.parquet_file import check_nesting, parquet_errors, plan_reading, python_rows
from multimodal_eval.data.readers.problems import Columns, Problems, Record

if TYPE_CHECKING:
    from multimodal_eval.data.logs.log_format import LogFormat

Reader = Callable[[Path, Problems], Iterator[Record]]
DELIMITERS = {".csv": ",", ".tsv": "\t"}
BATCH = 8192  # rows of Parquet
_SHOWN_COLUMNS = 20  # with the same name
_SHOWN_NAME = 200


def read_delimited(path: Path, problems: Problems, delimiter: str, first_line: int = 0) -> Iterator[Record]:
    """(first line, cells by column) of every row from `first_line` on; all cells are text.

    Tables that were exported here have the texts that they were made of, without the apostrophes before formulas.
    """
    file, last_good = str(path), 0
    csv.field_size_limit(limits.current().text_bytes)
    try:
        with open_bytes(path) as stream:
            text = _BoundedLines(io.TextIOWrapper(_raw(stream, file), encoding="utf-8-sig", newline=""), file)
            rows = csv.reader(text, delimiter=delimiter, strict=True)
            header = next(rows, None)
            if header is None:
                return
            if not _header_is_fine(header, file, problems):
                return
            start, budget = rows.line_num + 1, limits.budget_of(stream)
            is_escaped = has_escapes(header)
            if is_escaped:
                header = list(map(unescaped, header))
            for cells in rows:
                text.used = 0
                if is_escaped:
                    cells = list(map(unescaped, cells))
                if budget is not None:
                    budget.spend(len(cells))
                line, start = start, rows.line_num + 1
                is_skipped = line < first_line
                if cells and (record := record_of_cells(header, cells, None if is_skipped else problems, file, line)):
                    last_good = line
                    if not is_skipped:
                        yield line, record
    except UnicodeDecodeError:
        problems.add("ENCODING", f"byte {_first_bad_byte(path)} of the file is not valid UTF-8", file=file)
    except csv.Error as fault:
        code = "TRUNCATED" if "end of data" in str(fault) else "SYNTAX"
        problems.add(code, f"{fault}; the last good record starts on line {last_good}", file=file, line=last_good + 1)
    except DamagedStreamError as damage:
        problems.add(damage.code, f"{damage}; the last good record starts on line {last_good}", file=file)


class _BoundedLines:
    """The lines of a text. `used` counts the characters of the current record, which must not become too long."""

    def __init__(self, text: io.TextIOWrapper, file: str) -> None:
        self._text, self._file, self._line = text, file, 0
        self._most = limits.current().text_bytes
        self.used = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._most + 1)
        if not line:
            raise StopIteration
        self._line += 1
        self.used += len(line)
        if self.used > self._most:
            limits.refuse_text(self._file, self._line)
        return line


def record_of_cells(
    header: Sequence[str], cells: Sequence[str], problems: Problems | None, file: str, line: int
) -> Columns | None:
    """The cells by column. None if the row has another length than the header, which is a problem."""
    if len(cells) == len(header):
        return dict(zip(header, cells, strict=True))
    if problems is not None:
        message = f"the row has {len(cells)} cells, but the header has {len(header)}"
        problems.add("LENGTH", message, file=file, line=line, value=shorten(cells))
    return None


class _Raw(io.RawIOBase):
    """Adapts any stream with `read` to the interface that TextIOWrapper needs."""

    def __init__(self, stream: IO[bytes], file: str) -> None:
        self._stream, self._file, self._first = stream, file, True

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        data = self._stream.read(len(target))
        if self._first:
            refuse_utf16(data, self._file)
            self._first = False
        target[: len(data)] = data
        return len(data)


def _raw(stream: IO[bytes], file: str) -> io.BufferedReader:
    return io.BufferedReader(_Raw(stream, file), BLOCK)


def _header_is_fine(header: list[str], file: str, problems: Problems) -> bool:
    repeated = {name: list[str]() for name, count in Counter(header).items() if count > 1}
    for index, column in enumerate(header, 1) if repeated else ():
        if column in repeated and len(repeated[column]) <= _SHOWN_COLUMNS:
            repeated[column].append(str(index))
    for name, columns in repeated.items():
        more = " …" if len(columns) > _SHOWN_COLUMNS else ""
        shown = shorten(name, _SHOWN_NAME)
        message = f"the header names {shown} more than once, in columns {' and '.join(columns[:_SHOWN_COLUMNS])}{more}"
        problems.add("DUPLICATE", message, file=file, line=1, field=name)
    return not repeated


def _first_bad_byte(path: Path) -> int:
    """The offset of the first invalid byte. TextIOWrapper reports it relative to its own buffer."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0
    with open_bytes(path) as stream:
        while chunk := stream.read(BLOCK):
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as bad:
                return offset - pending + bad.start
            offset += len(chunk)
    return offset


def read_parquet(
    path: Path, problems: Problems, row_groups: Sequence[int] | None = None, first_row: int = 1
) -> Iterator[Record]:
    """(row number, fields) of every row, or of the rows of some row groups, from the row `first_row` on.

    Row numbers count from the first of the row groups. They are read in batches.
    """
    import pyarrow.parquet as pq

    file = str(path)
    try:
        check_nesting(path)
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=BLOCK) as parquet:
            if not _header_is_fine(parquet.schema_arrow.names, file, problems):
                return
            row, budget = 1, limits.Budget(file, path.stat().st_size)
            plan = plan_reading(parquet, path, row_groups, BATCH)
            for batch in parquet.iter_batches(batch_size=plan.rows, row_groups=plan.groups):
                skipped = min(max(0, first_row - row), len(batch))
                records = python_rows(batch.slice(skipped), file, row + skipped, budget)
                for number, record in enumerate(records, row + skipped):
                    if isinstance(record, Problem):
                        problems.note(record)
                    else:
                        yield number, record
                row += len(batch)
            if plan.fault is not None:
                raise plan.fault
    except InputError:
        raise
    except parquet_errors() as fault:
        code = "TRUNCATED" if "magic bytes" in str(fault) or "size" in str(fault) else "SYNTAX"
        problems.add(code, f"not a readable Parquet file: {visible(str(fault))}", file=file)


_READERS: dict[str, Reader] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json_array,
    **{suffix: partial(read_delimited, delimiter=delimiter) for suffix, delimiter in DELIMITERS.items()},
    ".parquet": read_parquet,
}
_PICKLE = (
    "a pickle can run any program when it is read, and is refused.",
    "VLMEvalKit's other files have the same rows: name the .xlsx, .tsv, .csv or .json file.",
)
# Files that are never data: the message and what to do.
_REFUSED = {
    ".pkl": _PICKLE,
    ".pickle": _PICKLE,
    ".xlsx": (
        "a workbook is read only as a file of VLMEvalKit, with the columns `index`, `question` and `prediction`.",
        "Save it as CSV (UTF-8); --map names columns with other names.",
    ),
}
SUFFIXES = tuple(_READERS)  # also followed by .gz or .zst
COLUMNAR = tuple(suffix for suffix in SUFFIXES if suffix != ".json")  # those that compiled code reads as columns


def _records_of_log(format_: LogFormat, path: Path, problems: Problems) -> Iterator[Record]:
    """The records of a log, with what can be stored of the answers: a model wrote them."""
    for place, columns in format_.records(path, problems):
        for name in ("generated_answer", "reasoning"):
            if isinstance(text := columns.get(name), str):
                columns[name] = storable(text)
        yield place, columns


def reader_of(path: Path, log: str | None = None) -> Reader:
    """The reader of the file; an unknown format is refused. `log` is the name of a log format, if it is known."""
    from multimodal_eval.data.logs.recognised import log_format, recognised

    format_ = recognised(path) if log is None else log_format(log)
    if format_ is not None:
        return partial(_records_of_log, format_)
    suffix = bare_suffix(path)
    if suffix in _REFUSED:
        message, hint = _REFUSED[suffix]
        raise InputError([Problem(code="FORMAT", message=message, file=str(path), hint=hint)])
    if suffix not in _READERS:
        known = ", ".join(SUFFIXES)
        message = f"no format has the suffix {suffix!r}. Known: {known}, also with .gz or .zst"
        raise InputError([Problem(code="FORMAT", message=message, file=str(path))])
    if suffix == ".json":
        try:
            if first_character(path) != "{":
                return read_json_array
            return read_vqa if has_questions(path) else read_coco_annotations
        except DamagedStreamError:
            return read_json_array  # which reports the damage
    return _READERS[suffix]


def check_file(path: Path, log: str | None = None) -> None:
    """Refuse a missing file or an unknown format before anything is read."""
    if path.is_dir():
        raise InputError([Problem(code="FORMAT", message="this is a folder, but a file is needed", file=str(path))])
    if not path.is_file():
        raise InputError([Problem(code="NOT_FOUND", message="no such file", file=str(path))])
    reader_of(path, log)


def is_log(path: Path) -> bool:
    """Whether the file is a log of another harness."""
    from multimodal_eval.data.logs.recognised import recognised

    return recognised(path) is not None


def is_textual(path: Path, log: str | None = None) -> bool:
    """Whether all values in this format are text. `log` is the name of a log format, if it is known."""
    if bare_suffix(path) not in DELIMITERS:
        return False
    return not is_log(path) if log is None else is_plain(log)


def is_plain(log: str) -> bool:
    """Whether the reader of a format leaves the columns and the cells of a file as they are."""
    from multimodal_eval.data.logs.recognised import log_format

    return getattr(log_format(log), "is_plain", False)
