"""Sections of a bench that are chosen by name, within a time budget. What is printed is flushed at once.

A section that would not fit into the rest of the time is not started, and one that takes longer than the rest is ended:
a call with a limit has lost nothing of what was measured before. A section that fails does not end the others.
"""

from __future__ import annotations

import argparse
import math
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType

MINUTE = 60
STARTED = time.monotonic()  # of the call: what is made before the first section counts too


@dataclass(frozen=True)
class Section:
    """One measurement, and how long it takes on the machine that it is meant for."""

    work: Callable[[], None]
    minutes: float


class OutOfTimeError(Exception):
    """The time budget is spent."""


def add_options(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    parser.add_argument(
        "--only", type=lambda text: _known(text.split(","), names), help=f"of these, in this order: {','.join(names)}"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="time budget of the whole call")


def _known(chosen: list[str], names: Sequence[str]) -> list[str]:
    if unknown := [name for name in chosen if name not in names]:
        raise argparse.ArgumentTypeError(f"no section is named {unknown[0]!r}. Known: {', '.join(names)}")
    return chosen


def run(sections: Mapping[str, Section], options: argparse.Namespace, *, quick: bool = False) -> int:
    """Run the chosen sections. Returns the number of those that failed or were ended; `quick` ignores the estimates."""
    chosen = options.only or list(sections)
    end = STARTED + options.minutes * MINUTE
    missing = 0
    for name in chosen:
        left, section = end - time.monotonic(), sections[name]
        if left <= 0 or (section.minutes * MINUTE > left and not quick):
            print(f"({name}: not started, {max(0, left):.0f} s are left and it takes about "
                  f"{section.minutes * MINUTE:.0f})", flush=True)  # fmt: skip
            missing += 1
            continue
        started = time.monotonic()
        outcome = _outcome(section.work, left)
        missing += bool(outcome)
        print(f"({name}: {time.monotonic() - started:.0f} s{outcome})", flush=True)
    return missing


def _outcome(work: Callable[[], None], left: float) -> str:
    """Do the work for at most so many seconds. Returns what went wrong."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, ring)
    if math.isfinite(left):
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))
    try:
        work()
    except OutOfTimeError:
        return ", ended: the time is over"
    except (Exception, SystemExit):  # noqa: BLE001 - the other sections are worth printing
        traceback.print_exc()
        return ", FAILED"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return ""
