"""Whole commands and calls, with their start: COCO files to the table, small inputs in memory, a metric in Python.

    python bench/whole_run.py [--flickr8k FILE] [--only start,memory,coco,python,report,suite] [--samples 1000000]

start    `import multimodal_eval`, `mmeval --help`; the first `evaluate` of three rows, beside the imports that it needs
memory   `evaluate` of 300 records in memory, with and without lint: the best of 100 calls
coco     `mmeval score` of 5,000 images x 4 references, with and without lint and report, beside pycocoevalcap's script
         (needs Java). FILE is Flickr8k.token.txt, or .gz: caption 1 is the candidate. Without it, captions are made up.
         METEOR is left out unless it was fetched: `mmeval fetch meteor-1.5-en`
python   `mmeval score` with a metric in Python, from SAMPLES / 10 to SAMPLES (1,000,000 need 1 GB of disk)
report   `mmeval report` of a run with 10,000 and 100,000 samples, four metrics and two columns that become slices
suite    `mmeval table` of 40 models x 30 tasks x 1,000 samples, whose runs take four minutes
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import harness
from growing_captions import samples as growing_samples
from harness import MMEVAL, Measured, Work

IMAGES = 5_000
CALLS = 100
PEER = """
import sys
from pycocotools.coco import COCO
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer
coco = COCO(sys.argv[1])
results = coco.loadRes(sys.argv[2])
images = results.getImgIds()
tokenize = PTBTokenizer().tokenize
references = tokenize({image: coco.imgToAnns[image] for image in images})
candidates = tokenize({image: results.imgToAnns[image] for image in images})
for scorer in (Bleu(4), Meteor(), Rouge(), Cider()):  # all of its script but SPICE
    scorer.compute_score(references, candidates)
"""
PLUGIN = """
from multimodal_eval import metric

@metric("words", needs=("generated_answer",), bounds=(0, None), version="1")
def words(sample):
    return float(sample.generated_answer.count(" ") + 1)
"""
THREE_ROWS = """
from multimodal_eval import evaluate
answers = ["a red dog", "a cat", "the dog"]
evaluate({"references": ["a red dog"] * 3, "generated_answer": answers}, metrics=["exact_match"])
"""
CONFIG = """task: mine
tasks:
  mine:
    metrics: [rouge_l, exact_match, bleu, rouge_1]
    weights: {rouge_l: 0.25, exact_match: 0.25, bleu: 0.25, rouge_1: 0.25}
"""


def write_pair(flickr8k: Path | None, folder: Path, count: int) -> list[str]:
    """COCO's annotations and results."""
    if flickr8k is None:
        rng = random.Random(0)
        words = [f"word{number}" for number in range(5000)]
        chosen = [[" ".join(rng.choices(words[:: rng.randint(1, 50)], k=10)) for _ in range(5)] for _ in range(count)]
    else:
        text = gzip.decompress(flickr8k.read_bytes()) if flickr8k.suffix == ".gz" else flickr8k.read_bytes()
        by_image: dict[str, list[str]] = {}
        for line in text.decode().splitlines():
            key, _, caption = line.partition("\t")
            by_image.setdefault(key.partition("#")[0], []).append(caption)
        chosen = list(by_image.values())[:count]
    numbered = [(image, text) for image, texts in enumerate(chosen) for text in texts[1:]]
    annotations = [{"id": row, "image_id": image, "caption": text} for row, (image, text) in enumerate(numbered)]
    files = [folder / f"annotations-{count}.json", folder / f"results-{count}.json"]
    images = [{"id": image} for image in range(len(chosen))]
    content = {"info": {}, "licenses": [], "type": "captions", "images": images, "annotations": annotations}
    files[0].write_text(json.dumps(content))
    files[1].write_text(json.dumps([{"image_id": image, "caption": texts[0]} for image, texts in enumerate(chosen)]))
    return list(map(str, files))


def write_samples(path: Path, count: int) -> Path:
    """JSONL with two columns of few values."""
    with path.open("w") as file:
        for number, sample in enumerate(growing_samples(count)):
            file.write(json.dumps({**sample, "kind": f"k{number % 5}", "hue": f"h{number % 7}"}) + "\n")
    return path


def command(folder: Path, words: list[str]) -> Measured:
    """A command that writes the run `run` in the folder."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    return harness.run_command([*words, "-o", str(folder / "run")])


def start(folder: Path, options: argparse.Namespace) -> None:
    words = {"python -c pass": [sys.executable, "-c", "pass"], "mmeval --help": [*MMEVAL, "--help"]}
    needed, ours = "import numpy, pyarrow, msgspec", "import multimodal_eval"
    codes = {ours: ours, needed: needed, "evaluate": THREE_ROWS}
    words |= {name: [sys.executable, "-c", code] for name, code in codes.items()}
    jobs = {(name, 1): partial(harness.run_command, line) for name, line in words.items()}
    harness.print_table("start", harness.in_turn(jobs, 10 * options.rounds), {"evaluate": needed})


def in_memory(path: str, plugin: str, metric: str, lint: bool) -> Work:
    from multimodal_eval import evaluate

    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]

    def work() -> float:
        times = []
        for _ in range(CALLS):
            begin = time.perf_counter()
            evaluate(rows, metrics=metric, plugins=[plugin], skip_lint=not lint)
            times.append(time.perf_counter() - begin)
        return 1000 * min(times)

    return work


def memory(folder: Path, options: argparse.Namespace) -> None:
    path, plugin = write_samples(folder / "few.jsonl", 300), folder / "plugin.py"
    jobs = {
        (f"{metric}{', lint' if lint else ''}", CALLS): partial(
            harness.run_inside, in_memory, str(path), str(plugin), metric, lint
        )
        for metric in ("words", "exact_match", "rouge_l", "bleu", "cider_d")
        for lint in (False, True)
    }
    harness.print_table(f"evaluate, 300 records, {CALLS} calls; value: ms of the best", harness.in_turn(jobs, 1))


def coco(folder: Path, options: argparse.Namespace) -> None:
    plain = ["--no-lint", "--no-report"]
    jobs: dict[tuple[str, int], Callable[[], Measured]] = {}
    for count in (IMAGES // 10, IMAGES):
        pair = write_pair(options.flickr8k, folder, count)
        jobs["mmeval score", count] = partial(command, folder, [*MMEVAL, "score", *pair])
        jobs["mmeval score --no-lint --no-report", count] = partial(command, folder, [*MMEVAL, "score", *pair, *plain])
        if shutil.which("java"):
            jobs["pycocoevalcap", count] = partial(harness.run_command, [sys.executable, "-c", PEER, *pair])
    results = harness.in_turn(jobs, options.rounds)
    harness.print_table("COCO files to the table", results, {"pycocoevalcap": "mmeval score"}, "images")


def python(folder: Path, options: argparse.Namespace) -> None:
    jobs: dict[tuple[str, int], Callable[[], Measured]] = {}
    for count in (options.samples // 10, options.samples):
        data = write_samples(folder / f"data-{count}.jsonl", count)
        words = [*MMEVAL, "score", str(data), "--metrics", "words", "--no-report"]
        words += ["--plugin", str(folder / "plugin.py")]
        jobs["with lint", count] = partial(command, folder, words)
        jobs["without lint", count] = partial(command, folder, [*words, "--no-lint"])
    harness.print_table("a metric in Python", harness.in_turn(jobs, 1), unit="samples")


def report(folder: Path, options: argparse.Namespace) -> None:
    (folder / "config.yaml").write_text(CONFIG)
    jobs: dict[tuple[str, int], Callable[[], Measured]] = {}
    for count in (10_000, 100_000):
        data, run = write_samples(folder / f"report-{count}.jsonl", count), folder / f"run-{count}"
        words = [*MMEVAL, "score", str(data), "--config", str(folder / "config.yaml"), "--no-report"]
        harness.run_command([*words, "-o", str(run)])
        jobs["mmeval report", count] = partial(
            harness.run_command, [*MMEVAL, "report", str(run), "-o", str(folder / "report.html")]
        )
    jobs["mmeval report", 10_000]()  # compiles modules and templates
    harness.print_table("the report", harness.in_turn(jobs, options.rounds), unit="samples")


def suite(folder: Path, options: argparse.Namespace) -> None:
    from multimodal_eval import evaluate

    rng = random.Random(0)
    for model, task in product(range(40), range(30)):
        right = [rng.random() < 0.3 + model / 100 for _ in range(1_000)]
        rows = {
            "question": [f"What is in image {number} of set {task}?" for number in range(1_000)],
            "references": ["a dog"] * 1_000,
            "generated_answer": ["a dog" if is_right else "a cat" for is_right in right],
        }
        evaluate(rows, metrics=["exact_match"], output=folder / f"suite/m{model}/t{task}", progress=False)
    jobs = {("mmeval table", 1_200): partial(harness.run_command, [*MMEVAL, "table", folder / "suite"])}
    harness.print_table("suite", harness.in_turn(jobs, options.rounds), unit="runs")


def main() -> None:
    parts = {work.__name__: work for work in (start, memory, coco, python, report, suite)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flickr8k", type=Path, metavar="FILE")
    parser.add_argument("--only", default="start,memory,coco,python,report")
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "plugin.py").write_text(PLUGIN)
        for name in options.only.split(","):
            parts[name](folder, options)


if __name__ == "__main__":
    main()
