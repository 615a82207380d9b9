"""The start race: several processes start a run in the same folder at the same moment.

    python -m tests.hostile.start_race [--rounds N] [--processes N]

In every round exactly one process must win, and run.json must be its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from multimodal_eval import evaluate
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.data.runs.run_folder import RunFolder

SAMPLES = [{"id": str(number), "references": ["a cat"], "generated_answer": "a cat"} for number in range(3)]
WAIT = 600  # seconds: a test never depends on the speed of the machine


def _start(number: int, folder: str, rounds: int, barrier: Any, outcomes: Any) -> None:
    for turn in range(rounds):
        barrier.wait(WAIT)
        try:
            evaluate(SAMPLES, metrics=["exact_match"], seed=number, output=f"{folder}/{turn}", progress=False)
            outcomes.put((turn, number, "won"))
        except RunFolderError as error:
            clear = "in use by another process" in str(error) or "already exists" in str(error)
            outcomes.put((turn, number, "refused" if clear else f"error: {error}"))
        except Exception as error:  # noqa: BLE001 - counted as a failure of the audit
            outcomes.put((turn, number, f"crash: {error!r}"))


def race(folder: Path, rounds: int, processes: int) -> list[str]:
    """What went wrong in some rounds: nothing, if the list is empty."""
    context = multiprocessing.get_context("spawn")
    barrier, outcomes = context.Barrier(processes), context.Queue()
    arguments = (str(folder), rounds, barrier, outcomes)
    started = [context.Process(target=_start, args=(number, *arguments)) for number in range(processes)]
    for process in started:
        process.start()
    seen = [outcomes.get(timeout=WAIT) for _ in range(rounds * processes)]
    for process in started:
        process.join(WAIT)
    problems = [f"round {turn}: {outcome}" for turn, _, outcome in seen if outcome not in ("won", "refused")]
    for turn in range(rounds):
        winners = [number for each, number, outcome in seen if each == turn and outcome == "won"]
        stored = RunFolder(folder / str(turn)).read_info().seed
        if winners != [stored]:
            problems.append(f"round {turn}: won by {winners}, but run.json is that of {stored}")
    return problems


def main(arguments: list[str]) -> int:
    """Print how many rounds went wrong; the exit code is 1 if there are any."""
    parser = argparse.ArgumentParser(description="Start runs in the same folder at the same moment.")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--processes", type=int, default=4)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        problems = race(Path(folder), options.rounds, options.processes)
    wrong = len(Counter(problem.partition(":")[0] for problem in problems))
    print(f"{options.rounds} rounds of {options.processes} processes, {wrong} went wrong")
    print("\n".join(problems[:10]))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
