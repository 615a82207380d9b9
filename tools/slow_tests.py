"""Make the list of tests that the default suite leaves out because they are slow: tests/slow_tests.txt.

    MMEVAL_TEST_TIMES=times python -m pytest -m "not torch" -p tests.recorded_times
    python -m tools.slow_tests times

A test that took more than half a second of processor time is listed, and one that took less than half of that is not
listed any more; others stay as they are, and so do tests that were not run. A line that starts with `+` keeps a test in
the default suite, however long it takes: one case of each matrix of kills, processes and equal bytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.slow_list import KEPT, LIST, entries

SLOW = 0.5  # seconds of processor time
FAST = SLOW / 2


def updated(slow: Iterable[str], kept: Iterable[str], times: Mapping[str, float]) -> set[str]:
    """The slow tests after a run with these times. All cases of a slow function are listed as the function."""
    cases: dict[str, set[str]] = {}
    for test in times:
        cases.setdefault(_function(test), set()).add(test)
    before = {case for name in slow for case in (cases.get(name, {name}) if name == _function(name) else {name})}
    listed = {test for test in before if times.get(test, SLOW) >= FAST}
    listed |= {test for test, seconds in times.items() if seconds > SLOW}
    listed -= {case for name in kept for case in cases.get(name, {name})}
    whole = {name for name, of_name in cases.items() if of_name <= listed}
    return {_function(test) if _function(test) in whole else test for test in listed}


def _function(test: str) -> str:
    return test.partition("[")[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.slow_tests", description=__doc__.splitlines()[0])
    parser.add_argument("times", type=Path, help="the folder with the recorded times")
    times: dict[str, float] = {}
    for file in sorted(parser.parse_args().times.glob("*.json")):
        for test, seconds in json.loads(file.read_text(encoding="utf-8")).items():
            times[test] = max(seconds, times.get(test, 0.0))
    text = LIST.read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("#")]
    slow, kept = entries(text)
    new = updated(slow, kept, times)
    LIST.write_text("\n".join([*head, *(KEPT + name for name in sorted(kept)), *sorted(new)]) + "\n", encoding="utf-8")
    print(f"{len(new)} entries ({len(new - slow)} new, {len(slow - new)} gone), {len(kept)} kept in the default suite")


if __name__ == "__main__":
    main()
