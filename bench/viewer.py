"""Response times of `mmeval view` for a run of a million samples: pages, sorts, filters, searches, details.

    python bench/viewer.py FOLDER             builds missing runs in FOLDER (takes minutes), then measures
    python bench/viewer.py FOLDER gallery     only the rows whose name contains one of the words

Prints the best, median and worst time in milliseconds of seven HTTP requests of each kind to a server in a separate
process, after both runs are loaded. The seven differ (another page, metric or word), so that no response comes from a
cache.
"""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import msgspec
import numpy as np
import pyarrow as pa

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.records import RUN_FORMAT, Counts, Results, RunInfo, StoredSignature
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import key_columns, score_columns, to_table

PARTS, PART = 100, 10_000
LOADING = 8  # seconds in which the viewer loads two runs in the background
METRICS = ("bleu", "cider", "cider_d", "clip_score", "meteor", "rouge_l", "semantic_similarity", "composite_score")
WORDS = (
    "a the two red dog cat man woman on in with under grass street ball bus sits runs holds near water old young green "
    "blue kitchen table beach snow train field horse plate pizza bench window light dark clock tower bridge river"
).split()
RARE = tuple(f"rare{number}" for number in range(2_000))


def build(path: Path, seed: int) -> None:
    """Build a run folder of a million captions with eight metrics, as a run writes it."""
    info = RunInfo(
        format=RUN_FORMAT,
        state="reading",
        created="2026-01-01T00:00:00+00:00",
        versions={},
        task="captioning",
        metrics=list(METRICS[:-1]),
        unavailable={},
        seed=0,
        config=RunConfig(skip_lint=True),
        source=None,
        means=list(METRICS),
        bounds=dict.fromkeys(METRICS, (0, 1)),
    )
    folder = RunFolder.create(path, info)
    totals = {name: np.zeros(3) for name in METRICS}
    for part in range(PARTS):
        data, generator = (
            np.random.default_rng(part),
            np.random.default_rng([seed, part]),
        )  # all runs have the same data
        samples = [_sample(part * PART + number, data, generator) for number in range(PART)]
        folder.write_part("samples", part, to_table(samples, part * PART))
        columns: dict[str, Any] = key_columns(samples, part * PART)
        for name in METRICS:
            values = generator.beta(2, 5, PART)
            failed = generator.random(PART) < 0.002
            scores = [
                Score(None, "error", "the generator failed") if bad else Score(float(value))
                for value, bad in zip(values, failed, strict=True)
            ]
            columns |= score_columns(name, scores)
            good = values[~failed]
            totals[name] += (len(good), good.sum(), (good**2).sum())
        folder.write_part("scores", part, pa.table(columns))
    entries = {name: _entry(name, *sums.tolist()) for name, sums in totals.items()}
    composite = entries.pop("composite_score")
    results = {"task": "captioning", "n": PARTS * PART, "metrics": entries, "composite": composite}
    folder.write_results(msgspec.convert({**results, "slices": {}, "notes": []}, Results))
    # Another version than the registered metrics, so that all eight are compared as the means that they are here.
    signatures = {name: StoredSignature(f"{name}|v:0", {"metric": name, "version": "0"}) for name in METRICS}
    counts = Counts(PARTS * PART, 0, 0, 0)
    folder.write_info(
        msgspec.structs.replace(info, state="done", parts=[PART] * PARTS, signatures=signatures, counts=counts)
    )


def _sample(number: int, data: np.random.Generator, generator: np.random.Generator) -> Sample:
    words, answer = data.choice(WORDS, 24), generator.choice(WORDS, 13)
    if generator.random() < 0.1:
        answer[5] = generator.choice(RARE)
    return Sample(
        f"image-{number:07d}",
        image=f"images/{number:07d}.jpg",
        question="What is in the image?",
        references=[" ".join(words[:12]), " ".join(words[12:24])],
        generated_answer=" ".join(answer),
        metadata={"language": "en" if number % 10 else "ru", "split": f"split-{number % 7}"},
    )


def _entry(name: str, count: float, total: float, squares: float) -> dict[str, Any]:
    mean = total / count
    error = float(np.sqrt((squares / count - mean**2) / count))
    return {
        "value": mean,
        "stderr": error,
        "low": mean - 1.96 * error,
        "high": mean + 1.96 * error,
        "method": "95% normal interval",
        "n_scored": int(count),
        "n_total": PARTS * PART,
        "unscored": {"error": PARTS * PART - int(count)},
        "reasons": [{"reason": "the generator failed", "count": PARTS * PART - int(count)}],
        "warnings": {},
        "direction": "higher",
        "signature": f"{name}|v:0",
    }


def requests() -> dict[str, list[str]]:
    """The measured requests: seven URLs of each kind."""
    seven = range(7)
    deep = [80_000, 250_000, 499_950, 500_000, 640_000, 900_000, 999_950]
    return {
        "list of runs": ["/"] * 7,
        "page of a run": ["/run/first"] * 7,
        "histograms of all metrics": ["/histograms/first"] * 7,
        "spreads of a row of the list": [f"/spread/second?metric={name}" for name in METRICS[:7]],
        "list, sorted by a metric": [f"/?sort=score.{name}&metric={name}" for name in METRICS[:7]],
        "samples, first page": ["/samples/first"] * 7,
        "samples, any page": [f"/samples/first?offset={offset}" for offset in deep],
        "sorted by a metric, first page": [f"/samples/first?sort={name}" for name in METRICS[:7]],
        "sorted by a metric, descending": [f"/samples/first?sort={name}&desc=1" for name in METRICS[:7]],
        "sorted by a metric, any page": [f"/samples/first?sort={METRICS[i]}&offset={deep[i]}" for i in seven],
        "filter by status": [f"/samples/first?status=error&sort={name}" for name in METRICS[:7]],
        "filter by two ranges": [f"/samples/first?min.cider=0.{i + 1}&max.bleu=0.3&sort=meteor" for i in seven],
        "filter by metadata": [f"/samples/first?meta=split&value=split-{i}" for i in seven],
        "gallery, first page": [f"/samples/first?view=gallery&sort={name}" for name in METRICS[:7]],
        "gallery, any page": [f"/samples/first?view=gallery&offset={offset}" for offset in deep],
        "brush of one histogram": [f"/samples/first?min.cider=0.{i + 1}&max.cider=0.{i + 2}" for i in seven],
        "brush that excludes few samples": [f"/samples/first?min.cider=0.0{i + 1}&view=gallery" for i in seven],
        "brush, sorted by another metric": [f"/samples/first?min.bleu=0.{i + 1}&sort=meteor" for i in seven],
        "values of two keys": [
            f"/samples/first?meta.split=split-{i}&meta.split=split-{(i + 1) % 7}&meta.language=ru" for i in seven
        ],
        "values, brush and order": [
            f"/samples/first?meta.split=split-{i}&meta.language=en&min.cider=0.{i + 1}&sort=meteor" for i in seven
        ],
        "filters that nothing matches": [
            f"/samples/first?meta.split=split-{i}&min.cider=0.99999&q=dog&status=ok" for i in seven
        ],
        "search: a frequent word": [f"/samples/first?q={WORDS[i + 2]}" for i in seven],
        "search: a rare word": [f"/samples/first?q={RARE[i]}" for i in seven],
        "search: a word in no answer": [f"/samples/first?q=nowhere{i}" for i in seven],
        "search: an id": [f"/samples/first?q={quote(f'image-0{i}31234')}" for i in seven],
        "search, sorted by a metric": [f"/samples/first?q={RARE[10 + i]}&sort={METRICS[i]}" for i in seven],
        "a sample": [f"/sample/first?row={i * 140_007}" for i in seven],
        **_of_two_runs(deep),
        "a search as CSV": [f"/export/samples.csv/first?q={word}" for word in RARE[20:27]],
        "all samples as CSV, once": ["/export/samples.csv/first?sort=cider"],
    }


def _of_two_runs(deep: list[int]) -> dict[str, list[str]]:
    """The requests that compare the runs. The first comparison draws 10,000 random assignments for each metric."""
    both, seven = "run=first&run=second", range(7)
    compared = f"/compare/numbers?{both}"
    return {
        "choice of runs": ["/compare?run=first"] * 7,
        "page of a comparison, before it": [f"/compare?{both}"] * 7,
        "comparison, the first time": [compared],
        "comparison": [compared, f"/compare?{both}"] * 3 + [compared],
        "two runs, sorted by the difference": [f"/pairs?{both}&number={name}" for name in METRICS[:7]],
        "two runs, any page": [f"/pairs?{both}&number={METRICS[i]}&offset={deep[i]}" for i in seven],
        "two runs, by outcome and score": [
            f"/pairs?{both}&number={name}&outcome=second&sort=a&desc=1" for name in METRICS[:7]
        ],
        "two runs, filtered by three ranges": [
            f"/pairs?{both}&number={METRICS[i]}&min.a.cider=0.2&max.b.cider=0.{i + 2}&min.d=0.1" for i in seven
        ],
        "two runs, filtered by metadata": [f"/pairs?{both}&meta.split=split-{i}&number={METRICS[i]}" for i in seven],
        "two runs, a rare word": [f"/pairs?{both}&q={word}" for word in RARE[30:37]],
        "scatter plot of a run": [f"/scatter/first?x={name}&y=composite_score" for name in METRICS[:7]],
        "scatter plot of two runs": [f"/scatter?{both}&x={name}&y={name}" for name in METRICS[:7]],
        "brush of a plot of a run": [f"/scatter/first?x=bleu&y=composite_score&x0=0.{i}&y1=0.{9 - i}" for i in seven],
        "brush of a plot of two runs": [f"/scatter?{both}&x=bleu&y=bleu&x0=0.{i}&y1=0.{9 - i}" for i in seven],
    }


def main() -> None:
    folder = Path(sys.argv[1])
    for seed, name in enumerate(("first", "second")):
        if not (folder / name / "run.json").exists():
            build(folder / name, seed)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "view", str(folder), "--port", str(port)]
    server = subprocess.Popen(command)
    words = sys.argv[2:]
    try:
        _wait(port)
        for name in ("first", "second"):  # loaded, as after the first look at a run
            _timed(port, f"/samples/{name}")
        time.sleep(LOADING)
        print(f"{'':36}{'best':>8}{'median':>8}{'worst':>8}  ms")
        for name, addresses in requests().items():
            if words and not any(word in name for word in words):
                continue
            times = [_timed(port, address) for address in addresses]
            print(f"{name:36}{min(times):8.0f}{statistics.median(times):8.0f}{max(times):8.0f}", flush=True)
    finally:
        server.terminate()
        server.wait()


def _wait(port: int) -> None:
    for _ in range(100):
        try:
            _timed(port, "/")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the server did not start")


def _timed(port: int, address: str) -> float:
    start = time.perf_counter()
    with urlopen(f"http://127.0.0.1:{port}{address}") as answer:
        answer.read()
    return 1_000 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
