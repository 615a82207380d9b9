"""Batch files of OpenAI's API: requests that are answered within a day, at a lower price.

    requests.jsonl   {"custom_id": "3-0f9a…", "method": "POST", "url": "/v1/chat/completions", "body": {…}}
    results.jsonl    {"custom_id": "3-0f9a…", "response": {"status_code": 200, "body": {…}}, "error": null}

The body of a request is the bytes that are sent when the endpoint is asked directly. `custom_id` is the row of the
sample and the start of the request's digest, so that the result of another request is not taken for its own. Results
come in any order, in any number of files, and failures in files of their own; only an index of them is in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.generate.protocol import RejectedError, Request

__all__ = ["BatchResult", "BatchResults", "BatchWriter", "custom_id", "refuse_existing"]

MOST_REQUESTS = 50_000  # per file
MOST_BYTES = 200_000_000
_DIGEST = 24  # characters of the digest in an id
_ID = re.compile(rf"(\d{{1,18}})-([0-9a-f]{{{_DIGEST}}})")
_LONGEST_LINE = 64 * 2**20  # bytes of a result


def custom_id(row: int, request: Request) -> str:
    """The id of a request: the row of its sample, and the start of its digest."""
    return f"{row}-{request.digest[:_DIGEST]}"


def refuse_existing(path: Path) -> None:
    """Refuse to replace requests that exist already."""
    numbered = re.compile(re.escape(path.stem) + r"-\d{5}" + re.escape(path.suffix))
    try:
        old = next((file for file in sorted(path.parent.iterdir()) if numbered.fullmatch(file.name)), None)
    except OSError as fault:
        raise ConfigError(f"{path.parent} is not a folder that can be read: {fault.strerror}") from None
    if path.exists() or old is not None:
        raise ConfigError(f"{path if path.exists() else old} already exists. Name another file for the requests")


class BatchWriter:
    """Writes requests to PATH, or to PATH-00001, PATH-00002 … if one file cannot hold them all.

    The files appear when the writer is closed.
    """

    def __init__(self, path: Path, url: str) -> None:
        self.path, self.requests = path, 0
        self.files: list[Path] = []  # after closing
        self._url = msgspec.json.encode(url)
        self._scratch: list[Path] = []
        self._stream: IO[bytes] | None = None
        self._lines = self._bytes = 0
        refuse_existing(path)

    def write(self, identifier: str, body: bytes) -> None:
        """Append a request."""
        name = msgspec.json.encode(identifier)
        line = b'{"custom_id":%b,"method":"POST","url":%b,"body":%b}\n' % (name, self._url, body)
        if len(line) > MOST_BYTES:
            raise RejectedError(
                f"the request has {len(line) / 1e6:,.0f} MB, and a batch file at most {MOST_BYTES / 1e6:,.0f} MB"
            )
        if self._stream is None or self._lines == MOST_REQUESTS or self._bytes + len(line) > MOST_BYTES:
            self._next_file()
        assert self._stream is not None
        self._stream.write(line)
        self._lines, self._bytes, self.requests = self._lines + 1, self._bytes + len(line), self.requests + 1

    def _next_file(self) -> None:
        if self._stream is not None:
            self._stream.close()
        scratch = self._numbered(len(self._scratch) + 1)
        scratch = scratch.with_name(f".{scratch.name}.part")
        try:
            self._stream = scratch.open("wb")
        except OSError as fault:
            raise ConfigError(f"{self.path} cannot be written: {fault.strerror}") from None
        self._scratch.append(scratch)
        self._lines = self._bytes = 0

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.stem}-{number:05}{self.path.suffix}")

    def close(self, *, is_failed: bool = False) -> None:
        """Give the files their names; after a failure, remove them."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if is_failed:
            for scratch in self._scratch:
                scratch.unlink(missing_ok=True)
            return
        is_single = len(self._scratch) == 1
        self.files = [self.path] if is_single else [self._numbered(n + 1) for n in range(len(self._scratch))]
        for scratch, target in zip(self._scratch, self.files, strict=True):
            scratch.replace(target)


class _Response(msgspec.Struct, frozen=True):
    status_code: int
    body: msgspec.Raw = msgspec.Raw()


class _Error(msgspec.Struct, frozen=True):
    code: str | None = None
    message: str | None = None


class _Result(msgspec.Struct, frozen=True):
    custom_id: str
    response: _Response | None = None
    error: _Error | None = None


@dataclass(frozen=True)
class BatchResult:
    """The result of a request: an HTTP status with the body of the reply, or an error of the batch."""

    place: str  # file and line
    status: int | None
    body: bytes
    error: str | None


@dataclass(frozen=True, slots=True)
class _Entry:
    file: int
    line: int
    offset: int
    length: int
    digest: str
    has_answer: bool


_DECODER = msgspec.json.Decoder(_Result)


class BatchResults:
    """The results in some files, by row. A result with an answer replaces one without."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = list(paths)
        self._rows: dict[int, _Entry] = {}
        self._streams: dict[int, IO[bytes]] = {}
        self._problems: list[Problem] = []
        for number, path in enumerate(self.paths):
            self._index(number, path)
        if self._problems:
            raise InputError(self._problems)

    def __len__(self) -> int:
        return len(self._rows)

    def refuse_unknown(self, rows: int) -> None:
        """Refuse results of rows that the run does not have."""
        problems = [
            self._problem(entry, f"the result is for sample number {row + 1:,}, and the run has {rows:,} samples.")
            for row, entry in sorted(self._rows.items())
            if row >= rows
        ]
        if problems:
            raise InputError(problems)

    def get(self, row: int, request: Request) -> BatchResult | None:
        """The result of a request; None if there is none. The result of another request for the row is refused."""
        entry = self._rows.get(row)
        if entry is None:
            return None
        if entry.digest != request.digest[:_DIGEST]:
            message = "the result is that of another request than the run makes for this sample."
            hint = "Has the prompt, a parameter or an image changed since the requests were written?"
            raise InputError([self._problem(entry, message, hint, request.id)])
        stream = self._streams.get(entry.file)
        if stream is None:
            stream = self._streams[entry.file] = self.paths[entry.file].open("rb")
        stream.seek(entry.offset)
        result = _DECODER.decode(stream.read(entry.length))
        place = f"{self.paths[entry.file]}:{entry.line}"
        if result.response is not None and result.error is None:
            return BatchResult(place, result.response.status_code, bytes(result.response.body), None)
        words = [text for text in (result.error.code, result.error.message) if text] if result.error else []
        return BatchResult(place, None, b"", ": ".join(words) or "neither a response nor an error")

    def close(self) -> None:
        """Close the files."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

    def _index(self, number: int, path: Path) -> None:
        try:
            with path.open("rb") as stream:
                offset = 0
                for line_number, line in enumerate(iter(lambda: stream.readline(_LONGEST_LINE + 1), b""), 1):
                    if line.strip():
                        self._see(number, line_number, offset, line)
                    offset += len(line)
        except OSError as fault:
            raise ConfigError(f"the results {str(path)!r} cannot be read: {fault.strerror}") from None

    def _see(self, number: int, line_number: int, offset: int, line: bytes) -> None:
        place = _Entry(number, line_number, offset, len(line), "", False)
        if len(line) > _LONGEST_LINE:
            raise InputError([self._problem(place, f"the line is longer than {_LONGEST_LINE // 2**20} MiB.")])
        try:
            result = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
            self._problems.append(self._problem(place, f"this is not a result of OpenAI's batch API: {fault}"))
            return
        match = _ID.fullmatch(result.custom_id)
        if match is None:
            hint = "Results belong to the requests that --batch-out has written."
            self._problems.append(self._problem(place, f"the custom_id {shorten(result.custom_id)} is unknown.", hint))
            return
        answered = result.error is None and result.response is not None and result.response.status_code == 200
        entry = _Entry(number, line_number, offset, len(line), match[2], answered)
        row = int(match[1])
        earlier = self._rows.get(row)
        if earlier is not None and earlier.has_answer and answered:
            other = f"{self.paths[earlier.file]}:{earlier.line}"
            self._problems.append(self._problem(entry, f"{result.custom_id!r} has a result already, in {other}."))
        elif earlier is None or answered:
            self._rows[row] = entry

    def _problem(self, entry: _Entry, message: str, hint: str | None = None, identifier: str | None = None) -> Problem:
        path = str(self.paths[entry.file])
        return Problem(code="BATCH_RESULT", file=path, line=entry.line, id=identifier, message=message, hint=hint)
