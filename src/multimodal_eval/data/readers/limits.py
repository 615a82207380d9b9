"""What a file may cost: how much larger its content may be than the file, and the memory that one record may take.

The limits are those of `--max-expansion` and `--max-record-mb`. `using` sets them for everything that is read inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, NoReturn, Protocol, cast

import msgspec

from multimodal_eval.core.errors import InputError, Problem, shorten

__all__ = [
    "Budget",
    "ByteStream",
    "Limits",
    "bounded",
    "budget_of",
    "check_json",
    "current",
    "refuse_expansion",
    "refuse_nesting",
    "refuse_record",
    "refuse_text",
    "using",
]

MB = 1 << 20
DEEPEST = 100  # levels of lists and objects in a value
STREAM = 256 * MB  # a stream of records may have this size whatever the size of the file
DOCUMENT = 128 * MB  # so may a file that is decompressed as a whole
_DOCUMENT_SHARE = 4  # such a file is in memory, and may expand less by this factor
_TEXT_SHARE = 8  # decoded JSON takes about this many times the memory of its text
_WORK = 1024 * MB  # the work on Python objects may have this size, in bytes, whatever the size of the file
_STEP, _RECORD = 50, 8  # bytes per value, and the values of a record besides its own
_VALUE = 100  # bytes of a decoded JSON value, with its share of the object that contains it


class Limits(msgspec.Struct, frozen=True):
    """`expansion`: bytes of content per byte of the file. `record_mb`: memory of one record, in MB."""

    expansion: int = 100
    record_mb: int = 512

    def stream_bytes(self, size: int) -> int:
        """What a compressed file of this size may contain, if it is read record by record."""
        return max(STREAM, size * self.expansion)

    def document_bytes(self, size: int) -> int:
        """What a compressed file of this size may contain, if it is decompressed as a whole."""
        return max(DOCUMENT, size * self.expansion // _DOCUMENT_SHARE)

    @property
    def record_bytes(self) -> int:
        """The memory of one record."""
        return self.record_mb * MB

    @property
    def text_bytes(self) -> int:
        """The length of the text of one record."""
        return self.record_bytes // _TEXT_SHARE


_CURRENT: ContextVar[Limits] = ContextVar("limits")
_DEFAULT = Limits()


def current() -> Limits:
    """The limits that hold now."""
    return _CURRENT.get(_DEFAULT)


@contextmanager
def using(expansion: int | None = None, record_mb: int | None = None) -> Iterator[None]:
    """Set limits for everything that is read inside; None leaves a limit as it is."""
    before = current()
    token = _CURRENT.set(Limits(expansion or before.expansion, record_mb or before.record_mb))
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Budget:
    """The work on records that compiled code leaves to Python, in values; a small file must not cause hours of it."""

    def __init__(self, file: str, size: int) -> None:
        self._file, self._size = file, size
        self._most = max(_WORK, size * current().expansion)
        self._left = self._most

    def spend(self, values: int, records: int = 1) -> None:
        """Subtract the work on some records."""
        self._left -= _STEP * (values + _RECORD * records)
        if self._left < 0:
            refuse_expansion(self._file, self._most, self._size)

    def spend_json(self, text: bytes) -> None:
        """Subtract the work on a record in JSON."""
        from multimodal_eval._native import count_values

        self.spend(count_values(text))


class ByteStream(Protocol):
    """What the readers need of a stream."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; all of them without a size."""


class _Bounded:
    """A decompressed stream that ends with an error after `most` bytes."""

    def __init__(self, stream: ByteStream, most: int, size: int, file: str) -> None:
        self._stream, self._left, self._most, self._size, self._file = stream, most, most, size, file
        self.budget = Budget(file, size)

    def read(self, size: int = -1) -> bytes:
        """Some bytes; all of them if no size is given."""
        if size < 0:
            return b"".join(iter(lambda: self.read(MB), b""))
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            refuse_expansion(self._file, self._most, self._size)
        return data

    def readable(self) -> bool:
        """Always true."""
        return True


def bounded(stream: ByteStream, file: str, size: int, *, whole: bool = False) -> IO[bytes]:
    """The decompressed content of a file of `size` bytes, as a stream that raises an InputError if it is too long.

    `whole`: all of it will be in memory at once.
    """
    limits = current()
    most = limits.document_bytes(size) if whole else limits.stream_bytes(size)
    return cast(IO[bytes], _Bounded(stream, most, size, file))


def budget_of(stream: IO[bytes]) -> Budget | None:
    """The budget of a decompressed stream; None for a plain file, whose size is limit enough."""
    return getattr(stream, "budget", None)


def refuse_expansion(file: str, most: int, size: int) -> NoReturn:
    """Refuse a file whose content is longer than `most` bytes."""
    factor = current().expansion
    message = f"the file has {size:,} bytes, and its content takes more than {most:,}: it may be a decompression bomb."
    hint = f"If it is not, raise the limit, which is {factor} now: {_option('max_expansion', _next(factor))}"
    raise InputError([Problem(code="EXPANSION", message=message, file=file, hint=hint)])


def refuse_record(file: str, line: int | None, memory: int, what: str = "the record") -> NoReturn:
    """Refuse a record, or another unit that is in memory at once, that would take too much memory."""
    limit = current().record_mb
    message = f"{what} would take about {memory // MB:,} MB of memory."
    option = _option("max_record_mb", max(_next(limit), memory // MB + 1))
    hint = f"Raise the limit, which is {limit} MB now: {option}"
    raise InputError([Problem(code="TOO_LONG", message=message, file=file, line=line, hint=hint)])


def _option(setting: str, value: int) -> str:
    """How a command gets another limit."""
    return f"--{setting.replace('_', '-')} {value}"


def refuse_nesting(column: str, file: str | None = None) -> NoReturn:
    """Refuse a column whose values have too many levels."""
    message = f"the column {shorten(column)} is nested deeper than {DEEPEST} levels"
    raise InputError([Problem(code="NESTING", message=message, file=file, field=column)])


def refuse_text(file: str, line: int) -> NoReturn:
    """Refuse a record whose text is too long."""
    limits = current()
    message = f"a record is longer than {limits.text_bytes // MB} MB."
    option = _option("max_record_mb", _next(limits.record_mb))
    hint = f"Raise the limit of its memory, which is {limits.record_mb} MB now: {option}"
    raise InputError([Problem(code="TOO_LONG", message=message, file=file, line=line, hint=hint)])


def check_json(text: bytes, file: str, line: int | None, what: str = "the record", free: int = 0) -> None:
    """Refuse JSON text whose values would take too much memory; a shorter text than `free` is accepted."""
    limits = current()
    if len(text) * _VALUE // 2 <= limits.record_bytes or len(text) <= free:  # a value has two characters or more
        return
    from multimodal_eval._native import count_values

    memory = count_values(text) * _VALUE
    if memory > limits.record_bytes:
        refuse_record(file, line, memory, what)


def _next(limit: int) -> int:
    return 10 * limit
