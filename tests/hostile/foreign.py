"""Run folders as somebody else could send them, and a command line that shows what reaches the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.captured_call import captured_call
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


def mmeval(*arguments: object) -> Printed:
    """Run the whole command in this process, with its handling of errors."""
    call = captured_call(*map(str, arguments))
    assert isinstance(call.status, int)
    return Printed(call.status, call.out, call.err)


def edited(folder: Path, change: Callable[[Any], object], file: str = "run.json") -> Path:
    """Change a JSON document of a run folder, with a checksum that fits: whoever sends a run can compute it."""
    rewrite_json(folder / file, change)
    return folder


def received(folder: Path, target: Path) -> Path:
    """A copy of a run, as if somebody else had made it: it is not signed with the user's key."""
    shutil.copytree(folder, target)
    return edited(target, lambda info: info.update(owner=None, created="2020-02-02T00:00:00+00:00"))


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
