"""BLEU, ROUGE-L and CIDEr-D: our time and peak memory compared with other packages, and their growth.

    python bench/caption_metrics.py DATA [--scales 1,10] [--rounds 2] [--skip PEER ...] [--only SECTION,...]

DATA is a .json.gz with {"references": {id: [captions]}, "candidates": {id: caption}}; scale 10 repeats it ten times.
The peers are pycocoevalcap (needs Java), sacrebleu, bleuscore, rouge_score, rouge_rs and aac_metrics; packages that are
not installed are listed as such.

Sections: whole (tokenization and three metrics), single (one metric each), adversarial (texts of 1 and 10 MB) and
frequencies (a table of 10^7 n-grams). The contestants run in turn, each in a separate process, once per round, and do
their job twice; the best time counts. Imports and reading the input are not timed. Copies add no new n-grams, so larger
scales are easier for everyone than as many different captions. The peak is that of the whole process, including
interpreter, libraries, input and Java. Ours also runs at ten times the largest scale. `cores` is processor time divided
by wall time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from caption_contestants import TABLES, Contestant
from captions_file import read_captions

Result = dict[str, Any]  # the result of a separate process: numbers, or {"missing": reason}

SECTIONS = ("whole", "single", "adversarial", "frequencies")
MEGABYTE = 1_000_000
RUNS = 2  # in each process
TIME_LIMIT = 60  # seconds for an adversarial text
MEMORY_LIMIT = 8 << 30  # bytes for an adversarial text
NGRAMS = 10_000_000
NEW_NGRAMS_PER_IMAGE = 120  # 5 references of 10 words: 9 + 8 + 7 n-grams of two words or more, nearly all new


# Adversarial texts: a candidate of the given number of characters, and its reference.


def _filled(unit: str) -> Callable[[int], tuple[str, str]]:
    def texts(size: int) -> tuple[str, str]:
        text = (unit * (size // len(unit) + 1))[:size]
        return text, text

    return texts


def _no_spaces(size: int) -> tuple[str, str]:
    text = "".join(random.Random(0).choices(string.ascii_letters + string.digits, k=size))
    return text, text


def _random_words(vocabulary: int) -> Callable[[int], tuple[str, str]]:
    """Words of six letters; the reference is reversed, so that ROUGE-L finds no common prefix or suffix."""

    def texts(size: int) -> tuple[str, str]:
        words = random.Random(0).choices(invented_words(vocabulary, 6), k=size // 7)
        return " ".join(words), " ".join(reversed(words))

    return texts


ADVERSARIAL: dict[str, Callable[[int], tuple[str, str]]] = {
    "one token repeated": _filled("dog "),
    "all punctuation": _filled(".,;:!?()\"'"),
    "'<' * n": _filled("<"),
    "'a.' * n": _filled("a."),
    "'-' * n": _filled("-"),
    "digits with commas": _filled("123,"),
    "no spaces at all": _no_spaces,
    "1,000 words, reversed": _random_words(1_000),
    "200,000 words, reversed": _random_words(200_000),
}


def invented_words(count: int, letters: int) -> list[str]:
    rng = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choices(string.ascii_lowercase, k=letters))] = None
    return list(words)


# Inside a separate process.


def best(job: Callable[[], object]) -> tuple[float, float]:
    """Seconds and cores of the fastest run."""
    runs: list[tuple[float, float]] = []
    for _ in range(RUNS):
        processor, before = _processor_seconds(), time.perf_counter()
        job()
        seconds = time.perf_counter() - before
        runs.append((seconds, (_processor_seconds() - processor) / seconds))
    return min(runs)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def peak_megabytes() -> float:
    """The peak of this process plus that of its largest child."""
    return sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024


def run_contestant(table: str, name: str, path: str, scale: int) -> Result:
    contestant = next(entry for entry in TABLES[table] if entry.name == name)
    job = contestant.prepare(*read_captions(path, scale))
    figures: list[float] = []
    seconds, cores = best(lambda: figures.append(job()))
    return {"seconds": seconds, "cores": cores, "figure": figures[0], "peak": peak_megabytes()}


def write_tokens(path: str, target: str) -> Result:
    """Write the captions of a file as PTB tokens separated by spaces."""
    from multimodal_eval.text.tokenizers import tokenize

    def joined(texts: list[str]) -> list[str]:
        return [" ".join(tokens) for tokens in tokenize(texts, "ptb")]

    data = json.loads(gzip.decompress(Path(path).read_bytes()))
    candidates = dict(zip(data["candidates"], joined(list(data["candidates"].values())), strict=True))
    references = {image: joined(texts) for image, texts in data["references"].items()}
    Path(target).write_bytes(gzip.compress(json.dumps({"candidates": candidates, "references": references}).encode()))
    return {}


def run_adversarial(kind: str, size: int, scored: bool) -> Result:
    """Tokenize the text, or score it against its reference with all three metrics."""
    from multimodal_eval.interop.coco import caption_scores
    from multimodal_eval.text.tokenizers import tokenize

    import_module("numpy")  # otherwise imported by the first result
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    text, reference = ADVERSARIAL[kind](size)
    if scored:
        seconds, _ = best(lambda: caption_scores([text, "a dog"], [[reference], ["a dog"]], threads=1, meteor=False))
    else:
        seconds, _ = best(lambda: tokenize([text], "ptb"))
    return {"seconds": seconds, "peak": peak_megabytes()}


def reference_sets() -> list[list[str]]:
    """Five captions of ten random words per image, with about 10^7 n-grams in total."""
    words = invented_words(200_000, 7)
    rng = random.Random(2)
    images = (NGRAMS - len(words)) // NEW_NGRAMS_PER_IMAGE
    return [[" ".join(rng.choices(words, k=10)) for _ in range(5)] for _ in range(images)]


def once(step: str, work: Callable[[], Any]) -> tuple[Any, Result]:
    peak_before, start = peak_megabytes(), time.perf_counter()
    result = work()
    figures = {"seconds": time.perf_counter() - start, "before": peak_before, "peak": peak_megabytes()}
    return result, {"step": step, **figures}


def frequencies_built(path: str) -> Result:
    from multimodal_eval.text.document_frequencies import DocumentFrequencies

    sets = reference_sets()
    table, built = once(f"build from {len(sets):,} images", lambda: DocumentFrequencies.of(sets))
    _, saved = once("save", lambda: table.save(path))
    return {"steps": [built, saved], "ngrams": len(table), "bytes": Path(path).stat().st_size}


def frequencies_loaded(path: str) -> Result:
    from multimodal_eval.text.document_frequencies import DocumentFrequencies

    return {"steps": [once("load", lambda: DocumentFrequencies.load(path))[1]]}


def frequencies_merged(path: str) -> Result:
    from multimodal_eval.text.document_frequencies import DocumentFrequencies

    sets = reference_sets()
    halves = [DocumentFrequencies.of(half) for half in (sets[: len(sets) // 2], sets[len(sets) // 2 :])]
    merged, step = once("merge two halves", lambda: halves[0] + halves[1])
    return {"steps": [step], "equal": merged.to_bytes() == Path(path).read_bytes()}


INSIDE: dict[str, Callable[..., Result]] = {
    work.__name__: work
    for work in (
        run_contestant,
        write_tokens,
        run_adversarial,
        frequencies_built,
        frequencies_loaded,
        frequencies_merged,
    )
}


# Outside: start the processes and print the results.


def in_separate_process(work: Callable[..., Result], *arguments: object, limit: float | None = None) -> Result:
    """The result of `work` in a separate process; {"missing": the last line of its errors} if it failed."""
    command = [sys.executable, __file__, "--inside", json.dumps([work.__name__, *arguments])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"missing": f"over {limit:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exited with {done.returncode}"]
        return {"missing": lines[-1]}
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


def why_missing(contestant: Contestant, result: Result) -> str:
    absent = result["missing"] == f"ModuleNotFoundError: No module named '{contestant.peer}'"
    return "not installed" if absent else f"not available: {result['missing']}"


def compete(table: str, inputs: dict[bool, str], scales: Sequence[int], rounds: int, skip: Sequence[str]) -> None:
    """Run the contestants of a table in turn, and print it."""
    contestants = [contestant for contestant in TABLES[table] if contestant.peer not in skip]
    results: dict[tuple[str, int], Result] = {}
    absent: dict[str, str] = {}
    for _ in range(rounds):
        for scale in (*scales, max(scales) * 10):
            for contestant in contestants:
                name = contestant.name
                if name in absent or (contestant.peer and scale not in scales):
                    continue
                result = in_separate_process(run_contestant, table, name, inputs[contestant.tokens], scale)
                if "missing" in result:
                    absent[name] = why_missing(contestant, result)
                elif (name, scale) not in results or result["seconds"] < results[name, scale]["seconds"]:
                    results[name, scale] = result
    print_table(table, contestants, results, absent)


def print_table(
    table: str, contestants: Sequence[Contestant], results: dict[tuple[str, int], Result], absent: dict[str, str]
) -> None:
    title = {"whole": "the whole job; score: CIDEr-D"}.get(table, f"{table} alone")
    print(f"\n{title}")
    print(f"  {'':<18} scale         s peer/us growth peak MB cores   score  computes")
    for contestant in contestants:
        before = 0.0
        base = next(other.name for other in contestants if other.peer is None and other.tokens == contestant.tokens)
        for (name, scale), result in sorted(results.items(), key=lambda item: item[0][1]):
            if name != contestant.name:
                continue
            seconds = result["seconds"]
            ratio = "" if name == base else f"{seconds / results[base, scale]['seconds']:.1f}"
            growth = f"{seconds / before:.1f}" if before else ""
            print(
                f"  {name:<18} {scale:>5} {seconds:9.4f} {ratio:>7} {growth:>6} {result['peak']:7.0f} "
                f"{result['cores']:5.1f} {result['figure']:7.4f}  {'' if before else contestant.computes}"
            )
            before = seconds
        if contestant.name in absent:
            print(f"  {contestant.name:<18} {absent[contestant.name]}")


def adversarial() -> None:
    print(f"\nadversarial texts; growth from 1 to 10 MB; at most {TIME_LIMIT} s and {MEMORY_LIMIT >> 30} GiB each")
    print(f"  {'':<24} {'':<16} {'s, 1 MB':>9} {'s, 10 MB':>9} {'growth':>6} {'peak MB, 10 MB':>14}")
    for kind in ADVERSARIAL:
        for label, scored in (("tokenize", False), ("caption_scores", True)):
            sizes = (MEGABYTE, 10 * MEGABYTE)
            small, large = (
                in_separate_process(run_adversarial, kind, size, scored, limit=TIME_LIMIT) for size in sizes
            )
            print(f"  {kind:<24} {label:<16} {_growth_cells(small, large)}")


def _growth_cells(small: Result, large: Result) -> str:
    seconds = f"{small['seconds']:9.4f}" if "seconds" in small else small["missing"]
    if "missing" in small or "missing" in large:
        return f"{seconds}  {large.get('missing', '')}"
    growth = large["seconds"] / small["seconds"]
    return f"{seconds} {large['seconds']:9.4f} {growth:6.1f} {large['peak']:14.0f}{'  above 15' if growth > 15 else ''}"


def frequencies(folder: Path) -> None:
    path = str(folder / "table.df")
    built, loaded, merged = (
        in_separate_process(work, path) for work in (frequencies_built, frequencies_loaded, frequencies_merged)
    )
    print("\ndocument frequencies")
    for result in (built, loaded, merged):
        if "missing" in result:
            print(f"  failed: {result['missing']}")
            return
    print(f"  {built['ngrams']:,} n-grams, {built['bytes'] / MEGABYTE:.0f} MB on disk")
    print(f"  {'':<28} {'s':>7} {'peak MB before':>14} {'peak MB':>8}")
    for step in (*built["steps"], *loaded["steps"], *merged["steps"]):
        print(f"  {step['step']:<28} {step['seconds']:7.2f} {step['before']:14.0f} {step['peak']:8.0f}")
    print(f"  the merged halves {'equal' if merged['equal'] else 'DO NOT EQUAL'} the whole, byte for byte")


def captions_sections(options: argparse.Namespace, folder: Path) -> None:
    tokens = str(folder / "tokens.json.gz")
    result = in_separate_process(write_tokens, options.data, tokens)
    if "missing" in result:
        sys.exit(f"{options.data} could not be tokenized: {result['missing']}")
    for table in TABLES:
        if ("whole" if table == "whole" else "single") in options.only:
            compete(table, {False: options.data, True: tokens}, options.scales, options.rounds, options.skip)


def versions(skip: Sequence[str]) -> Iterator[str]:
    from importlib.metadata import PackageNotFoundError, version

    peers = dict.fromkeys(entry.peer for table in TABLES.values() for entry in table if entry.peer)
    for name in ("multimodal-eval", *(peer for peer in peers if peer not in skip)):
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} not installed"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--scales", type=lambda text: sorted(int(scale) for scale in text.split(",")), default=[1, 10])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--skip", nargs="*", default=[], metavar="PEER")
    parser.add_argument("--only", type=lambda text: text.split(","), default=SECTIONS, metavar="SECTION,...")
    options = parser.parse_args(arguments)
    if unknown := set(options.only) - set(SECTIONS):
        parser.error(f"no section is named {', '.join(sorted(unknown))}. Known: {', '.join(SECTIONS)}")
    return options


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--inside"]:
        name, *rest = json.loads(arguments[1])
        print("\n" + json.dumps(INSIDE[name](*rest)))
        return
    options = parse(arguments)
    print(f"{', '.join(versions(options.skip))}; {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        if {"whole", "single"} & set(options.only):
            captions_sections(options, Path(folder))
        if "adversarial" in options.only:
            adversarial()
        if "frequencies" in options.only:
            frequencies(Path(folder))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main(sys.argv[1:])
