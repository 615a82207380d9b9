"""ROUGE, chrF, TER and BLEU beside rouge-score and sacrebleu: ratios, memory, and growth with the size of the texts.

    python bench/overlap.py [SENTENCES]

Needs the packages rouge-score and sacrebleu (`pip install rouge-score sacrebleu`); a peer that is not installed is left
out. One thread; ours and the peer's runs alternate, and the best processor time of each counts. Ours gets Arrow
columns, as in a run, and the peer lists of strings. sacrebleu remembers tokenized sentences, so each run gets new ones.
Sentences are made from a fixed list of words with the frequencies of a natural text; references are candidates with
words moved, replaced and left out.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics_registry import resolve

Pairs = tuple[list[str], list[list[str]]]
Job = Callable[[Any], object]
ROUNDS = 5
SIZES = (1, 2, 5, 10)  # megabytes


def vocabulary(random_: random.Random, words: int = 20_000) -> tuple[list[str], list[float]]:
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    shapes = random_.choices(letters, weights=range(len(letters), 0, -1), k=words * 10)
    texts = ["".join(shapes[10 * i : 10 * i + random_.randint(2, 10)]) for i in range(words)]
    return texts, [1 / (rank + 2) for rank in range(words)]


def sentences(count: int, seed: int, words: int = 24) -> Pairs:
    random_ = random.Random(seed)
    texts, weights = vocabulary(random.Random(0))
    drawn = iter(random_.choices(texts, weights=weights, k=count * words * 3))
    candidates, references = [], []
    for _ in range(count):
        line = [next(drawn) for _ in range(random_.randint(words // 2, words * 3 // 2))]
        other = list(line)
        for _ in range(max(2, len(line) // 6)):
            other[random_.randrange(len(other))] = next(drawn)
        start = random_.randrange(len(other))
        moved = other[start : start + 4]
        del other[start : start + 4]
        target = random_.randrange(len(other) + 1)
        other[target:target] = moved
        candidates.append(" ".join(line).capitalize() + ".")
        references.append([" ".join(other).capitalize() + "."])
    return candidates, references


def as_columns(pairs: Pairs) -> tuple[pa.Array, pa.Array]:
    return pa.array(pairs[0], pa.string()), pa.array(pairs[1], pa.list_(pa.string()))


def processor_time(job: Job, pairs: object) -> float:
    start = time.process_time()
    job(pairs)
    return time.process_time() - start


def ours_rouge(method: str, stemmer: bool = False) -> Job:
    native = import_module("multimodal_eval._native")
    return lambda pairs: getattr(native.RougeTexts(*pairs, stemmer), method)()


def ours_corpus(name: str, **options: int) -> Job:
    metric: Any = configured(resolve(name), options)
    return lambda pairs: metric.sentence_scores(*pairs)


def peer_rouge(kind: str, stemmer: bool = False) -> Job:
    scorer = import_module("rouge_score.rouge_scorer").RougeScorer([kind], use_stemmer=stemmer)
    return lambda pairs: [scorer.score(texts[0], candidate) for candidate, texts in zip(*pairs, strict=True)]


def peer_corpus(name: str, **options: int) -> Job:
    kind = getattr(import_module("sacrebleu.metrics"), name)
    return lambda pairs: kind(**options).corpus_score(pairs[0], [[texts[0] for texts in pairs[1]]])


def contests() -> dict[str, tuple[Job, Job | None, int]]:
    """Name -> ours, the peer's, and how many times more sentences ours gets."""
    has_rouge, has_sacrebleu = find_spec("rouge_score") is not None, find_spec("sacrebleu") is not None
    table: dict[str, tuple[Job, Job | None, int]] = {}
    for name, method, kind, stemmer in (
        ("rouge_1", "words", "rouge1", False),
        ("rouge_2", "pairs", "rouge2", False),
        ("rouge_lsum", "summary_lcs", "rougeLsum", False),
        ("rouge_1, stemmer", "words", "rouge1", True),
    ):
        table[name] = ours_rouge(method, stemmer), peer_rouge(kind, stemmer) if has_rouge else None, 20
    for name, metric, peer, options in (
        ("chrf", "chrf", "CHRF", {}),
        ("chrf, word_order=2", "chrf", "CHRF", {"word_order": 2}),
        ("ter", "ter", "TER", {}),
        ("sacrebleu", "sacrebleu", "BLEU", {}),
    ):
        table[name] = ours_corpus(metric, **options), peer_corpus(peer, **options) if has_sacrebleu else None, 20
    return table


def ratios(count: int) -> None:
    print(f"{'':20} {'ours':>12} {'peer':>12}   ratio   (per sentence, one thread)")
    for name, (ours, peer, more) in contests().items():
        mine, theirs = [], []
        for number in range(ROUNDS):
            mine.append(processor_time(ours, as_columns(sentences(count * more, number))) / count / more)
            if peer is not None:
                theirs.append(processor_time(peer, sentences(count, 100 + number)) / count)
        line = f"{name:20} {min(mine) * 1e6:9.2f} us"
        if theirs:
            line += f" {min(theirs) * 1e6:9.1f} us   {min(theirs) / min(mine):5.0f}x"
        print(line)


def growth() -> None:
    """Many sentences, then a single text, of 1 to 10 MB on each side."""
    for title, is_single in (("many sentences", False), ("one text", True)):
        print(f"\n{title}: processor seconds for {', '.join(map(str, SIZES))} MB on each side, growth, peak memory")
        for name, (ours, _, _) in contests().items():
            times = []
            for size in SIZES:
                candidates, references = sentences(size * 1_000_000 // 150, size)
                if is_single:
                    candidates, references = ["\n".join(candidates)], [["\n".join(texts[0] for texts in references)]]
                    if name == "rouge_lsum" and size > 1:
                        continue  # every line with every other line: quadratic
                times.append(processor_time(ours, as_columns((candidates, references))))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            shown = "  ".join(f"{seconds:7.3f}" for seconds in times)
            print(f"{name:20} {shown}   {times[-1] / times[0]:5.1f}x  {peak} MB")


if __name__ == "__main__":
    ratios(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
    growth()
