"""What a run folder consists of. Every file in it is complete, because files are written atomically.

run.json                     description: settings, input, versions, signatures, part sizes, state
samples/part-00000.parquet   the checked samples
media/part-00000.parquet     the checksums of the media files that the samples of a part name, if something opens them
answers/, exchanges/         of a run that asked a model, see generate.answer_tables
answers/journal.jsonl        the exchanges of parts that are not complete; removed when all samples have an answer
verdicts/METRIC.part-…       of a judge, see judges.verdict_tables; its exchanges are exchanges/METRIC.part-…
verdicts/METRIC.jsonl        the verdicts of parts that are not complete; removed when all questions have a reply
exchanges.json               the checksums of the files in exchanges/, which differ from time to time
state/METRIC.bin             corpus statistics
scores/part-00000.parquet    one row per sample; the part is finished if this file exists
manifest.json                the checksums of the files in samples/, media/, answers/, verdicts/, state/ and scores/
results.json                 the aggregates, and the checksum of the manifest; written last
lint.json                    warnings about the scores
report.html                  the HTML report, if a command has written one
classification.json          classes, confusions and annotators, if the composite is a macro F1
human.json                   human labels of the answers, if they come from a file; otherwise the samples have them
judges.json                  flips, length, agreement and calibration of the judges
scores.jsonl                 the scores as JSON lines, if a command has written them
progress.json                what the process that works on the run is doing; removed when the run ends well
checksums/                   the checksums of files that are not in the manifest yet
scratch/                     intermediate files of the workers; removed when the run is finished
replaced.partial/            the run that this one replaces; put back if the new input is refused
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

from multimodal_eval.core.errors import DamagedFileError, described
from multimodal_eval.data.runs import checksums
from multimodal_eval.data.runs.storage import TEMPORARY

__all__ = ["REPLACED", "SCRATCH", "is_content"]


# Several pieces of bytes in one file, of which any can be read alone.

_SIZE = hashlib.sha256().digest_size


def packed(pieces: Sequence[bytes]) -> bytes:
    """The content of a file: the offsets of the pieces and the end, then the pieces."""
    head = struct.pack(f"<{len(pieces) + 1}Q", *accumulate(map(len, pieces), initial=8 * (len(pieces) + 1)))
    return b"".join([head, *pieces])


def piece_of(number: int, read_range: Callable[[int, int], bytes]) -> bytes | None:
    """One piece, None if the file is too short; `read_range(start, stop)` reads from the file."""
    head = read_range(8 * number, 8 * (number + 2))
    if len(head) < 16:
        return None
    start, stop = struct.unpack("<2Q", head)
    return read_range(start, stop) if stop > start else b""


def with_checksum(piece: bytes) -> bytes:
    """A piece that a resumed run needs, with its sha256."""
    return hashlib.sha256(piece).digest() + piece


def without_checksum(piece: bytes | None) -> bytes | None:
    """The piece again; None if there is none or it is damaged: then it is computed again."""
    if piece is None or hashlib.sha256(piece[_SIZE:]).digest() != piece[:_SIZE]:
        return None
    return piece[_SIZE:]


# Parts of a run as Parquet files. Every page has a checksum, which is compared whenever the page is read.

_SMALL = 20_000  # rows that one thread reads faster than several
Kind = str  # samples, media, answers, exchanges, scores; verdicts/METRIC and exchanges/METRIC of a judge
Source = Path | IO[bytes]
# What pyarrow raises for a damaged file: its own exceptions are ValueErrors, OSErrors, KeyErrors and the like.
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, NotImplementedError, OSError, OverflowError, MemoryError)


def part_name(kind: Kind, number: int) -> str:
    """The file of a part in a run folder."""
    return f"{kind}{'.' if '/' in kind else '/'}part-{number:05d}.parquet"


def to_parquet(table: Any) -> Any:
    """A table as the content of a Parquet file, in an Arrow buffer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Lists of `item`, Arrow's name. Lists that were read from Parquet have `element`: equal content must have equal
    # bytes, wherever it comes from.
    fields = [
        field.with_type(pa.list_(field.type.value_type)) if pa.types.is_list(field.type) else field
        for field in table.schema
    ]
    renamed = pa.table(table.columns, schema=pa.schema(fields, table.schema.metadata))
    sink = pa.BufferOutputStream()
    pq.write_table(renamed, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def read_table(source: Source, columns: list[str] | None) -> Any:
    """A table with all columns or only the given ones that it has."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, page_checksum_verification=True) as file:
        present = None if columns is None else [name for name in columns if name in file.schema_arrow.names]
        return file.read(columns=present, use_threads=file.metadata.num_rows > _SMALL)


def read_schema(source: Source) -> Any:
    """The columns of a file."""
    import pyarrow.parquet as pq

    return pq.read_schema(source)


def has_values(source: Source, columns: Collection[str]) -> bool:
    """Whether a file has a value in one of these columns, from the statistics in its footer."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(source)
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = (group.column(index) for group in groups for index in range(group.num_columns))
    nested = tuple(f"{name}." for name in columns)  # the path of a list continues after its name
    wanted = (chunk for chunk in chunks if chunk.path_in_schema in columns or chunk.path_in_schema.startswith(nested))
    return any(map(_has_value, wanted))


def _has_value(chunk: Any) -> bool:
    """Whether a column chunk has a value, as far as its statistics say."""
    statistics = chunk.statistics
    return statistics is None or not statistics.has_null_count or statistics.null_count < chunk.num_values


def id_range(path: Path) -> tuple[str, str] | None:
    """The least and the greatest id of a file, from the statistics in its footer; None if they are unknown."""
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
        ends = [_ends(metadata.row_group(index), "id") for index in range(metadata.num_row_groups)]
        known = [pair for pair in ends if pair is not None]
        return (min(low for low, _ in known), max(high for _, high in known)) if known == ends and ends else None
    except _UNREADABLE:
        return None


def _ends(group: Any, column: str) -> tuple[str, str] | None:
    """The least and the greatest text of a column in a row group."""
    for index in range(group.num_columns):
        chunk = group.column(index)
        if chunk.path_in_schema == column:
            statistics = chunk.statistics
            if statistics is None or not statistics.has_min_max:
                return None
            return str(statistics.min), str(statistics.max)
    return None


@contextmanager
def faults_named(damaged: Callable[[str], DamagedFileError]) -> Iterator[None]:
    """Convert what Arrow raises for a file that is not valid to the error of `damaged`."""
    try:
        yield
    except _UNREADABLE as error:
        raise damaged(f"cannot be read: {described(error)}") from None


SCRATCH = "scratch"
REPLACED = f"replaced{TEMPORARY}"
_CONTENT = {
    *(
        "run.json",
        "samples",
        "media",
        "answers",
        "exchanges",
        "verdicts",
        "state",
        "scores",
        "results.json",
        "lint.json",
    ),
    *("report.html", "classification.json", "judges.json", "human.json", "scores.jsonl", "progress.json"),
    *(checksums.MANIFEST, checksums.EXCHANGES, checksums.FOLDER, SCRATCH),
}


def is_content(name: str) -> bool:
    """Whether a name in a run folder is a file or folder of the run; others belong to the user."""
    return name in _CONTENT
