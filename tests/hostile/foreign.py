"""Run folders as somebody else could send them, and a command line that shows what reaches the terminal."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from multimodal_eval.cli.main import main
from tests.edited_runs import rewrite_json

Place = tuple[str | int, ...]  # of a value in a JSON document


@dataclass(frozen=True)
class Printed:
    """What a command wrote, and its exit code."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return (self.out + self.err).decode()


def mmeval(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Printed:
    """Run the whole command in this process, with its handling of errors."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["mmeval", *map(str, arguments)])
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        with pytest.raises(SystemExit) as ended:
            main()
    out, err = (stream.buffer.getvalue() for stream in streams)  # type: ignore[attr-defined]
    return Printed(int(ended.value.code or 0), out, err)


def edited(folder: Path, change: Callable[[Any], object], file: str = "run.json") -> Path:
    """Change a JSON document of a run folder, with a checksum that fits: whoever sends a run can compute it."""
    rewrite_json(folder / file, change)
    return folder


def received(folder: Path, target: Path) -> Path:
    """A copy of a run, as if it had been sent: it is not in the list of the user's runs."""
    shutil.copytree(folder, target)
    return target


def texts(content: Any, place: Place = ()) -> Iterator[Place]:
    """The places of all texts in a JSON document."""
    if isinstance(content, str):
        yield place
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield from texts(value, (*place, key))


def put(content: Any, place: Place, value: object) -> None:
    """Replace the value at a place."""
    for key in place[:-1]:
        content = content[key]
    content[place[-1]] = value
