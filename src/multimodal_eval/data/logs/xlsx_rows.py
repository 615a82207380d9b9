"""Rows of the first sheet of an .xlsx workbook, as text: a zip of XML, read as a stream within limits.

Cells keep what is written: `None`, `N/A` and `007` stay text, numbers stay as the file spells them, and an empty cell
is an empty text. A date is the number that the file has for it. Formulas give the value that was stored with them.
External entities and document types are refused, so that nothing outside the file is read and nothing expands.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

from multimodal_eval.core.errors import InputError, shorten
from multimodal_eval.data.logs.zip_entries import leads_outside
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.problems import Problems

__all__ = ["read_xlsx"]

_BLOCK = 1 << 16
_END = b"PK\5\6"
_MOST_DIRECTORY = 1 << 20  # bytes of the directory of the archive; a workbook needs a few thousand
_COLUMN = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})")
_MOST_COLUMNS = 16_384  # of the format
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_WORKBOOK, _RELATIONS, _SHARED = "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/sharedStrings.xml"
_BOOLEANS = {"0": "False", "1": "True"}
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError),
    *(OverflowError, LookupError),
)


class _DamagedError(Exception):
    """The workbook cannot be read."""


def read_xlsx(path: Path, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """(number, cells) of every row of the first sheet, the header among them."""
    file = str(path)
    try:
        _check_directory(path)
        with zipfile.ZipFile(path) as archive:
            yield from _rows(archive, path)
    except InputError:  # of a limit
        raise
    except _DamagedError as fault:
        problems.add("FORMAT", f"not a readable .xlsx file: {fault}", file=file)
    except expat.ExpatError as fault:
        problems.add("SYNTAX", f"not a readable .xlsx file: {fault}", file=file)
    except _ZIP_ERRORS as fault:
        problems.add("ENCODING", f"not a readable .xlsx file: {shorten(str(fault))}", file=file)


def _check_directory(path: Path) -> None:
    """Refuse an archive with a very large directory, which would be read into memory."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - 65_557))
        tail = stream.read()
    place = tail.rfind(_END)
    if place < 0 or place + 22 > len(tail):
        raise _DamagedError("the directory at its end is missing")
    if int.from_bytes(tail[place + 12 : place + 16], "little") > _MOST_DIRECTORY:
        raise _DamagedError("its directory is too large for a workbook")


def _rows(archive: zipfile.ZipFile, path: Path) -> Iterator[tuple[int, list[str]]]:
    names = set(archive.namelist())
    if outside := sorted(filter(leads_outside, names)):
        raise _DamagedError(f"the entry {shorten(outside[0])} leads out of the archive")
    size, file = path.stat().st_size, str(path)
    shared = list(_shared_texts(archive, file, size)) if _SHARED in names else []
    sheet = _first_sheet(archive, names, file, size)
    cells, budget = _Cells(shared, file), limits.Budget(file, size)
    with archive.open(sheet) as entry:
        for _ in _parsed(entry, cells, file, size, whole=False):
            rows, cells.rows = cells.rows, []
            for number, row in rows:
                budget.spend(len(row))
                yield number, row


def _first_sheet(archive: zipfile.ZipFile, names: set[str], file: str, size: int) -> str:
    """The entry of the first sheet, by the workbook, or by its name."""
    sheets = sorted((name for name in names if _SHEET.fullmatch(name)), key=lambda name: (len(name), name))
    if not sheets:
        raise _DamagedError("it has no sheet")
    if _WORKBOOK in names and _RELATIONS in names:
        first = _Found("sheet")
        with archive.open(_WORKBOOK) as entry:
            _all(entry, first, file, size)
        relations = _Found("Relationship")
        with archive.open(_RELATIONS) as entry:
            _all(entry, relations, file, size)
        wanted = next((value for key, value in first.first.items() if key.rpartition(":")[2] == "id"), None)
        for relation in relations.all:
            if relation.get("Id") == wanted:
                target = relation.get("Target", "").removeprefix("/")
                target = target if target.startswith("xl/") else f"xl/{target}"
                if target in names:
                    return target
    return sheets[0]


class _Found:
    """Collects the attributes of elements with one name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.all: list[dict[str, str]] = []

    @property
    def first(self) -> dict[str, str]:
        return self.all[0] if self.all else {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] == self._name:
            self.all.append(attributes)

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass


class _Texts:
    """Collects the shared texts: runs of `t` below each `si`, without phonetic guides."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._parts: list[str] = []
        self._reads = False
        self._guides = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "si":
            self._parts = []
        elif name == "rPh":
            self._guides += 1
        self._reads = name == "t" and not self._guides

    def end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name == "si":
            self.texts.append(_unescaped("".join(self._parts)))
        elif name == "rPh":
            self._guides -= 1
        self._reads = False

    def text(self, data: str) -> None:
        if self._reads:
            self._parts.append(data)


class _Cells:
    """Collects the rows of a sheet."""

    def __init__(self, shared: list[str], file: str) -> None:
        self.rows: list[tuple[int, list[str]]] = []
        self._shared, self._file = shared, file
        self._number, self._row = 0, list[str]()
        self._column, self._kind = 0, ""
        self._parts: list[str] = []
        self._reads = False
        self._used, self._most = 0, limits.current().text_bytes

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "row":
            number = attributes.get("r", "")
            self._number = int(number) if number.isdecimal() and len(number) < 10 else self._number + 1
            self._row, self._used = [], 0
        elif name == "c":
            self._kind, self._parts = attributes.get("t", "n"), []
            self._column = _column(attributes.get("r"), len(self._row))
        self._reads = name == "v" or (name == "t" and self._kind == "inlineStr")

    def text(self, data: str) -> None:
        if self._reads:
            self._used += len(data)
            if self._used > self._most:
                limits.refuse_text(self._file, self._number)
            self._parts.append(data)

    def end(self, name: str) -> None:
        self._reads = False
        name = name.rpartition(":")[2]
        if name == "c":
            missing = self._column - len(self._row)
            if missing < 0:
                raise _DamagedError(f"the cells of row {self._number} are not in order")
            self._row.extend([""] * missing)
            self._row.append(self._value("".join(self._parts)))
        elif name == "row":
            self.rows.append((self._number, self._row))

    def _value(self, text: str) -> str:
        if self._kind == "s":
            place = int(text) if text.isdecimal() and len(text) < 10 else -1
            if not 0 <= place < len(self._shared):
                raise _DamagedError(f"row {self._number} refers to a text that is not in the file")
            self._used += len(self._shared[place])
            if self._used > self._most:
                limits.refuse_text(self._file, self._number)
            return self._shared[place]
        if self._kind == "b":
            return _BOOLEANS.get(text, text)
        return _unescaped(text) if self._kind in ("inlineStr", "str") else text


def _column(reference: str | None, after: int) -> int:
    """The place of a cell in its row, from a reference such as `B7`."""
    match = None if reference is None else _COLUMN.fullmatch(reference)
    if match is None:
        return after
    number = 0
    for letter in match[1].upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    if number > _MOST_COLUMNS:
        raise _DamagedError(f"it has the cell {reference}, beyond the last column")
    return number - 1


def _unescaped(text: str) -> str:
    """The text without the escapes of characters that XML cannot have, such as `_x000D_`."""
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda match: _character(match), text)


def _character(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return match[0] if 0xD800 <= code < 0xE000 else chr(code)


def _shared_texts(archive: zipfile.ZipFile, file: str, size: int) -> Iterator[str]:
    texts = _Texts()
    with archive.open(_SHARED) as entry:
        for _ in _parsed(entry, texts, file, size, whole=True):
            yield from texts.texts
            texts.texts = []


def _all(entry: IO[bytes], handler: _Found, file: str, size: int) -> None:
    for _ in _parsed(entry, handler, file, size, whole=True):
        pass


def _parsed(
    entry: IO[bytes], handler: _Found | _Texts | _Cells, file: str, size: int, *, whole: bool
) -> Iterator[None]:
    """Parse an entry, a block at a time; `whole`: its content will be in memory."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    stream = limits.bounded(entry, file, size, whole=whole)
    while block := stream.read(_BLOCK):
        parser.Parse(block, False)
        yield
    parser.Parse(b"", True)
    yield


def _refuse_doctype(*_: Any) -> None:
    raise _DamagedError("it declares a document type, which no workbook does")
