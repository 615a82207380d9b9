"""The command `python -m tools.recorded`."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.recorded.cases import CASES
from tools.recorded.record import ROOT, Case, record

FOLDER = ROOT / "tests" / "recorded"


def recorded_text(case: Case) -> str:
    """What is stored about a case; "" if nothing is."""
    path = FOLDER / f"{case.name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def difference(case: Case, keep: Path | None = None) -> str:
    """What a case does otherwise than recorded, as a unified diff; "" if nothing."""
    old, new = recorded_text(case), record(case, keep)
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "recorded", "now", lineterm="", n=2)
    return "\n".join(lines)


def chosen(names: Sequence[str]) -> list[Case]:
    """The cases with these names; without names, all that are not slow."""
    if unknown := set(names) - CASES.keys():
        raise SystemExit(f"no case is named {', '.join(sorted(unknown))}. Known: {', '.join(CASES)}")
    return [case for case in CASES.values() if (case.name in names if names else not case.is_slow)]


def main() -> None:
    """Write or check records."""
    parser = argparse.ArgumentParser(prog="python -m tools.recorded")
    parser.add_argument("action", choices=("write", "check"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these cases")
    parser.add_argument("--keep", type=Path, help="also write the files of every case here, without times and paths")
    options = parser.parse_args()
    keep = options.keep and options.keep.resolve()
    differing = 0
    for case in chosen(options.names):
        if options.action == "write":
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{case.name}.txt").write_text(record(case, keep), encoding="utf-8")
        elif text := difference(case, keep):
            differing += 1
            print(f"== {case.name}\n{text}\n")
    if options.action == "check":
        print(f"{differing} of {len(chosen(options.names))} records differ")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
