"""The command `python -m tools.recorded`."""

from __future__ import annotations

import argparse
import difflib
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.recorded.cases import CASES
from tools.recorded.damage import SUBJECTS, damages
from tools.recorded.record import ROOT, record
from tools.recorded.scores import declarations, moved, read, scores_text, undeclared

FOLDER = ROOT / "tests" / "recorded"
DAMAGE = "damage-"
SCORES = "scores"
NAMES = (*CASES, *(f"{DAMAGE}{name}" for name in SUBJECTS), SCORES)
KILLED = {
    "score": ("tests.run.kill_and_resume",),
    "run": ("tests.run.generation.kill_and_resume",),
    "run that stops early": ("tests.run.generation.kill_and_resume", "until"),
    "run with judges": ("tests.run.generation.kill_and_resume", "judges"),
}


def text_of(name: str, keep: Path | None = None) -> str:
    """What the program does now."""
    if name == SCORES:
        return scores_text()
    return damages(SUBJECTS[name.removeprefix(DAMAGE)]) if name not in CASES else record(CASES[name], keep)


def recorded(name: str) -> str:
    """What was recorded; "" if nothing."""
    path = FOLDER / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def difference(name: str, keep: Path | None = None) -> str:
    """What it does otherwise than recorded, as a unified diff, or old and new of every score; "" if nothing."""
    old = recorded(name)
    if name == SCORES:
        differing = moved(read(old), read(text_of(name)))
        return "\n".join(f"{each}: {what}" for each, what in differing.items())
    lines = difflib.unified_diff(
        old.splitlines(), text_of(name, keep).splitlines(), "recorded", "now", lineterm="", n=2
    )
    return "\n".join(lines)


def chosen(names: Sequence[str]) -> list[str]:
    """These records; without names, all that are not slow."""
    if unknown := set(names) - set(NAMES):
        raise SystemExit(f"no record is named {', '.join(sorted(unknown))}. Known: {', '.join(NAMES)}")
    return [*names] or [name for name in NAMES if name not in CASES or not CASES[name].is_slow]


def write(names: Sequence[str], keep: Path | None) -> int:
    """Record what the program does now. Scores that move must be declared in changes/."""
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        text = text_of(name, keep)
        if name == SCORES and (problems := undeclared(read(recorded(name)), read(text), declarations())):
            print("\n".join(problems))
            return 1
        (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
    return 0


def check(names: Sequence[str], keep: Path | None) -> int:
    """Print what differs from the records."""
    differing = 0
    for name in names:
        if text := difference(name, keep):
            differing += 1
            print(f"== {name}\n{text}\n", flush=True)
    print(f"{differing} of {len(names)} records differ")
    return int(differing > 0)


def kill(kills: int, seed: int) -> int:
    """Kill runs of every kind at random moments, and compare them with undisturbed ones."""
    failed = 0
    for name, (module, *more) in KILLED.items():
        print(f"== {name}, seed {seed}", flush=True)
        command = [sys.executable, "-m", module, str(kills), str(seed), *more]
        failed += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return int(failed > 0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.recorded")
    actions = parser.add_subparsers(dest="action", required=True)
    for action in ("write", "check", "damage"):
        command = actions.add_parser(action)
        command.add_argument("names", nargs="*", metavar="NAME", help="only these records")
        command.add_argument("--keep", type=Path, help="also write the files of every case to this folder")
    killing = actions.add_parser("kill")
    killing.add_argument("kills", type=int, nargs="?", default=200, help="kills of each kind of run")
    killing.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    if options.action == "kill":
        sys.exit(kill(options.kills, options.seed))
    names = chosen(options.names)
    if options.action == "damage":
        names = [name for name in names if name.startswith(DAMAGE)]
    sys.exit((write if options.action == "write" else check)(names, options.keep and options.keep.resolve()))


if __name__ == "__main__":
    main()
