"""METEOR: our time and peak memory compared with the Java program, aac-metrics (which also calls it) and NLTK.

    mmeval fetch meteor-1.5-en
    python bench/meteor.py DATA [--scales 1,10] [--rounds 2] [--nltk-data FOLDER] [--skip PEER ...]

DATA is a .json.gz with {"references": {id: [captions]}, "candidates": {id: caption}}; scale 10 repeats it ten times.
NLTK needs its WordNet in FOLDER/corpora/wordnet (or its usual places). The contestants run in turn, each in a separate
process, once per round; the best time counts. The time covers the whole job: opening data or starting Java, then
scoring every caption, but not imports and reading the input. For ours it includes tokenization; the others get tokens.
The peak is that of the process plus that of its largest child.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from captions_file import read_captions

from multimodal_eval.core.metric import configured

Job = Callable[[], float]  # does the work once and returns the corpus score


@dataclass(frozen=True)
class Contestant:
    name: str
    prepare: Callable[[list[str], list[list[str]]], Job]
    peer: str | None = None  # the required package; None for ours
    against: str = ""  # which of ours it is compared with


def ours(threads: int, **options: str) -> Callable[[list[str], list[list[str]]], Job]:
    def prepare(candidates: list[str], references: list[list[str]]) -> Job:
        from multimodal_eval.evaluation.metrics.meteor import compute_meteor

        import_module("numpy")  # otherwise imported by the first result
        metric = configured(compute_meteor, options)
        return lambda: metric.aggregate(metric.rows_of(candidates, references, threads)).value

    return prepare


def tokens_of(candidates: list[str], references: list[list[str]]) -> tuple[list[list[str]], list[list[list[str]]]]:
    from multimodal_eval.text.tokenizers import tokenize

    return tokenize(candidates), [tokenize(texts) for texts in references]


def java(candidates: list[str], references: list[list[str]]) -> Job:
    program = import_module("pycocoevalcap.meteor.meteor").Meteor
    answers, truths = tokens_of(candidates, references)
    results = {image: [" ".join(tokens)] for image, tokens in enumerate(answers)}
    truth = {image: [" ".join(tokens) for tokens in texts] for image, texts in enumerate(truths)}
    return lambda: float(program().compute_score(truth, results)[0])


def aac_metrics(candidates: list[str], references: list[list[str]]) -> Job:
    meteor = import_module("aac_metrics.functional.meteor").meteor
    package = Path(next(iter(import_module("pycocoevalcap").__path__)))
    answers, truths = tokens_of(candidates, references)
    results, truth = [" ".join(t) for t in answers], [[" ".join(t) for t in texts] for texts in truths]
    cache = Path(os.environ.get("AAC_METRICS_CACHE_PATH", Path.home() / ".cache"))
    folder = cache / "aac-metrics" / "meteor"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("meteor-1.5.jar", "data"):
        if not (folder / name).exists():
            (folder / name).symlink_to(package / "meteor" / name)
    return lambda: float(meteor(results, truth, cache_path=str(cache))[0]["meteor"])


def nltk(candidates: list[str], references: list[list[str]]) -> Job:
    package = import_module("nltk.translate.meteor_score")
    wordnet = import_module("nltk.corpus").wordnet
    answers, truths = tokens_of(candidates, references)

    def job() -> float:
        wordnet.ensure_loaded()
        pairs = zip(answers, truths, strict=True)
        return sum(float(package.meteor_score(texts, tokens)) for tokens, texts in pairs) / len(answers)

    return job


CONTESTANTS = (
    Contestant("ours 1.5", ours(1)),
    Contestant("ours 1.5, all cores", ours(os.cpu_count() or 1)),
    Contestant("pycocoevalcap", java, "pycocoevalcap", "ours 1.5"),
    Contestant("aac-metrics", aac_metrics, "aac_metrics", "ours 1.5"),
    Contestant("ours 2005", ours(1, variant="2005")),
    Contestant("ours fmean", ours(1, variant="fmean")),
    Contestant("NLTK", nltk, "nltk", "ours 2005"),
)


def run_here(name: str, path: str, scale: int) -> dict[str, float]:
    contestant = next(entry for entry in CONTESTANTS if entry.name == name)
    job = contestant.prepare(*read_captions(path, scale))
    before = time.perf_counter()
    figure = job()
    seconds = time.perf_counter() - before
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    return {"seconds": seconds, "figure": figure, "peak": peak}


def run_in_process(name: str, path: str, scale: int) -> dict[str, Any]:
    # -O: aac-metrics asserts a Java version from before 2018, but works with later ones.
    command = [sys.executable, "-O", __file__, "--inside", name, path, str(scale)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"missing": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def compete(options: argparse.Namespace) -> None:
    results: dict[tuple[str, int], dict[str, Any]] = {}
    absent: dict[str, str] = {}
    for _ in range(options.rounds):
        for scale in (*options.scales, max(options.scales) * 10):
            for contestant in CONTESTANTS:
                name, peer = contestant.name, contestant.peer
                if peer in options.skip or name in absent or (peer and scale not in options.scales):
                    continue
                result = run_in_process(name, options.data, scale)
                if "missing" in result:
                    absent[name] = result["missing"]
                elif (name, scale) not in results or result["seconds"] < results[name, scale]["seconds"]:
                    results[name, scale] = result
    print(f"  {'':<20} scale         s peer/us growth peak MB     score")
    for contestant in CONTESTANTS:
        before = 0.0
        for scale in sorted(scale for name, scale in results if name == contestant.name):
            result = results[contestant.name, scale]
            base = results.get((contestant.against, scale))
            ratio = f"{result['seconds'] / base['seconds']:.1f}" if base else ""
            growth = f"{result['seconds'] / before:.1f}" if before else ""
            print(
                f"  {contestant.name:<20} {scale:>5} {result['seconds']:9.3f} {ratio:>7} {growth:>6} "
                f"{result['peak']:7.0f} {result['figure']:9.6f}"
            )
            before = result["seconds"]
        if contestant.name in absent:
            print(f"  {contestant.name:<20} not available: {absent[contestant.name]}")


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--inside"]:
        name, path, scale = arguments[1:]
        print("\n" + json.dumps(run_here(name, path, int(scale))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--scales", type=lambda text: sorted(int(scale) for scale in text.split(",")), default=[1, 10])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--nltk-data")
    parser.add_argument("--skip", nargs="*", default=[], metavar="PEER")
    options = parser.parse_args(arguments)
    if options.nltk_data:
        os.environ["NLTK_DATA"] = options.nltk_data
    compete(options)


if __name__ == "__main__":
    main(sys.argv[1:])
