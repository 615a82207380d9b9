"""Print the figures that must not decay beside those that were last recorded: shown, not enforced.

    python -m tools.figures [--record]

`.ci/run` prints them. Record them with a change that makes them better, or has a reason to make them worse. Times
are those of `bench/whole_run.py`.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from multimodal_eval import Metric
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.main import cli
from tools.reference import PAGES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "multimodal_eval"
RECORDED = Path(__file__).with_name("figures.json")
DRIVER = "run.runner"  # the module that drives a run
DISPLAYS = ("cli", "report")
STATE = re.compile(r"\binfo\.state\b|_info\(\)\.state\b")
COUNTED = ("a JSONL line", "a printed caption", "a question", "a verdict", "an inspect log")
GENERATED = re.compile(r"<!-- who-measures-what: .*?<!-- end: \w+ -->", re.DOTALL)
# The most that a later change may have.
MOST = {
    "commands": 25,
    "options of the longest command": 40,
    "words of the docs": 70_000,
    "pages of the docs": 70,
}


def figures() -> dict[str, int]:
    """Every figure by its name; smaller is better."""
    modules = sorted((ROOT / "src").rglob("*.py"))
    pages = written_pages()
    return {
        **dict(_of_a_datum()),
        **dict(_of_modules()),
        "files in src": len(modules),
        "lines in src": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules),
        "public members of Metric": sum(not name.startswith("_") for name in dir(Metric)),
        "commands": len(cli.commands),
        "options of the longest command": max(_options(cli)),
        "pages of the docs": len(pages),
        "words of the docs": sum(map(written_words, pages)),
        "lines of README": len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()),
    }


def written_pages() -> list[Path]:
    """The pages of docs/ that are written by hand, without the metric cards. At most 70, with 70,000 words."""
    generated = {*PAGES.values(), *(ROOT / "docs" / f"{name}.md" for name in ("metrics", "reproduced"))}
    paths = sorted((ROOT / "docs").rglob("*.md"))
    return [path for path in paths if path not in generated and path.parent.name != "metrics"]


def written_words(path: Path) -> int:
    """The words of a page, with code and outputs, but without the tables that a benchmark writes into it."""
    return len(GENERATED.sub("", path.read_text(encoding="utf-8")).split())


def _of_a_datum() -> Iterator[tuple[str, int]]:
    """Files and functions that data pass through, counted in a fresh process."""
    printed = subprocess.run([sys.executable, "-m", "tools.datum_path"], cwd=ROOT, capture_output=True, check=True)
    for line in printed.stdout.decode().splitlines():
        name = next((name for name in COUNTED if line.startswith(name)), None)
        if name is not None:
            files, functions = (int(word) for word in line.split() if word.isdecimal())
            yield f"files that {name} passes", files
            yield f"functions that {name} passes", functions


def _of_modules() -> Iterator[tuple[str, int]]:
    imports = imported_modules(SOURCE)
    importers = Counter(name for names in imports.values() for name in names)
    yield "imports of the module that drives a run", len(imports[DRIVER])
    paths = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in DISPLAYS]
    reading = sum(STATE.search(path.read_text(encoding="utf-8")) is not None for path in paths)
    yield "modules that read the state of a run", reading
    yield "modules with one importer", sum(importers[name] == 1 for name in imports)


def imported_modules(package: Path) -> dict[str, set[str]]:
    """The modules of a package that each of its modules imports, by their names below it, from anywhere in a file."""
    files = {_name(path, package): path for path in sorted(package.rglob("*.py"))}
    return {name: set(_imports(path, files)) - {name} for name, path in files.items()}


def _name(path: Path, package: Path) -> str:
    return ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")


def _imports(path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == SOURCE.name:
            base = node.module.removeprefix(SOURCE.name).lstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                yield inner if inner in files else base


def _options(command: click.Command) -> Iterator[int]:
    """The number of options in the help of a command, and of those below it."""
    yield len(command.shown()) if isinstance(command, LayeredCommand) else 0
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _options(inner)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="store the figures as they are now")
    options = parser.parse_args()
    now = figures()
    if options.record:
        RECORDED.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    print(f"{'figure':<41} {'recorded':>9} {'now':>9}")
    for name, value in now.items():
        change = value - recorded.get(name, value)
        most = f"  of at most {MOST[name]:,}" if name in MOST else ""
        changed = f"  {change:+,}" if change else ""
        print(f"{name:<41} {recorded.get(name, 0):>9,} {value:>9,}{most}{changed}")


if __name__ == "__main__":
    main()
