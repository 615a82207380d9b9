"""METEOR: our time and peak memory beside those of the Java program, of aac-metrics (which calls it too) and of NLTK.

    mmeval fetch meteor-1.5-en
    python bench/meteor.py DATA [--scales 1,10] [--rounds 2] [--nltk-data FOLDER] [--skip PEER ...]

DATA is a .json.gz of {"references": {id: [captions]}, "candidates": {id: caption}}; scale 10 is that set ten times.
NLTK needs its WordNet in FOLDER/corpora/wordnet (or its usual places). Each contestant runs in a process of its own, in
turn with the others, once a round; the best time counts. Timed is the whole job: opening data or starting Java, then
scoring every caption. Imports and reading the input are not timed. Ours tokenizes the captions while the clock runs;
the others get tokens. The peak is that of the process and of the largest that it started.
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

Job = Callable[[], float]  # does the work once, gives the corpus figure


@dataclass(frozen=True)
class Contestant:
    name: str
    prepare: Callable[[list[str], list[list[str]]], Job]
    peer: str | None = None  # the package that must be there; None: ours
    against: str = ""  # ours with which it is compared


def ours(threads: int, **options: str) -> Callable[[list[str], list[list[str]]], Job]:
    def prepare(candidates: list[str], references: list[list[str]]) -> Job:
        from multimodal_eval.evaluation.metrics.meteor import compute_meteor

        import_module("numpy")  # which the first result would import otherwise
        chosen = compute_meteor.configure(options)
        return lambda: chosen.aggregate(chosen.rows_of(candidates, references, threads)).value

    return prepare


def tokens_of(candidates: list[str], references: list[list[str]]) -> tuple[list[list[str]], list[list[list[str]]]]:
    from multimodal_eval.text.tokenizers import tokenize

    return tokenize(candidates), [tokenize(texts) for texts in references]


def java(candidates: list[str], references: list[list[str]]) -> Job:
    program = import_module("pycocoevalcap.meteor.meteor").Meteor
    given, known = tokens_of(candidates, references)
    results = {image: [" ".join(tokens)] for image, tokens in enumerate(given)}
    truth = {image: [" ".join(tokens) for tokens in texts] for image, texts in enumerate(known)}
    return lambda: float(program().compute_score(truth, results)[0])


def aac_metrics(candidates: list[str], references: list[list[str]]) -> Job:
    meteor = import_module("aac_metrics.functional.meteor").meteor
    package = Path(next(iter(import_module("pycocoevalcap").__path__)))
    given, known = tokens_of(candidates, references)
    results, truth = [" ".join(t) for t in given], [[" ".join(t) for t in texts] for texts in known]
    cache = Path(os.environ.get("AAC_METRICS_CACHE_PATH", Path.home() / ".cache"))
    place = cache / "aac-metrics" / "meteor"
    place.mkdir(parents=True, exist_ok=True)
    for name in ("meteor-1.5.jar", "data"):
        if not (place / name).exists():
            (place / name).symlink_to(package / "meteor" / name)
    return lambda: float(meteor(results, truth, cache_path=str(cache))[0]["meteor"])


def nltk(candidates: list[str], references: list[list[str]]) -> Job:
    package = import_module("nltk.translate.meteor_score")
    wordnet = import_module("nltk.corpus").wordnet
    given, known = tokens_of(candidates, references)

    def job() -> float:
        wordnet.ensure_loaded()
        pairs = zip(given, known, strict=True)
        return sum(float(package.meteor_score(texts, tokens)) for tokens, texts in pairs) / len(given)

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
    contestant = next(one for one in CONTESTANTS if one.name == name)
    job = contestant.prepare(*read_captions(path, scale))
    before = time.perf_counter()
    figure = job()
    seconds = time.perf_counter() - before
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    return {"seconds": seconds, "figure": figure, "peak": peak}


def run_apart(name: str, path: str, scale: int) -> dict[str, Any]:
    # -O: aac-metrics asserts a Java of before 2018 and works with later ones.
    command = [sys.executable, "-O", __file__, "--inside", name, path, str(scale)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"missing": (done.stderr.strip().splitlines() or ["no word"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compete(options: argparse.Namespace) -> None:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    absent: dict[str, str] = {}
    for _ in range(options.rounds):
        for scale in (*options.scales, max(options.scales) * 10):
            for one in CONTESTANTS:
                if one.peer in options.skip or one.name in absent or (one.peer and scale not in options.scales):
                    continue
                result = run_apart(one.name, options.data, scale)
                if "missing" in result:
                    absent[one.name] = result["missing"]
                elif (one.name, scale) not in found or result["seconds"] < found[one.name, scale]["seconds"]:
                    found[one.name, scale] = result
    print(f"  {'':<20} scale         s peer/us growth peak MB  figure")
    for one in CONTESTANTS:
        before = 0.0
        for scale in sorted(scale for name, scale in found if name == one.name):
            result = found[one.name, scale]
            base = found.get((one.against, scale))
            ratio = f"{result['seconds'] / base['seconds']:.1f}" if base else ""
            growth = f"{result['seconds'] / before:.1f}" if before else ""
            print(
                f"  {one.name:<20} {scale:>5} {result['seconds']:9.3f} {ratio:>7} {growth:>6} {result['peak']:7.0f} "
                f"{result['figure']:9.6f}"
            )
            before = result["seconds"]
        if one.name in absent:
            print(f"  {one.name:<20} not available: {absent[one.name]}")


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--inside"]:
        name, path, scale = arguments[1:]
        print("\n" + json.dumps(run_here(name, path, int(scale))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--scales", type=lambda text: sorted(int(one) for one in text.split(",")), default=[1, 10])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--nltk-data")
    parser.add_argument("--skip", nargs="*", default=[], metavar="PEER")
    options = parser.parse_args(arguments)
    if options.nltk_data:
        os.environ["NLTK_DATA"] = options.nltk_data
    compete(options)


if __name__ == "__main__":
    main(sys.argv[1:])
