"""Answers from an endpoint that fails: is every sample answered, and how much of what the server allows is used?

    python bench/generation_faults.py [--samples 10000] [--rounds 3]

The server (tests/generate/server.py) is a process of its own and holds every request for 100 ms. With faults, 30 % of
the requests then end in HTTP 429, 500 or 503, a reset, a connection that closes with half a reply or none, or JSON that
is cut off. `mmeval run` may have 60 requests under way, so that the server allows 600 requests and with faults 420
answers per second. Runs with and without faults alternate. Prints the share of answered samples, and the best rate
between the first and the last request.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from multimodal_eval.data.runs.run_folder import RunFolder

LATENCY, AT_ONCE = 0.1, 60
FAULTS = {
    "rate_limit": 0.05,
    "error": 0.05,
    "unavailable": 0.05,
    "reset": 0.05,
    "closed": 0.025,
    "half_closed": 0.025,
    "wrong_json": 0.05,
}
ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def served(faults: dict[str, float]) -> Iterator[str]:
    """The server in a process of its own."""
    named = [word for name, share in faults.items() for word in ("--fault", f"{name}={share}")]
    command = [sys.executable, "-m", "tests.generate.server", "--latency", str(LATENCY), *named]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def taken(url: str) -> tuple[int, float]:
    """The requests since the last call, and the seconds from the first to the last."""
    with urllib.request.urlopen(f"{url}/seen") as reply:
        counts = json.loads(reply.read())
    return counts["requests"], counts["seconds"]


def measured(faults: dict[str, float], data: Path, folder: Path) -> tuple[float, int, int]:
    """Answers per second, answered samples and requests of one run."""
    shutil.rmtree(folder, ignore_errors=True)
    with served(faults) as url:
        command = [sys.executable, "-m", "multimodal_eval.cli.main", "generate", str(data), "--model", "openai:tiny"]
        options = ["--base-url", url, "--no-cache", "--no-probe", "--concurrency", str(AT_ONCE), "-o", str(folder)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{done.stdout}\n{done.stderr}")
        requests, seconds = taken(url)
    generation = RunFolder(folder).read_info().generation
    assert generation is not None
    answered = generation.statuses.get("ok", 0)
    return answered / (seconds + LATENCY), answered, requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    kinds: dict[str, dict[str, float]] = {"no faults": {}, "30 % faults": FAULTS}
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data.jsonl"
        rows = ({"id": str(number), "question": f"Is {number} even?"} for number in range(options.samples))
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        runs: dict[str, list[tuple[float, int, int]]] = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, faults in kinds.items():
                runs[kind].append(measured(faults, data, Path(scratch) / "run"))
    print(f"{'':12} {'answered':>16} {'requests':>9} {'answers/s':>10} {'allowed':>8} {'used':>6}")
    for kind, faults in kinds.items():
        allowed = AT_ONCE / LATENCY * (1 - sum(faults.values()))
        rate, _, requests = max(runs[kind])
        share = f"{min(answered for _, answered, _ in runs[kind]):,} of {options.samples:,}"
        print(f"{kind:12} {share:>16} {requests:9,} {rate:10,.0f} {allowed:8,.0f} {rate / allowed:6.0%}")


if __name__ == "__main__":
    main()
