"""Kill `mmeval score` with SIGKILL at random moments, resume it, and compare with an undisturbed run.

    python -m tests.run.kill_and_resume [TIMES] [SEED]

Prints the stages at which runs were killed. Exits with 1 if any result differs by a byte.
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
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.parts import started_with_part_size
from tools.recorded.record import contents, normal
from tools.site.workspace import Workspace

PLUGIN = Path(__file__).with_name("plugin.py")
SAMPLES, PART = 600, 40
# Small parts and splits, so that a kill often hits a half-written part, and the input is read in parallel.
START = (
    f"{started_with_part_size('int(sys.argv.pop(1))')}; "
    "from multimodal_eval.data.readers import splits; splits.SPLIT = splits.SMALLEST_SPLIT = 20_000; "
    "from multimodal_eval.cli.main import main; main()"
)


def write_data(path: Path, count: int = SAMPLES) -> None:
    words = ["a", "red", "blue", "dog", "cat", "runs", "on", "the", "street", "beach"]
    rng = random.Random(7)
    rows = [
        {
            "id": f"s{number}",
            "references": [" ".join(rng.choices(words, k=6)) for _ in range(2)],
            "generated_answer": " ".join(rng.choices(words, k=5)),
            "group": f"g{number // 3}",
        }
        for number in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", START, str(PART), "score", *arguments]


def new_run(data: Path, folder: Path, config: Path) -> list[str]:
    return command(str(data), "--config", str(config), "--plugin", str(PLUGIN), "-o", str(folder))


def content(folder: Path) -> dict[str, bytes]:
    """The files of a run folder by name, without times."""
    work = Workspace(folder, ExitStack())
    return {name: normal(name, content, work) for name, content in contents(folder).items()}


def stage(folder: Path) -> str:
    if not (folder / "run.json").exists():
        return "before run.json"
    state = json.loads((folder / "run.json").read_text())["state"]
    if state != "scoring":
        return str(state)
    return f"scoring, {len(list((folder / 'scores').glob('part-*.parquet')))} parts committed"


def is_done(arguments: Sequence[str], delay: float | None, killed: Sequence[str]) -> bool:
    """Start a process and kill it after some seconds, unless it is done by then. `killed` are the kills before it."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, stderr = process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False
    if process.returncode != 0:
        raise SystemExit(f"resuming failed after {killed}: {stderr.decode()}")
    return True


def run_with_kills(data: Path, folder: Path, config: Path, length: float, rng: random.Random) -> list[str]:
    """Start a run, kill and resume it until it is done. Returns the stages at which it was killed."""
    killed: list[str] = []
    for _ in range(50):
        started = (folder / "run.json").exists()
        arguments = (
            command("--resume", str(folder), "--plugin", str(PLUGIN)) if started else new_run(data, folder, config)
        )
        if is_done(arguments, rng.uniform(0, length) if len(killed) < 3 else None, killed):
            return killed
        killed.append(stage(folder))
    raise SystemExit("the run never finished")


def main(times: int, seed: int) -> None:
    rng = random.Random(seed)
    stages: Counter[str] = Counter()
    kills = 0
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        data, config = base / "data.jsonl", base / "run.yaml"
        write_data(data)
        config.write_text(
            "metrics: [slow_words, rarity, corpus_precision, cider]\noptions: {slow_words: {pause: 0.0005}}\n"
        )
        before = time.perf_counter()
        subprocess.run(new_run(data, base / "run", config), check=True, stdout=subprocess.DEVNULL)
        length = time.perf_counter() - before
        expected = content(base / "run")
        shutil.rmtree(base / "run")
        while kills < times:
            killed = run_with_kills(data, base / "run", config, length, rng)
            kills += len(killed)
            stages.update(killed)
            actual = content(base / "run")
            if actual != expected:
                differing = [name for name in {*actual, *expected} if actual.get(name) != expected.get(name)]
                raise SystemExit(f"killed at {killed}: {sorted(differing)} differ from the undisturbed run")
            shutil.rmtree(base / "run")
    print(f"{kills} kills, every resumed run identical to the undisturbed one. Killed at:")
    for name, count in sorted(stages.items()):
        print(f"  {count:4d}  {name}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
