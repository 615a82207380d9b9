"""Kill runs that ask a model with SIGKILL at random moments, resume them, and compare with an undisturbed run.

    python -m tests.run.generation.kill_and_resume [KILLS] [SEED] [judges] [until]

With `judges`, two models judge the answers after they are generated, each two times. With `until`, the run stops before
its last sample.

All files must be equal, byte by byte, except exchanges/ (times, latencies, attempts), exchanges.json (its checksums)
and run.json, whose `created`, `finished`, `owner` and own checksum differ. Requests are repeated only if they were in
flight.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from tests.run.generation.asking import AT_ONCE, JUDGES, REPEATS
from tests.run.generation.counting_server import CountingServer
from tests.run.kill_and_resume import is_done

SAMPLES = 400
TIMES = {"created", "finished", "owner", "sha256"}  # of run.json


def write_data(path: Path) -> None:
    words = ("reply", "answer", "answer")  # one of three answers differs from its reference
    rows = [{"id": f"s{n}", "question": f"question {n}", "references": [f"{words[n % 3]} {n}"]} for n in range(SAMPLES)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def command(data: Path, folder: Path, port: int, *more: str) -> list[str]:
    return [sys.executable, "-m", "tests.run.generation.asking", str(data), str(folder), str(port), *more]


def questions(*, has_judges: bool) -> set[str]:
    """All that a run asks."""
    asked = {f"question {n}" for n in range(SAMPLES)}
    if has_judges:
        repeats = range(1, REPEATS + 1)
        asked |= {f"s{n} by {judge}, {repeat}" for n in range(SAMPLES) for judge in JUDGES for repeat in repeats}
    return asked


def content(folder: Path) -> dict[str, object]:
    """The files by name; of run.json all but the times, and of exchanges/ the rows and replies."""
    files: dict[str, object] = {}
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        name = path.relative_to(folder).as_posix()
        if name == "run.json":
            files[name] = {key: value for key, value in json.loads(path.read_text()).items() if key not in TIMES}
        elif name == "exchanges.json":
            files[name] = None
        elif name.startswith("exchanges/"):
            files[name] = pq.read_table(path, columns=["row", "is_cached", "reply"]).to_pylist()
        else:
            files[name] = path.read_bytes()
    return files


def stage(folder: Path) -> str:
    if not (folder / "run.json").exists():
        return "before run.json"
    state = str(json.loads((folder / "run.json").read_text())["state"])
    parts = {"generating": "answers/part-*.parquet", "judging": "verdicts/*.part-*.parquet"}.get(state)
    return state if parts is None else f"{state}, {len(list(folder.glob(parts)))} parts committed"


def disturbed(started: list[str], folder: Path, length: float, rng: random.Random, most: int) -> list[str]:
    """Start a run, kill and resume it until it is done. Returns the stages at which it was killed."""
    killed: list[str] = []
    while True:
        delay = rng.uniform(0.4 * length, length) if len(killed) < min(5, most) else None
        if is_done(started, delay, killed):
            return killed
        killed.append(stage(folder))


def check_requests(server: CountingServer, expected: set[str], kills: int, *, stops: bool = False) -> int:
    """How many requests were repeated. Raises if one was lost, or more were repeated than were in flight."""
    if not (set(server.received) < expected if stops else set(server.received) == expected):
        raise SystemExit("every question was asked" if stops else "not every question was asked")
    repeated = server.received.total() - len(server.received)
    in_flight = AT_ONCE * (len(JUDGES) if len(expected) > SAMPLES else 1)
    if repeated > kills * in_flight:
        raise SystemExit(f"{repeated} requests were repeated after {kills} kills with {in_flight} in flight")
    return repeated


def main(times: int, seed: int, *more: str) -> None:
    asked, stops = questions(has_judges="judges" in more), "until" in more
    rng, stages = random.Random(seed), Counter[str]()
    kills = repeated = 0
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        data = base / "data.jsonl"
        write_data(data)
        with CountingServer() as server:
            before = time.perf_counter()
            subprocess.run(command(data, base / "whole", server.port, *more), check=True)
            length = time.perf_counter() - before
            check_requests(server, asked, 0, stops=stops)
        expected = content(base / "whole")
        while kills < times:
            with CountingServer() as server:
                started = command(data, base / "run", server.port, *more)
                before = time.perf_counter()
                killed = disturbed(started, base / "run", length, rng, times - kills)
                if not killed:  # the machine was busier during the first run: kill earlier from now on
                    length = min(length, time.perf_counter() - before)
                kills += len(killed)
                stages.update(killed)
                repeated += check_requests(server, asked, len(killed), stops=stops)
            actual = content(base / "run")
            differing = [name for name in {*actual, *expected} if actual.get(name) != expected.get(name)]
            if differing:
                raise SystemExit(f"killed at {killed}: {sorted(differing)} differ from the undisturbed run")
            shutil.rmtree(base / "run")
    print(
        f"{kills} kills, every resumed run identical to the undisturbed one, {repeated} requests repeated. Killed at:"
    )
    for name, count in sorted(stages.items()):
        print(f"  {count:4d}  {name}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50, int(sys.argv[2]) if len(sys.argv) > 2 else 0, *sys.argv[3:])
