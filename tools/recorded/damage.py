"""Damage every file of a run, or change what it depends on, continue the run, and say what becomes of it.

A file of the run is changed by one bit, cut in half, or removed. Something outside is changed while the run is
complete, or lacks a part of its scores, samples, checksums of media, answers or verdicts. Then the run is continued:

    as before        every file is as without the damage
    computed again   every file is as in a new run over what was changed
    refused          an error says why
    DIFFERS          it ended well, with other files
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tools.recorded.cases import HERE, text_of
from tools.recorded.record import Case, contents, normal, plain, prepared
from tools.site.shell import run, stripped
from tools.site.workspace import Workspace

FLIP = "flip"
LOST = ((), ("scores",), ("samples",), ("media",), ("answers", "exchanges"), ("verdicts", "exchanges"))  # part of each


@dataclass(frozen=True)
class Subject:
    """A run that is damaged.

    `change` has the files that it depends on: a word and its replacement, another file, or `flip` for one bit.
    """

    case: Case  # its steps make the run
    resume: str
    change: Mapping[str, str | list[str]] = field(default_factory=dict)


def _subject(name: str, fields: dict[str, Any]) -> Subject:
    files = {file: text_of(content) for file, content in fields.pop("files", {}).items()}
    others = {key: fields.pop(key) for key in ("resume", "change") if key in fields}
    return Subject(Case(name, files=files, **fields), **others)


SUBJECTS = {
    name: _subject(name, fields)
    for name, fields in yaml.safe_load((HERE / "damage.yaml").read_text(encoding="utf-8")).items()
}


def damages(subject: Subject) -> str:
    """The record of all damages to a run."""
    with prepared(subject.case) as work:
        trial = _Trial(subject, work)
        return "\n".join([*trial.inside(), *trial.outside()]) + "\n"


class _Trial:
    """A run that is restored before every damage."""

    def __init__(self, subject: Subject, work: Workspace) -> None:
        self.subject, self.work = subject, work
        self.path, self.stored = work.folder / "run", work.folder.parent / "stored"
        self._make()
        shutil.copytree(work.folder, self.stored)
        if refusal := self._resume():
            raise ValueError(f"{subject.case.name}: {refusal}")
        self.expected = self._files()

    def inside(self) -> Iterator[str]:
        """What becomes of the run after damages to its files."""
        yield f"$ {self.subject.resume}"
        for name in contents(self.stored / "run"):
            outcomes: dict[str, list[str]] = {}
            for damage in (_flip, _cut, Path.unlink):
                self._restore()
                damage(self.path / name)
                outcomes.setdefault(self._outcome(), []).append(damage.__name__.strip("_"))
            for outcome, kinds in outcomes.items():
                yield f"{name} ({', '.join(kinds)}): {outcome}"

    def outside(self) -> Iterator[str]:
        """What becomes of the run after changes to what it depends on."""
        for name, change in self.subject.change.items():
            fresh = self._fresh(name, change)
            for kinds in LOST:
                self._restore()
                folders = [self.path / kind for kind in kinds]
                if not all(folder.is_dir() for folder in folders):
                    continue
                for folder in folders:
                    min(folder.iterdir()).unlink()
                _change(self.work.folder, name, change)
                lost = f", a part of {' and '.join(kinds)} lost" if kinds else ""
                yield f"{name} changed{lost}: {self._outcome(fresh)}"

    def _make(self) -> None:
        for step in self.subject.case.steps:
            run(self.work.meant(step), self.work.folder)

    def _fresh(self, name: str, change: str | list[str]) -> dict[str, bytes]:
        """The files of a new run over what was changed; none if it is refused."""
        self._restore()
        shutil.rmtree(self.path)
        _change(self.work.folder, name, change)
        self._make()
        return {} if self._resume() else self._files()

    def _restore(self) -> None:
        for path in self.work.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.stored, self.work.folder, dirs_exist_ok=True)

    def _files(self) -> dict[str, bytes]:
        return {name: normal(name, content, self.work) for name, content in contents(self.path).items()}

    def _resume(self) -> str:
        """Continue the run. What is printed if it is refused, "" otherwise."""
        done = run(self.work.meant(self.subject.resume), self.work.folder)
        return plain(stripped(done.stderr), self.work).strip() if done.status else ""

    def _outcome(self, fresh: Mapping[str, bytes] | None = None) -> str:
        try:
            refusal = self._resume()
        except Exception as error:  # noqa: BLE001 - a bug of the program
            return f"CRASHES: {error!r}"
        after = self._files()
        if refusal:
            return f"refused: {refusal}"
        if after == self.expected:
            return "as before"
        if after == fresh:
            return "computed again"
        names = sorted(name for name in {*after, *self.expected} if after.get(name) != self.expected.get(name))
        return f"DIFFERS: {', '.join(name if name in after else f'{name} is missing' for name in names)}"


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[_place(path)] ^= 1
    path.write_bytes(content)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: _place(path)])


def _place(path: Path) -> int:
    """The middle of a file. In run.json it is before the first path, whose length depends on the machine."""
    return 30 if path.name == "run.json" else path.stat().st_size // 2


def _change(folder: Path, name: str, change: str | list[str]) -> None:
    if change == FLIP:
        _flip(folder / name)
    elif isinstance(change, str):
        shutil.copy(folder / change, folder / name)
    else:
        text = (folder / name).read_text(encoding="utf-8")
        word, replacement = change
        if word not in text:
            raise ValueError(f"{name} does not have {word!r}")
        (folder / name).write_text(text.replace(word, replacement), encoding="utf-8")
