"""Do what newcomers in eight roles do after README's installation: python -m tools.newcomer [ROLE ...]

The beginner tries every command that README, the demo and its results suggest, without further downloads, and then
scores a file with other column names than the documentation uses. The beginner knows nothing: whatever a message
proposes after `--map` is added to the command, until it works. The other roles type everything that README and one
guide show, in a terminal of 80 columns, and then every command that an output suggests. Every step is timed. A role
fails if a command has another exit code than the guide says, a table is wider than the terminal, a message lacks what
the newcomer needs, or all steps together take more than ten minutes.

    python -m tools.newcomer                                  # clone, install, all roles
    python -m tools.newcomer --python .venv/bin/python CI     # one role, in an environment with the package
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.site.blocks import RUN as EXECUTED
from tools.site.blocks import Block, parse
from tools.site.execute import commands_of
from tools.site.setups import prepare
from tools.site.shell import stripped
from tools.site.workspace import workspace

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600  # seconds of a role
WIDTH = 80  # of the terminal
BEGINNER = "beginner"
# The guide that each role reads after README.
ROLES = {
    BEGINNER: "",
    "captions": "docs/tutorials/captions.md",
    "VQA endpoint": "docs/tutorials/endpoint.md",
    "harness logs": "docs/harnesses.md",
    "organiser": "docs/tutorials/shared-task.md",
    "notebook": "docs/notebooks/captions.ipynb",
    "own metric": "docs/adding-a-metric.md",
    "CI": "docs/ci.md",
}
# Runs the Python code of a page in one namespace: a JSON line with the kind of a block and its code, and one back.
SESSION = """
import json, sys, traceback
from tools.site.code import run_python, run_session
space, kinds = {"__name__": "__main__"}, {"python": run_python, "pycon": run_session}
for line in sys.stdin:
    kind, code, name = json.loads(line)
    try:
        reply = 0, kinds[kind](code, space, name)
    except Exception:
        reply = 1, traceback.format_exc()
    print(json.dumps(reply), flush=True)
"""
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
_WORD = r"(?:[^\s`,;│']|'[^'\n]*')+"
SUGGESTED = re.compile(rf"\bmmeval [a-z]+(?: (?!Next){_WORD}(?:,{_WORD})*)*")
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
    suggestions: list[str] = field(default_factory=list)  # commands that were printed
    done: set[str] = field(default_factory=set)  # commands that were run
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

    def read_readme(self) -> None:
        """Write the files that README shows, and run the commands that it names."""
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        for block in parse(text).blocks:
            if block.kind == "file":
                (self.folder / block.file).write_text(block.text, encoding="utf-8")
        self.done.add("mmeval demo --fetch")  # it was run by the installation
        for command in commands_in(text):
            self._suggested(command)

    def follow_suggestions(self) -> None:
        """Run every command that was suggested, and those that these suggest."""
        while self.suggestions:
            self._suggested(self.suggestions.pop(0))

    def _suggested(self, command: str) -> None:
        if command not in self.done:
            self.done.add(command)
            self._mmeval(command.removeprefix("mmeval ")[:24], shlex.split(command)[1:])
            if not command.endswith("--help"):  # whose text names options, not next steps
                self.suggestions += commands_in(self.message)

    def was_led_to(self, *needed: str) -> None:
        """The suggestions must have led to these commands."""
        for name in needed:
            if not any(command.startswith(f"mmeval {name} ") for command in self.done):
                raise NoHelpError(f"nothing suggests `mmeval {name}`: {sorted(self.done)}")

    def read_guide(self, guide: Path) -> None:
        """Type all that a guide shows, in an empty folder, and then what the outputs suggest."""
        self.suggestions.clear()  # the beginner follows those of README
        text = guide.read_text(encoding="utf-8")
        page = parse(as_page(text) if guide.suffix == ".ipynb" else text)
        with workspace(self._models()) as work:
            prepare(page.setups, work)
            self.folder = work.folder
            self.environment = {**os.environ, "PATH": self._path()}
            with self._session() as session:
                for block in page.blocks:
                    if block.marks.not_run is None:
                        self._type(replace(block, text=work.meant(block.text)), session, guide)
            self.follow_suggestions()

    def _models(self) -> Path:
        """The folder with the models that the demo has fetched."""
        return Path(self.environment.get("MMEVAL_HOME") or Path.home() / ".cache" / "multimodal-eval")

    def _path(self) -> str:
        """The path of the shell after `source .venv/bin/activate`."""
        return os.pathsep.join([str(Path(self.mmeval[0]).parent), os.environ["PATH"]])

    @contextmanager
    def _session(self) -> Iterator[subprocess.Popen[str]]:
        """A session of Python in the folder."""
        python = str(Path(self.mmeval[0]).with_name("python"))
        with subprocess.Popen(
            [python, "-c", SESSION],
            cwd=self.folder,
            env={**self.environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as session:
            yield session

    def _type(self, block: Block, session: subprocess.Popen[str], guide: Path) -> None:
        """Write the file of a block, or run its commands or its code."""
        if block.kind == "file":
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.kind in ("python", "pycon"):
            self._run_code(block, session, f"{guide.name}:{block.line}")
        elif block.kind in EXECUTED:
            for command in commands_of(block):
                self.done.add(command)
                self._call(command.removeprefix("mmeval ")[:24], ["bash", "-c", command], block.marks.exit)
                self.suggestions += commands_in(self.message)

    def _run_code(self, block: Block, session: subprocess.Popen[str], name: str) -> None:
        assert session.stdin
        assert session.stdout
        started = time.perf_counter()
        session.stdin.write(json.dumps([block.kind, block.text, name]) + "\n")
        session.stdin.flush()
        code, printed = json.loads(session.stdout.readline() or '[1, "Python has ended"]')
        if code:
            raise NoHelpError(f"{name}:\n{printed}")
        self._done(name, started, "Python")

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
        """Run a command in the folder. Its output must contain every text in `needs`, and no table that is too wide."""
        started = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=folder or self.folder,
            env={**self.environment, "COLUMNS": str(WIDTH)},
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
        if any(line.startswith("───") and len(line) > WIDTH for line in stripped(message).splitlines()):
            raise NoHelpError(f"$ {shown}\na table has more than {WIDTH} columns:\n{message}")
        self._done(title, started, f"exit code {code}")
        return message

    def _done(self, title: str, started: float, got: str) -> None:
        self.steps.append(Step(title, time.perf_counter() - started, got))


def commands_in(message: str) -> list[str]:
    """The commands that a message suggests, without those that have a placeholder."""
    return [command for command in SUGGESTED.findall(message) if not PLACEHOLDER.search(command)]


def as_page(notebook: str) -> str:
    """The code of a notebook as a page. A result on the last line of a cell must show itself as HTML."""
    return "".join(
        f"```python\n{_shown(''.join(cell['source']))}\n```\n\n"
        for cell in json.loads(notebook)["cells"]
        if cell["cell_type"] == "code"
    )


def _shown(code: str) -> str:
    tree = ast.parse(code)
    if isinstance(tree.body[-1], ast.Expr):
        result = ast.unparse(tree.body.pop())
        return f"{ast.unparse(tree)}\nprint(len(({result})._repr_html_()))"
    return code


def table(steps: Sequence[Step]) -> str:
    lines = [f"{step.title:<24} {step.seconds:>7.1f} s   {step.got}" for step in steps]
    total = sum(step.seconds for step in steps)
    return "\n".join([*lines, f"{'total':<24} {total:>7.1f} s   of at most {LIMIT} s"])


def play(role: str, newcomer: Newcomer) -> str:
    """Do what a role does. Returns why it failed, if it did."""
    try:
        newcomer.read_readme()
        if role == BEGINNER:
            newcomer.follow_suggestions()
            newcomer.was_led_to("score", "validate", "compare", "report", "card", "lint")
            newcomer.score_own_file()
        else:
            newcomer.read_guide(ROOT / ROLES[role])
    except NoHelpError as missing:
        return str(missing)
    seconds = sum(step.seconds for step in newcomer.steps)
    return f"more than {LIMIT} s" if seconds > LIMIT else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.newcomer", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("roles", nargs="*", metavar="ROLE", help=f"default: all of {', '.join(ROLES)}")
    parser.add_argument("--python", help="an interpreter with the package, instead of a clone and an installation")
    parser.add_argument("--source", default=str(ROOT), help="the repository to clone; default: this one")
    parser.add_argument("--keep", metavar="DIR", help="work in this new folder, and keep it")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.roles) - set(ROLES):
        parser.error(f"no role is named {unknown.pop()!r}")
    folder = Path(chosen.keep or tempfile.mkdtemp(prefix="newcomer-")).absolute()
    failed = []
    try:
        first = Newcomer(folder / "clone")
        first.folder.mkdir(parents=True)
        if chosen.python:
            first.mmeval = (str(Path(chosen.python).absolute()), "-m", "multimodal_eval.cli.main")
        else:
            first.clone_and_install(chosen.source)
        for role in chosen.roles or ROLES:
            newcomer = replace(first, folder=folder / role.replace(" ", "-"), done=set(), suggestions=[])
            newcomer.steps = first.steps.copy() if role == BEGINNER else []
            newcomer.folder.mkdir()
            failure = play(role, newcomer)
            print(f"{role}\n{table(newcomer.steps)}", end="\n\n")
            if failure:
                failed.append(role)
                print(f"failed after {len(newcomer.steps)} steps: {failure}", end="\n\n")
    except NoHelpError as missing:
        failed.append("installation")
        print(f"{table(first.steps)}\n\nfailed after {len(first.steps)} steps: {missing}")
    finally:
        if not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"failed: {', '.join(failed)}" if failed else f"succeeded: {', '.join(chosen.roles or ROLES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
