"""Do what a newcomer does, from a clone to a report of a file of one's own: python -m tools.newcomer

The newcomer first tries every command that the demo and its results suggest, without further downloads. The file has
columns with other names than the documentation uses. The newcomer knows nothing: whatever a message proposes after
`--map` is added to the command, until it works. Every step is timed. The script fails if a message lacks what the
newcomer needs, or if all steps together take more than ten minutes.

    python -m tools.newcomer                               # clone, install, score
    python -m tools.newcomer --python .venv/bin/python     # in an environment with the package
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600  # seconds
FILE, RUN = "answers.jsonl", "runs/mine"
METRICS = ("rouge_l", "bleu")
PRINTED = ("ROUGE-L", "BLEU-4")  # their names in tables
ROWS = (
    {"image_id": 7, "answer": "a dog on a couch", "references": ["a brown dog on the couch"], "system": "small"},
    {"image_id": 8, "answer": "a man rides a horse", "references": ["a man riding a horse"], "system": "small"},
    {
        "image_id": 9,
        "answer": "a cat on the roof",
        "references": ["a cat on a roof", "the cat sits"],
        "system": "large",
    },
)
# What the messages must lead to, in any order: the fields and the columns that hold them.
COLUMNS = {"generated_answer": "answer"}
PROPOSED = re.compile(r"(?<=add: )--map (\w+)=(\w+)")
SETUP = re.compile(r"^    (python3 -m venv .+?) && (\S+/mmeval demo --fetch)$", re.MULTILINE)
SUGGESTED = re.compile(r"\bmmeval [a-z]+(?: (?!Next)[^\s`,;│]+)*")
PLACEHOLDER = re.compile(r"[A-Z]{2,}|…")


class NoHelpError(Exception):
    """A message, or a file, lacks what a newcomer needs."""


@dataclass(frozen=True)
class Step:
    """A step that is done."""

    title: str
    seconds: float
    got: str  # what the newcomer took from it


@dataclass
class Newcomer:
    """Works in a folder, with `mmeval` of an environment."""

    folder: Path
    mmeval: Sequence[str] = ("mmeval",)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    steps: list[Step] = field(default_factory=list)
    suggestions: list[str] = field(default_factory=list)  # commands that the demo has printed
    message: str = ""  # what the last command has printed

    def clone_and_install(self, source: str) -> None:
        """Clone the repository and run README's command up to the demo."""
        for name in ("PYTHONPATH", "VIRTUAL_ENV"):
            self.environment.pop(name, None)
        clone = self.folder / "multimodal-eval"
        self._call("clone", ["git", "clone", "--quiet", source, str(clone)])
        setup = SETUP.search((clone / "README.md").read_text(encoding="utf-8"))
        if setup is None:
            raise NoHelpError("README has no command that installs the package and runs the demo")
        for title, command in zip(("environment", "install"), setup[1].split(" && "), strict=True):
            self._call(title, shlex.split(command), folder=clone)
        self.mmeval = (str(clone / ".venv" / "bin" / "mmeval"),)
        self._call("first command", [*self.mmeval, "--help"], needs=["score", "validate", "report"])
        self._call("demo", [*self.mmeval, "demo", "--fetch"], needs=["Who is better? ", "mmeval demo --files demo"])
        self.suggestions = commands_in(self.message)

    def follow_suggestions(self) -> None:
        """Run every command that the demo suggests, and those that these suggest."""
        left, done = self.suggestions or ["mmeval demo --files demo"], set[str]()
        while left:
            command = left.pop(0)
            if command not in done:
                done.add(command)
                self._mmeval(command.removeprefix("mmeval ")[:24], shlex.split(command)[1:])
                left += commands_in(self.message)
        for needed in ("score", "compare", "report", "card", "lint"):
            if not any(command.startswith(f"mmeval {needed} ") for command in done):
                raise NoHelpError(f"nothing suggests `mmeval {needed}`: {sorted(done)}")

    def score_own_file(self) -> None:
        """Write a file with other column names, and follow the messages to a report."""
        lines = "".join(json.dumps(row) + "\n" for row in ROWS)
        (self.folder / FILE).write_text(lines, encoding="utf-8")
        self._mmeval("misspelled metric", ["score", FILE, "--metrics", "rogue_l"], 1, needs=["'rouge_l'"])
        scoring = ["score", FILE, "--metrics", ",".join(METRICS), "-o", RUN]
        options = self._follow(scoring, [*PRINTED, "3 / 3", f"report: {RUN}/report.html"])
        self._open_report()
        self._mmeval("score again", [*scoring, *options], 1, needs=[RUN, "already exists", "--overwrite"])
        if self._follow(["validate", FILE], ["3 samples"]) != options:
            raise NoHelpError("`validate` and `score` propose different options")

    def _follow(self, command: list[str], needs: Sequence[str]) -> list[str]:
        """Repeat the command with what its messages propose. Returns the options that were needed."""
        options: list[str] = []
        columns: dict[str, str] = {}
        while columns != COLUMNS:
            title = f"{command[0]}, attempt {len(columns) + 1}"
            names = [repr(column) for name, column in COLUMNS.items() if name not in columns]
            message = self._mmeval(title, [*command, *options], 1, needs=["error: ", *names])
            proposed = PROPOSED.search(message)
            if proposed is None or COLUMNS.get(proposed[1]) != proposed[2] or proposed[1] in columns:
                raise NoHelpError(f"the message does not say which option to add:\n{message}")
            if (self.folder / RUN).exists() and command[0] == "score":
                raise NoHelpError(f"a refused input left the folder {RUN}:\n{message}")
            columns[proposed[1]] = proposed[2]
            options += proposed[0].split()
            self.steps[-1] = replace(self.steps[-1], got=f"says: {proposed[0]}")
        self._mmeval(f"{command[0]}, attempt {len(columns) + 1}", [*command, *options], needs=needs)
        return options

    def _open_report(self) -> None:
        """Read the report as a browser gets it: complete in one file, with the scores and the answers."""
        started = time.perf_counter()
        report = (self.folder / RUN / "report.html").read_text(encoding="utf-8")
        for text in ("<title>", *PRINTED, *(str(row["answer"]).split()[-1] for row in ROWS)):
            if text not in report:
                raise NoHelpError(f"the report lacks {text!r}")
        loaded = re.findall(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=[\"']?(?!data:|#)([^\"'> ]+)", report)
        if loaded:
            raise NoHelpError(f"the report loads other files: {loaded}")
        self._done("open the report", started, f"{len(report) // 1000} kB, loads nothing else")

    def _mmeval(self, title: str, arguments: Sequence[str], code: int = 0, *, needs: Sequence[str] = ()) -> str:
        return self._call(title, [*self.mmeval, *arguments], code, needs=needs)

    def _call(
        self,
        title: str,
        command: Sequence[str],
        code: int = 0,
        *,
        needs: Sequence[str] = (),
        folder: Path | None = None,
    ) -> str:
        """Run a command in the folder. Its output must contain every text in `needs`."""
        started = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=folder or self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.message = message = done.stdout + done.stderr
        shown = shlex.join([Path(command[0]).name, *command[1:]])
        if done.returncode != code:
            raise NoHelpError(f"$ {shown}\nexit code {done.returncode} instead of {code}:\n{message}")
        for text in needs:
            if text not in message:
                raise NoHelpError(f"$ {shown}\nthe output lacks {text!r}:\n{message}")
        self._done(title, started, f"exit code {code}")
        return message

    def _done(self, title: str, started: float, got: str) -> None:
        self.steps.append(Step(title, time.perf_counter() - started, got))


def commands_in(message: str) -> list[str]:
    """The commands that a message suggests, without those that have a placeholder."""
    return [command for command in SUGGESTED.findall(message) if not PLACEHOLDER.search(command)]


def table(steps: Sequence[Step]) -> str:
    lines = [f"{step.title:<24} {step.seconds:>7.1f} s   {step.got}" for step in steps]
    total = sum(step.seconds for step in steps)
    return "\n".join([*lines, f"{'total':<24} {total:>7.1f} s   of at most {LIMIT} s"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.newcomer", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", help="an interpreter with the package, instead of a clone and an installation")
    parser.add_argument("--source", default=str(ROOT), help="the repository to clone; default: this one")
    parser.add_argument("--keep", metavar="DIR", help="work in this new folder, and keep it")
    chosen = parser.parse_args(arguments)
    folder = Path(chosen.keep or tempfile.mkdtemp(prefix="newcomer-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    newcomer = Newcomer(folder)
    failure = ""
    try:
        if chosen.python:
            newcomer.mmeval = (str(Path(chosen.python).absolute()), "-m", "multimodal_eval.cli.main")
        else:
            newcomer.clone_and_install(chosen.source)
        newcomer.follow_suggestions()
        newcomer.score_own_file()
    except NoHelpError as missing:
        failure = str(missing)
    finally:
        if not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(table(newcomer.steps))
    if not failure and sum(step.seconds for step in newcomer.steps) > LIMIT:
        failure = f"more than {LIMIT} s"
    if failure:
        print(f"\nfailed after {len(newcomer.steps)} steps: {failure}")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
