"""Runs campaigns in child processes with limits on time and memory. Counts cases and keeps the folders of faults."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hostile.campaign import CAMPAIGNS, GIGABYTE, Campaign, FaultError

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

START_SECONDS = 600  # for imports, the shared files of a campaign and its first case, which imports more
CASES_PER_PROCESS = 2_000  # then a new process, so that nothing piles up
TAIL = 4_000  # characters of a process's output that a fault keeps


@dataclass(frozen=True)
class FoundFault:
    """A case that failed, with the folder of its files."""

    case: int
    text: str
    folder: Path

    @property
    def headline(self) -> str:
        """The last line that says something."""
        return next((line.strip() for line in reversed(self.text.splitlines()) if line.strip()), "?")[:160]


@dataclass
class Tally:
    """What a campaign did."""

    name: str
    seed: int
    verdicts: Counter[str] = field(default_factory=Counter)
    faults: list[FoundFault] = field(default_factory=list)
    seconds: float = 0.0
    peak_megabytes: int = 0

    @property
    def cases(self) -> int:
        """How many cases were tried."""
        return self.verdicts.total() + len(self.faults)

    def __str__(self) -> str:
        verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in self.verdicts.most_common(6))
        faults = f"{len(self.faults)} FAULTS" if self.faults else "no fault"
        return (
            f"{self.name}: {self.cases:,} cases in {self.seconds:.0f} s, {faults} "
            f"(seed {self.seed}, {self.peak_megabytes:,} MB; {verdicts})"
        )


def run_campaign(
    campaign: Campaign,
    seed: int,
    *,
    cases: int | None = None,
    seconds: float | None = None,
    first: int = 0,
    keep: Path,
    most_faults: int = 20,
) -> Tally:
    """Try cases until there were `cases` of them, `seconds` have passed or `most_faults` were found."""
    tally = Tally(campaign.name, seed)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"hostile-{campaign.name}-") as scratch:
        case = first
        while (
            (cases is None or case < first + cases)
            and (seconds is None or time.monotonic() - started < seconds)
            and len(tally.faults) < most_faults
        ):
            last = case + CASES_PER_PROCESS if cases is None else min(first + cases, case + CASES_PER_PROCESS)
            with _Child(campaign, seed, case, last, Path(scratch)) as child:
                end = None if seconds is None else started + seconds
                case = child.follow(tally, keep, end, most_faults)
    tally.seconds = time.monotonic() - started
    return tally


class _Child:
    """A process that tries the cases from `case` on, and what it reports."""

    def __init__(self, campaign: Campaign, seed: int, case: int, last: int, scratch: Path) -> None:
        self.campaign, self.seed, self.case, self.last, self.scratch = campaign, seed, case, last, scratch
        self.log = scratch / "output.txt"
        context = multiprocessing.get_context("spawn")
        self.reports, theirs = context.Pipe(duplex=False)
        arguments = (campaign.name, campaign.attack.__module__, seed, case, last, str(scratch), theirs, list(sys.path))
        self.process: SpawnProcess = context.Process(target=_try_cases, args=arguments)
        self.process.start()
        theirs.close()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.pid is not None and self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.reports.close()

    def follow(self, tally: Tally, keep: Path, end: float | None, most_faults: int) -> int:
        """Count what the process reports, until it is done, dead, or too slow. Returns the next case."""
        limit: float = START_SECONDS
        while self.case < self.last:
            if not self.reports.poll(limit):
                self._show_stacks()
                self._fault(tally, keep, f"{self._output()}\nthe case took more than {limit:.0f} s")
                return self.case + 1
            try:
                kind, text = self.reports.recv()
            except EOFError:
                self.process.join()
                self._fault(tally, keep, f"{self._output()}\nthe process died: exit code {self.process.exitcode}")
                return self.case + 1
            if kind == "peak":
                tally.peak_megabytes = max(tally.peak_megabytes, int(text))
                continue
            if kind == "ready":
                continue
            limit = self.campaign.seconds
            if kind == "fault":
                self._fault(tally, keep, text)
            else:
                tally.verdicts[text] += 1
            self.case += 1
            if len(tally.faults) >= most_faults or (end is not None and time.monotonic() > end):
                break
        return self.case

    def _show_stacks(self) -> None:
        """Ask the process for its stacks, and end it."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGUSR1)
        time.sleep(0.5)
        self.process.kill()

    def _output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-TAIL:] if self.log.exists() else ""

    def _fault(self, tally: Tally, keep: Path, text: str) -> None:
        folder = keep / f"{self.campaign.name}-{self.seed}-{self.case}"
        shutil.rmtree(folder, ignore_errors=True)
        reported = self.scratch / f"fault-{self.case}"  # a living process has set it aside
        source = reported if reported.exists() else self.scratch / "case"
        if source.exists():
            shutil.copytree(source, folder, symlinks=True, ignore=_special)
        folder.mkdir(parents=True, exist_ok=True)
        again = f"python -m tests.hostile --only {self.campaign.name} --seed {self.seed} --case {self.case}"
        (folder / "FAULT.txt").write_text(f"{again}\n\n{text}\n", encoding="utf-8", errors="replace")
        tally.faults.append(FoundFault(self.case, text, folder))


def _special(folder: str, names: list[str]) -> list[str]:
    """Pipes and sockets, which cannot be copied."""
    paths = {name: Path(folder, name) for name in names}
    return [name for name, path in paths.items() if not (path.is_symlink() or path.is_file() or path.is_dir())]


def _try_cases(
    name: str, module: str, seed: int, case: int, last: int, scratch: str, reports: Connection, paths: list[str]
) -> None:
    """The child process."""
    sys.path[:] = paths
    log = os.open(Path(scratch) / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    shared = Path(scratch) / "shared"
    shared.mkdir(exist_ok=True)
    home = Path(scratch) / "home"
    home.mkdir(exist_ok=True)
    os.environ |= {
        "MMEVAL_HOSTILE_SHARED": str(shared),
        "MMEVAL_HOME": str(home),
        "HF_HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "XDG_STATE_HOME": str(home),
        "COLUMNS": "80",
    }
    import_module(module)  # not those of all campaigns, which take a second
    campaign = CAMPAIGNS[name]
    if campaign.memory is not None:
        _limit_memory(campaign.memory)
    reports.send(("ready", ""))
    for number in range(case, last):
        folder = Path(scratch) / "case"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            verdict = campaign.attack(campaign.random(seed, number), folder) or "held"
            report = ("done", verdict)
        except FaultError as fault:
            report = ("fault", str(fault))
        except BaseException as error:  # noqa: BLE001 - whatever our code raises is a fault
            report = ("fault", "".join(traceback.format_exception(error))[-TAIL:])
        if report[0] == "fault" and folder.exists():
            folder.rename(Path(scratch) / f"fault-{number}")
        reports.send(report)
        reports.send(("peak", str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)))


def _limit_memory(allowed: int) -> None:
    """Let the process map `allowed` bytes more than after its imports. Libraries reserve far more than they use."""
    import pyarrow.parquet  # noqa: F401

    status = Path("/proc/self/status").read_text(encoding="utf-8")
    size = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmSize"))
    limit = size + allowed + GIGABYTE  # 1 GB for stacks and arenas of threads
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
