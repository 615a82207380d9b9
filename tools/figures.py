"""Print the figures that must not decay beside those that were last recorded: shown, not enforced.

    python -m tools.figures [--record]

`.ci/run` prints them. Record them with a change that makes them better, or has a reason to make them worse.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from multimodal_eval import Metric
from multimodal_eval.cli.main import cli

ROOT = Path(__file__).parents[1]
RECORDED = Path(__file__).with_name("figures.json")


def figures() -> dict[str, int]:
    """Every figure by its name; smaller is better."""
    modules = sorted((ROOT / "src").rglob("*.py"))
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        **dict(_of_a_datum()),
        "files in src": len(modules),
        "lines in src": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules),
        "public members of Metric": sum(not name.startswith("_") for name in dir(Metric)),
        "options of the longest command": max(_options(cli)),
        "words of the docs": sum(len(path.read_text(encoding="utf-8").split()) for path in pages),
    }


def _of_a_datum() -> Iterator[tuple[str, int]]:
    """Files and functions that a JSONL line passes through, counted in a fresh process."""
    printed = subprocess.run([sys.executable, "-m", "tools.datum_path"], cwd=ROOT, capture_output=True, check=True)
    line = next(line for line in printed.stdout.decode().splitlines() if line.startswith("a JSONL line"))
    files, functions = (int(word) for word in line.split() if word.isdecimal())
    yield "files that a JSONL line passes", files
    yield "functions that a JSONL line passes", functions


def _options(command: click.Command) -> Iterator[int]:
    yield sum(isinstance(parameter, click.Option) for parameter in command.params)
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _options(inner)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="store the figures as they are now")
    now = figures()
    if parser.parse_args().record:
        RECORDED.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    print(f"{'figure':<36} {'recorded':>9} {'now':>9}")
    for name, value in now.items():
        change = value - recorded.get(name, value)
        print(f"{name:<36} {recorded.get(name, 0):>9,} {value:>9,}{f'  {change:+,}' if change else ''}")


if __name__ == "__main__":
    main()
