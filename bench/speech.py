"""Error rates of transcripts: our time and peak memory on one thread compared with jiwer and whisper-normalizer.

    pip install jiwer==4.0.0 whisper-normalizer==0.1.15
    python bench/speech.py [--megabytes 1,10] [--rounds 3] [--end-to-end 100000]

The utterances are generated: English words, numbers, contractions and punctuation in sentences of about 18 words, with
8 % errors. The contestants run in turn, each in a separate process, once per round; the best CPU time counts. It covers
the work from lists of strings to the rate of the corpus, with the alignment of every utterance. Ours puts the strings
into Arrow columns first, which a run has anyway.

`--end-to-end N` compares `mmeval score` on a JSONL file of N utterances (checks, run folder, intervals) with a script
that reads the file and calls whisper-normalizer and jiwer. Both are whole processes, including their start.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

Texts = list[str]
Job = Callable[[Texts, Texts], float]  # references, transcripts -> the rate of the corpus

_COMMON = (
    "the of and to in a is that it was for on are as with his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some so these"
).split()
_OTHERS = (
    "colour organisation centre travelling twenty thirty-five hundred thousand million dollars percent won't it's "
    "Mr. Dr. 1,000 $20 3.5 1960s gonna because question answer morning government president analysis programme "
    "international development understanding recognise language evening children interesting machine weather"
).split()


def utterances(size: int, seed: int = 1) -> tuple[Texts, Texts]:
    """References of `size` bytes together, and transcripts."""
    rng = random.Random(seed)
    references: Texts = []
    transcripts: Texts = []
    total = 0
    while total < size:
        words = [rng.choice(_COMMON if rng.random() < 0.7 else _OTHERS) for _ in range(rng.randint(6, 30))]
        heard: Texts = []
        for word in words:
            draw = rng.random()
            if draw < 0.02:
                continue
            heard.append(rng.choice(_COMMON) if draw < 0.06 else word)
            if draw > 0.98:
                heard.append(rng.choice(_COMMON))
        references.append(" ".join(words).capitalize() + ".")
        transcripts.append(" ".join(heard).capitalize() + ".")
        total += len(references[-1])
    return references, transcripts


def ours(unit: str, rule: str) -> Job:
    import numpy as np
    import pyarrow as pa

    from multimodal_eval.core.batch import Batch
    from multimodal_eval.evaluation.speech import error_rate
    from multimodal_eval.text.transcripts import transcripts_of

    def job(references: Texts, hypotheses: Texts) -> float:
        ends = pa.array(np.arange(len(references) + 1, dtype=np.int32))
        columns = {
            "generated_answer": pa.array(hypotheses),
            "references": pa.ListArray.from_arrays(ends, pa.array(references)),
        }
        batch = Batch(len(references), columns, [])
        counts = transcripts_of(batch, rule).edits(unit == "characters").counts()
        return float(error_rate(counts.sum(axis=0)[None])[0])

    return job


def jiwer(unit: str, rule: str) -> Job:
    module = import_module("jiwer")
    normalize = _whisper(rule)

    def job(references: Texts, hypotheses: Texts) -> float:
        if normalize is not None:
            references = [normalize(text) for text in references]
            hypotheses = [normalize(text) for text in hypotheses]
        if unit == "characters":
            return float(module.process_characters(references, hypotheses).cer)
        return float(module.process_words(references, hypotheses).wer)

    return job


def _whisper(rule: str) -> Callable[[str], str] | None:
    if rule.startswith("whisper-english"):
        return import_module("whisper_normalizer.english").EnglishTextNormalizer()  # type: ignore[no-any-return]
    if rule.startswith("whisper-basic"):
        return import_module("whisper_normalizer.basic").BasicTextNormalizer()  # type: ignore[no-any-return]
    return None


def run_one(who: str, unit: str, rule: str, size: int) -> None:
    """In a separate process: print the value, seconds and megabytes."""
    references, transcripts = utterances(size)
    job = {"ours": ours, "jiwer": jiwer}[who](unit, rule)
    job(["a word"], ["a word"])  # loads modules and tables
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    value = job(references, transcripts)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([value, seconds, peak / 1024]))


def measured(who: str, unit: str, rule: str, size: int) -> tuple[float, float, float]:
    command = [sys.executable, __file__, "--one", who, unit, rule, str(size)]
    value, seconds, peak = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return value, seconds, peak


def compare(sizes: list[int], rounds: int) -> None:
    print(f"{'unit':11}{'rule':25}{'MB':>4}{'ours s':>9}{'jiwer s':>9}{'ratio':>7}{'MiB':>7}{'MiB':>8}  growth")
    rules = ["jiwer@4"]
    if find_spec("whisper_normalizer"):
        rules += ["whisper-basic@0.1.15", "whisper-english@0.1.15"]
    for unit in ("words", "characters"):
        for rule in rules:
            first = 0.0
            for size in sizes:
                results: dict[str, list[tuple[float, float, float]]] = {"ours": [], "jiwer": []}
                for _ in range(rounds):
                    for who, rows in results.items():
                        rows.append(measured(who, unit, rule, size * 1_000_000))
                assert {row[0] for rows in results.values() for row in rows} == {results["ours"][0][0]}, results
                mine, theirs = (min(row[1] for row in rows) for rows in results.values())
                memory = [min(row[2] for row in rows) for rows in results.values()]
                growth = f"{mine / first:.1f}x" if first else ""
                first = first or mine
                print(
                    f"{unit:11}{rule:25}{size:4}{mine:9.3f}{theirs:9.2f}{theirs / mine:7.0f}"
                    f"{memory[0]:7.0f}{memory[1]:8.0f}  {growth}",
                    flush=True,
                )


_SCRIPT = """
import json, sys, jiwer
from whisper_normalizer.english import EnglishTextNormalizer
normalize = EnglishTextNormalizer()
rows = [json.loads(line) for line in open(sys.argv[1])]
references = [normalize(row["references"][0]) for row in rows]
transcripts = [normalize(row["generated_answer"]) for row in rows]
print(jiwer.process_words(references, transcripts).wer)
"""


def end_to_end(count: int, rounds: int) -> None:
    references, transcripts = utterances(count * 110)
    rows = zip(references[:count], transcripts[:count], strict=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "utterances.jsonl"
        file.write_text(
            "".join(
                json.dumps({"id": str(i), "generated_answer": heard, "references": [said]}) + "\n"
                for i, (said, heard) in enumerate(rows)
            )
        )
        mmeval = [sys.executable, "-m", "multimodal_eval.cli.main", "score", str(file), "--metrics", "wer"]
        mmeval += ["--option", "wer.rule=whisper-english@0.1.15", "--workers", "1", "--no-lint", "-o"]
        best: dict[str, float] = {}
        for number in range(rounds):
            for who, command in {
                "mmeval score": [*mmeval, str(Path(folder) / f"run{number}")],
                "script": [sys.executable, "-c", _SCRIPT, str(file)],
            }.items():
                before = os.times()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                after = os.times()
                seconds = after.children_user + after.children_system - before.children_user - before.children_system
                best[who] = min(seconds, best.get(who, seconds))
        ratio = best["script"] / best["mmeval score"]
        print(f"{count:,} utterances, whisper-english: {best}, ratio {ratio:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", default="1,10")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--end-to-end", type=int, default=0)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        who, unit, rule, size = arguments.one
        run_one(who, unit, rule, int(size))
        return
    if arguments.end_to_end:
        end_to_end(arguments.end_to_end, arguments.rounds)
        return
    compare([int(size) for size in arguments.megabytes.split(",")], arguments.rounds)


if __name__ == "__main__":
    main()
