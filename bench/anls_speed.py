"""ANLS against lmms-eval's function, alternately, on one thread.

The peer runs in its own environment: `V/bin/pip install numpy && V/bin/pip install --no-deps lmms-eval==0.7.3`, then

    python bench/anls_speed.py V/bin/python [SAMPLES]

prints the seconds for the samples (answers of 5 to 60 letters, 1 to 3 references), the ratio, and the growth to ten
times as many samples and to texts ten times as long.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PEER = """
import json, sys, time, types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock
class Absent(MetaPathFinder, Loader):
    def find_spec(self, name, path, target=None):
        return None if name.startswith("lmms_eval") else ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return MagicMock(name=spec.name, __path__=[], __spec__=spec)
    def exec_module(self, module):
        pass
sys.meta_path.append(Absent())
from lmms_eval.api.metrics import anls
cases = json.load(open(sys.argv[1]))
start = time.process_time()
total = sum(anls(golds, [answer])["anls"] for answer, golds in cases)
print(json.dumps([time.process_time() - start, total]))
"""


def cases_of(count: int, length: int = 1) -> list[tuple[str, list[str]]]:
    draw = random.Random(7)
    words = "Invoice total date of the 12.50 2019 Paris street company signed number page report annual".split()
    cases = []
    for _ in range(count):
        gold = " ".join(draw.choice(words) for _ in range(draw.randrange(1, 9) * length))
        answer = gold if draw.random() < 0.5 else gold.replace(draw.choice("aeiou"), draw.choice("aeiou"), 2)
        cases.append((answer, [gold, gold.upper(), "none of these"][: draw.randrange(1, 4)]))
    return cases


def ours(cases: list[tuple[str, list[str]]]) -> tuple[float, float]:
    import pyarrow as pa

    from multimodal_eval import Sample
    from multimodal_eval.core.batch import Batch
    from multimodal_eval.evaluation.metrics.anls import compute_anls

    columns = {
        "generated_answer": pa.array([answer for answer, _ in cases]),
        "references": pa.array([golds for _, golds in cases]),
    }
    empty: list[Sample] = []
    batch = Batch(len(cases), columns, lambda _: empty)
    start = time.process_time()
    scores = compute_anls.function(batch, rule="lmms-eval@0.7.3/anls")
    return time.process_time() - start, float(scores.values.sum())


def peer(python: str, cases: list[tuple[str, list[str]]]) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.json"
        file.write_text(json.dumps(cases))
        out = subprocess.run([python, "-c", PEER, str(file)], check=True, capture_output=True, text=True).stdout
    seconds, total = json.loads(out)
    return seconds, total


def main(python: str, count: int) -> None:
    cases = cases_of(count)
    rounds = [(ours(cases), peer(python, cases)) for _ in range(3)]
    (mine, total), (theirs, their_total) = (min(runs) for runs in zip(*rounds, strict=True))
    assert abs(total - their_total) < 1e-6
    print(f"{count:,} samples: {mine:.4f} s, lmms-eval {theirs:.3f} s, ratio {theirs / mine:.0f}")
    print(f"ten times the samples: {ours(cases_of(10 * count))[0] / mine:.1f} times the time")
    print(f"texts ten times as long: {ours(cases_of(count, 10))[0] / mine:.1f} times the time")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20_000)
