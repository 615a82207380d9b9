"""Kill a run at a change of its folder, continue it, and compare with an undisturbed run, byte by byte.

Unlike `tests/run/kill_and_resume.py`, which kills at random moments, this picks the change: before a part is renamed to
its final name, between results.json and the last run.json, while an old run is moved away, …
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random

from tests.hostile.campaign import FaultError, campaign, check_printed, shared
from tests.hostile.dying_run import WIDTH
from tests.run.kill_and_resume import content, write_data

SCRIPT = Path(__file__).with_name("dying_run.py")
PLUGIN = Path(__file__).parents[1] / "run" / "plugin.py"
SAMPLES, PART = 60, 20
MOST_KILLS = 2
METRICS = "rarity,corpus_precision,cider,rouge_l"


@campaign("kills", cases=6, seconds=600)
def attack(random: Random, folder: Path) -> str | None:
    run, is_overwriting = folder / "run", random.random() < 0.4
    workers = random.choice(("1", "2"))
    old = {}
    if is_overwriting:
        _finished(folder, run, _start("--metrics", "rouge_l", "-o", str(run)))
        old = content(run)
    start = _start("--metrics", METRICS, "--workers", workers, "-o", str(run), "--overwrite")
    killed: list[str] = []
    changes = _changes(is_overwriting)
    for kill in range(MOST_KILLS):
        command = _next(run, start, old)
        # The first kill may hit any change of a whole run; a resumed run has fewer of them.
        at = random.randrange(changes) + 1 if kill == 0 else random.randrange(max(2, changes // 2)) + 1
        code, errors, last = _started(folder, run, command, at)
        if code == 0:
            break
        if code != -9:
            raise FaultError(f"killed at {killed}, then {command}: exit {code}\n{errors}")
        killed.append(last)
        _tear(random, run)
    for _ in range(2):  # the first may only put the old run back
        _finished(folder, run, _next(run, start, old))
        if content(run) != old:
            break
    actual, expected = content(run), _expected()
    if actual != expected:
        differing = sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name))
        raise FaultError(f"killed at {killed}: {differing} differ from the undisturbed run")
    return "kill before " + re.sub(r"\d+", "N", killed[0]) if killed else "not killed"


def _start(*options: str) -> list[str]:
    return ["score", str(_data()), "--plugin", str(PLUGIN), "--no-report", *options]


def _next(run: Path, start: list[str], old: dict[str, bytes]) -> list[str]:
    """Resume the run, or start it again if there is none, or only the one that it was to replace."""
    if not (run / "run.json").exists() or (old and content(run) == old):
        return start
    return ["score", "--resume", str(run), "--plugin", str(PLUGIN), "--no-report"]


def _started(folder: Path, run: Path, command: list[str], kill_at: int) -> tuple[int, str, str]:
    """The exit code, the errors, and the last change before the end."""
    log = folder / "changes.txt"
    log.unlink(missing_ok=True)
    arguments = [sys.executable, str(SCRIPT), str(run), str(log), str(kill_at), str(PART), *command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, start_new_session=True)
    check_printed(done.stdout + done.stderr)
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return done.returncode, done.stderr, lines[-1].strip() if lines else "the first change"


def _finished(folder: Path, run: Path, command: list[str]) -> None:
    code, errors, _ = _started(folder, run, command, 0)
    if code != 0:
        raise FaultError(f"{command}: exit {code}\n{errors}")


def _tear(random: Random, run: Path) -> None:
    """Shorten temporary files, as if the machine had lost power while they were written."""
    for file in run.rglob("*.partial"):
        if file.is_file() and random.random() < 0.5:
            data = file.read_bytes()
            file.write_bytes(data[: random.randrange(len(data) + 1)])


@cache
def _data() -> Path:
    path = shared() / "kill-data.jsonl"
    write_data(path, SAMPLES)
    return path


@cache
def _expected() -> dict[str, bytes]:
    run = shared() / "undisturbed"
    _finished(shared(), run, _start("--metrics", METRICS, "-o", str(run)))
    return content(run)


@cache
def _changes(is_overwriting: bool) -> int:
    """How many changes a whole run makes."""
    run = shared() / f"counted-{is_overwriting}"
    if is_overwriting:
        _finished(shared(), run, _start("--metrics", "rouge_l", "-o", str(run)))
    _finished(shared(), run, _start("--metrics", METRICS, "-o", str(run), "--overwrite"))
    return (shared() / "changes.txt").stat().st_size // WIDTH
