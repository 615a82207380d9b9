"""What benches share: jobs in processes of their own, in turn, the best of some rounds, and a table.

A job is a command, or a function of the bench that prepares the work and returns it: imports and inputs are not timed.
The peak of memory is that of the process and its largest child. On a busy machine, processor time tells more.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Work = Callable[[], object]
MMEVAL = (sys.executable, "-m", "multimodal_eval.cli.main")


@dataclass(frozen=True, order=True)
class Measured:
    """Of one job."""

    seconds: float
    cpu: float  # of all cores and child processes
    megabytes: float
    value: Any = field(default=None, compare=False)


class MissingError(Exception):
    """A job cannot run here: a package, a program or data are missing."""


def run_command(words: Sequence[str | Path], **options: Any) -> Measured:
    """A command from its start to its end."""
    begin = time.perf_counter()
    with subprocess.Popen(
        [str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options
    ) as process:
        assert process.stderr is not None
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise MissingError(f"{words[-1]}: {errors.decode(errors='replace')[-2000:]}")
    seconds = time.perf_counter() - begin
    return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def run_inside(prepare: Callable[..., Work], *arguments: object, python: Sequence[str] = (sys.executable,)) -> Measured:
    """The work that `prepare(*arguments)` returns, in a process of its own. Its number or dict is kept."""
    module = sys.modules[prepare.__module__]
    place = [str(Path(str(module.__file__)).parent), Path(str(module.__file__)).stem, prepare.__name__]
    command = [*python, __file__, json.dumps([*place, *arguments])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError((done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1])
    return Measured(*json.loads(done.stdout.splitlines()[-1]))


def _used() -> tuple[float, float]:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both), sum(usage.ru_maxrss for usage in both) / 1024


def timed(work: Work) -> Measured:
    """Work in this process."""
    cpu, begin = _used()[0], time.perf_counter()
    value = work()
    seconds = time.perf_counter() - begin
    after, peak = _used()
    return Measured(seconds, after - cpu, peak, value)


def in_turn(jobs: Mapping[Key, Callable[[], Measured]], rounds: int) -> dict[Key, Measured | str]:
    """The best of each job; all run once per round, so that they see the same machine. A missing one has its reason."""
    best: dict[Key, Measured | str] = {}
    for _ in range(rounds):
        for key, job in jobs.items():
            known = best.get(key)
            if isinstance(known, str):
                continue
            try:
                run = job()
            except MissingError as reason:
                best[key] = str(reason)
                continue
            best[key] = run if known is None else min(known, run)
    return best


def print_table(
    title: str,
    results: Mapping[tuple[str, int], Measured | str],
    against: Mapping[str, str] | None = None,
    unit: str = "",
) -> None:
    """A line per (name, size); `against` names the row that a row is compared with: the ratio is its share of time."""
    print(f"\n{title}\n  {'':<34} {unit:>10} {'s':>9} {'CPU s':>9} {'ratio':>8} {'growth':>7} {'MB':>7}  value")
    first: dict[str, Measured] = {}
    for (name, size), run in results.items():
        if isinstance(run, str):
            print(f"  {name:<34} {size:>10,} not available: {run.splitlines()[-1][:120]}")
            continue
        base = results.get(((against or {}).get(name, ""), size))
        ratio = f"{run.seconds / base.seconds:.2f}x" if isinstance(base, Measured) else ""
        growth = f"{run.seconds / first[name].seconds:.1f}x" if name in first else ""
        first.setdefault(name, run)
        value = f"{run.value:,}" if isinstance(run.value, int) else f"{run.value:.6g}" if run.value else ""
        print(
            f"  {name:<34} {size:>10,} {run.seconds:9.3f} {run.cpu:9.3f} {ratio:>8} {growth:>7} "
            f"{run.megabytes:7.0f}  {value}",
            flush=True,
        )


def main() -> None:
    """In the separate process: prepare, do the work, and print what it took."""
    folder, module, name, *arguments = json.loads(sys.argv[1])
    sys.path.insert(0, folder)
    run = timed(getattr(importlib.import_module(module), name)(*arguments))
    value = run.value if isinstance(run.value, int | float | dict) else None
    print("\n" + json.dumps([run.seconds, run.cpu, run.megabytes, value]))


if __name__ == "__main__":
    main()
