"""Execute a page: write its files, run its blocks, and put their outputs into its text."""

from __future__ import annotations

import csv
import json
import re
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path

import yaml

from tools.site.blocks import RUN, Block, Page, parse
from tools.site.code import Namespace, run_python, run_session
from tools.site.setups import prepare
from tools.site.shell import run, stripped
from tools.site.workspace import Workspace, workspace

NUMBER = re.compile(r"-?\d+\.\d+")
VERSION = re.compile(r"(?<=pillow-)[0-9.]+")  # in signatures; each machine has its own


@dataclass
class Outcome:
    """What became of a page."""

    page: str
    text: str = ""  # with the outputs of now
    executed: int = 0
    files: int = 0
    shown: int = 0  # data, outputs of other programs, prompts
    not_run: list[tuple[int, str]] = field(default_factory=list)  # line, reason
    problems: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Every block was executed or is marked, and every output is current."""
        return not self.problems and not self.stale


class BlockError(Exception):
    """A block failed."""


def execute(text: str, name: str, home: Path | None = None) -> Outcome:
    """Execute a page in a folder of its own. `home` is the folder with fetched models."""
    page = parse(text)
    outcome = Outcome(name, text)
    outcome.problems += _unknown(page, name)
    with workspace(home) as work:
        prepare(page.setups, work)
        runner = _Runner(work, page, outcome)
        for block in page.blocks:
            runner.take(block)
    outcome.text = runner.text()
    return outcome


def _unknown(page: Page, name: str) -> Iterator[str]:
    for block in page.blocks:
        if block.kind == "unknown" and block.marks.not_run is None:
            what = f"the language `{block.language}`" if block.language else "no language"
            yield (
                f"{name}:{block.line}: a block with {what} is neither executed nor marked. "
                "Give it a language, or write `<!-- not run: REASON -->` before it"
            )


class _Runner:
    """Runs the blocks of one page, in their order, with one Python namespace."""

    def __init__(self, work: Workspace, page: Page, outcome: Outcome) -> None:
        self.work, self.page, self.outcome = work, page, outcome
        self.space: Namespace = {"__name__": "__main__"}
        self.changes: list[tuple[Block, str]] = []

    def take(self, block: Block) -> None:
        """Write or run a block."""
        outcome = self.outcome
        if block.marks.not_run is not None:
            if not block.marks.not_run:
                outcome.problems.append(f"{outcome.page}:{block.line}: `not run` has no reason")
            outcome.not_run.append((block.line, block.marks.not_run))
            return
        try:
            if block.kind == "file":
                self._write(block)
                outcome.files += 1
                _check_data(block)
            elif block.kind in RUN:
                self._run(block)
                outcome.executed += 1
            else:
                outcome.shown += 1
                _check_data(block)
        except Exception as error:  # noqa: BLE001 - code of a page may raise anything
            said = str(error) if isinstance(error, BlockError) else "".join(traceback.format_exception(error)[-3:])
            outcome.problems.append(f"{outcome.page}:{block.line}: {said.rstrip()}")

    def _write(self, block: Block) -> None:
        path = self.work.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.work.meant(block.text), encoding="utf-8")

    def _run(self, block: Block) -> None:
        name = f"{self.outcome.page}:{block.line}"
        if block.kind == "python":
            printed = self.work.shown(run_python(block.text, self.space, name))
            self._compare(block, block.output, printed)
        elif block.kind == "pycon":
            self._compare(block, block, run_session(block.text, self.space, name))
        elif block.kind == "script":
            self._succeeds(f"set -e\n{block.text}", block)
        elif block.kind == "console":
            self._compare(block, block, "".join(self._session(block)))
        else:
            *_, last = [self._succeeds(command, block) for command in commands_of(block)]
            self._compare(block, block.output, last)

    def _session(self, block: Block) -> Iterator[str]:
        for command, before in _transcript(block.text):
            printed = self._succeeds(command, block)
            yield f"$ {command}\n{before if block.marks.varies else printed}"

    def _succeeds(self, command: str, block: Block) -> str:
        done = run(self.work.meant(command), self.work.folder)
        printed = self.work.shown(done.output)
        if done.status != block.marks.exit:
            raise BlockError(f"`{command}` has exit status {done.status}, not {block.marks.exit}:\n{printed}")
        return printed

    def _compare(self, block: Block, shown: Block | None, printed: str) -> None:
        if shown is None or block.marks.varies or shown.marks.varies:
            return
        if not _same(shown.text, printed, about="weights" in self.page.needs):
            self.outcome.stale.append(f"{self.outcome.page}:{shown.line}: {_difference(shown.text, printed)}")
            self.changes.append((shown, printed))

    def text(self) -> str:
        """The page with the outputs of now."""
        lines = self.page.text.split("\n")
        for block, printed in sorted(self.changes, key=lambda change: -change[0].start):
            new = [f"{block.prefix}{line}".rstrip() for line in printed.rstrip("\n").split("\n")] if printed else []
            lines[block.start : block.end] = new
        return "\n".join(lines)


def _same(old: str, new: str, about: bool) -> bool:
    """Whether two outputs are equal; `about`: up to the last digits, which other processors compute differently."""
    before, after = (VERSION.sub("", stripped(text)) for text in (old, new))
    if before == after or not about:
        return before == after
    if NUMBER.sub("#", before) != NUMBER.sub("#", after):
        return False
    pairs = zip(NUMBER.findall(before), NUMBER.findall(after), strict=True)
    return all(isclose(float(first), float(second), rel_tol=1e-3, abs_tol=2e-4) for first, second in pairs)


def _difference(old: str, new: str) -> str:
    before, after = stripped(old).splitlines(), stripped(new).splitlines()
    pairs = [*zip(before, after, strict=False), *((line, "") for line in before[len(after) :])]
    pairs += [("", line) for line in after[len(before) :]]
    first, second = next(pair for pair in pairs if pair[0] != pair[1])
    return f"the output is stale. On the page:\n  {first}\nnow:\n  {second}"


def commands_of(block: Block) -> list[str]:
    """The commands of a block."""
    if block.kind == "console":
        return [re.sub(r"\\\n\s*", "", command) for command, _ in _transcript(block.text)]
    joined = re.sub(r"\\\n\s*", "", block.text)
    return [line.removeprefix("$ ") for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def _transcript(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, as written, with the output that follows each."""
    command: list[str] = []
    output: list[str] = []
    for line in text.splitlines():
        if command and command[-1].endswith("\\") and not output:
            command.append(line)
        elif line.startswith("$ "):
            if command:
                yield "\n".join(command), "".join(output)
            command, output = [line.removeprefix("$ ")], []
        elif not command:
            raise BlockError(f"a console block starts with a line `$ COMMAND`. Got {line!r} instead")
        else:
            output.append(f"{line}\n")
    if command:
        yield "\n".join(command), "".join(output)


def _check_data(block: Block) -> None:
    """A block with data must be valid data. An ellipsis marks an excerpt."""
    if "…" in block.text or "..." in block.text:
        return
    name = block.language or Path(block.file).suffix.removeprefix(".")
    try:
        if name == "json" and block.text.lstrip().startswith(("{", "[")):
            _check_json(block.text)
        elif name == "jsonl":
            for line in block.text.splitlines():
                json.loads(line)
        elif name == "yaml":
            yaml.safe_load(block.text)
        elif name == "toml":
            tomllib.loads(block.text)
        elif name == "csv":
            list(csv.reader(block.text.splitlines(), strict=True))
    except (ValueError, yaml.YAMLError, csv.Error) as error:
        raise BlockError(f"the block is not valid {name}: {error}") from None


def _check_json(text: str) -> None:
    """One document, or one per line."""
    try:
        json.loads(text)
    except ValueError:
        for line in text.splitlines():
            json.loads(line)
