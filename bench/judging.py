"""Questions to a judge: how many per second, beside the answers of a model from the same server.

    python bench/judging.py [--samples 2000] [--rounds 3]

The server (tests/generate/server.py) is a process of its own and answers every request after 50 ms. `mmeval run` asks a
model for an answer to every sample, with 100 requests under way; `mmeval score` asks a judge about stored answers, and
then a panel of two, with 100 under way each. Runs alternate. Prints the best rate between the first and the last
request, the time of the whole command, its CPU time and its peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

LATENCY, CONNECTIONS = 0.05, 100
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Measured:
    """Of one command."""

    rate: float  # requests per second
    seconds: float
    cpu: float
    megabytes: float


def commands(folder: Path, url: str) -> dict[str, list[str]]:
    """The commands by name."""
    run = [sys.executable, "-m", "multimodal_eval.cli.main", "run", str(folder / "data.jsonl")]
    model = ["--model", "openai:tiny", "--base-url", url, "--no-cache", "--concurrency", str(CONNECTIONS)]
    score = [sys.executable, "-m", "multimodal_eval.cli.main", "score", str(folder / "data.jsonl")]
    judge = ["--metrics", f"judge:{folder / 'good.yaml'}", "--judge-url", url, "--no-judge-cache"]
    limit = ["--judge-concurrency", str(CONNECTIONS)]
    end = ["-o", str(folder / "run")]
    return {
        "mmeval run, a model": [*run, *model, "--metrics", "exact_match", *end],
        "mmeval score, a judge": [*score, *judge, *limit, "--judge", "openai:tiny", *end],
        "mmeval score, a panel of two": [*score, *judge, *limit, "--judge", "openai:tiny", "--judge", "openai:b", *end],
    }


def measured(command: list[str], folder: Path, url: str) -> Measured:
    """One run of a command."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    _taken(url)
    environment = {**os.environ, "OPENAI_API_KEY": "x", "MMEVAL_HOME": str(folder / "home")}
    timed = ["/usr/bin/time", "-f", "%e %U %S %M", *command]
    done = subprocess.run(timed, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    seconds, user, system, kilobytes = map(float, done.stderr.splitlines()[-1].split())
    taken = _taken(url)
    return Measured(taken["requests"] / (taken["seconds"] + LATENCY), seconds, user + system, kilobytes / 1024)


def _taken(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/seen") as reply:
        taken: dict[str, float] = json.loads(reply.read())
    return taken


def write_files(folder: Path, samples: int) -> None:
    """Samples with answers, and a judge."""
    (folder / "good.yaml").write_text("question: Is the answer right?\n")
    with (folder / "data.jsonl").open("w") as file:
        for number in range(samples):
            sample = {"id": str(number), "question": f"Is {number} even?", "generated_answer": "yes, I think so"}
            file.write(json.dumps({**sample, "references": ["yes"]}) + "\n")


def main() -> None:
    """Run all in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    reply = json.dumps({"score": 4})
    server = [sys.executable, "-m", "tests.generate.server", "--latency", str(LATENCY), "--constant", reply]
    with (
        tempfile.TemporaryDirectory() as scratch,
        subprocess.Popen(server, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process,
    ):
        assert process.stdout is not None
        folder, url = Path(scratch), process.stdout.readline().strip()
        try:
            write_files(folder, options.samples)
            runs: dict[str, list[Measured]] = {name: [] for name in commands(folder, url)}
            for _ in range(options.rounds):
                for name, command in commands(folder, url).items():
                    runs[name].append(measured(command, folder, url))
        finally:
            process.terminate()
    print(f"{f'{options.samples:,} samples':30} requests/s  whole command       CPU     memory")
    for name, all_of in runs.items():
        rate, seconds = max(run.rate for run in all_of), min(run.seconds for run in all_of)
        cpu, memory = min(run.cpu for run in all_of), min(run.megabytes for run in all_of)
        print(f"{name:30} {rate:10,.0f} {seconds:12.1f} s {cpu:7.1f} s {memory:7.0f} MB")


if __name__ == "__main__":
    main()
