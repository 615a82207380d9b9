"""Metrics of texts beside the programs that people use for them: time, peak memory, ratio and growth.

    python bench/text_metrics.py [--only captions,meteor,spice,speech] [--captions FILE] [--sizes 1,10]

FILE is a .json.gz with {"references": {id: [captions]}, "candidates": {id: caption}}; size 10 repeats it ten times.
captions, meteor and spice need it; METEOR and SPICE need `mmeval fetch meteor-1.5-en spice`. speech makes sentences:
size 10 is 10 MB. Peers: pycocoevalcap (needs Java), NLTK (its WordNet in $NLTK_DATA), jiwer, whisper-normalizer; what
is not installed is listed as such. One thread. Every job is a process of its own; times are without imports and inputs,
from texts to the score of the corpus.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import harness
from harness import Work

Texts = list[str]
COMMON = (
    "the of and to in a is that it was for on are as with his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some so these"
).split()
RARE = (
    "colour organisation centre travelling twenty thirty-five hundred thousand million dollars percent won't it's "
    "Mr. Dr. 1,000 $20 3.5 1960s gonna because question answer morning government president analysis programme "
    "international development understanding recognise language evening children interesting machine weather"
).split()


def captions(path: str, size: int) -> tuple[Texts, list[Texts]]:
    """Candidates and references, repeated without sharing strings."""
    packed, candidates, references = gzip.decompress(Path(path).read_bytes()), list[str](), list[Texts]()
    for _ in range(size):
        data = json.loads(packed)
        candidates += data["candidates"].values()
        references += (data["references"][image] for image in data["candidates"])
    return candidates, references


def sentences(size: int) -> tuple[Texts, list[Texts]]:
    """Sentences of `size` MB with one reference each, in which words are left out, replaced, added or moved."""
    rng, candidates, references, total = random.Random(size), list[str](), list[Texts](), 0
    while total < size * 1_000_000:
        words = [rng.choice(COMMON if rng.random() < 0.7 else RARE) for _ in range(rng.randint(6, 30))]
        other = [rng.choice(COMMON) if rng.random() < 0.04 else word for word in words if rng.random() > 0.02]
        if other and rng.random() < 0.3:
            start = rng.randrange(len(other))
            other = other[:start] + other[start + 3 :] + other[start : start + 3]
        candidates.append(" ".join(other).capitalize() + ".")
        references.append([" ".join(words).capitalize() + "."])
        total += len(candidates[-1])
    return candidates, references


# Ours. Each function is called in the separate process and returns the work that is timed.


def our_captions(path: str, size: int) -> Work:
    from multimodal_eval.interop.coco import caption_scores

    import_module("numpy")  # otherwise imported by the first result
    texts = captions(path, size)
    return lambda: caption_scores(*texts, threads=1, meteor=False).corpus["CIDEr"]


def our_meteor(path: str, size: int, variant: str) -> Work:
    from multimodal_eval.core.metric import configured
    from multimodal_eval.evaluation.metrics.meteor import compute_meteor

    texts = captions(path, size)
    metric: Any = configured(compute_meteor, {"variant": variant})
    return lambda: metric.aggregate(metric.rows_of(*texts, 1)).value


def our_spice(path: str, size: int) -> Work:
    from multimodal_eval.text.parsing import open_parser
    from multimodal_eval.text.scene_graphs.captions import compared_captions

    candidates, references = captions(path, size)

    def work() -> float:
        matches = compared_captions(open_parser(), candidates, references, threads=1)
        return sum(match.all.f for match in matches) / len(candidates)

    return work


def our_speech(size: int, rule: str, by_characters: bool) -> Work:
    import numpy as np
    import pyarrow as pa

    from multimodal_eval.core.batch import Batch
    from multimodal_eval.evaluation.speech import error_rate
    from multimodal_eval.text.transcripts import transcripts_of

    candidates, references = sentences(size)
    columns = {"generated_answer": pa.array(candidates), "references": pa.array(references)}
    transcripts_of(Batch(1, {name: column[:1] for name, column in columns.items()}, []), rule)  # loads the tables

    def work() -> float:
        edits = transcripts_of(Batch(len(candidates), columns, []), rule).edits(by_characters)
        return float(error_rate(np.asarray(edits.counts()).sum(axis=0)[None])[0])

    return work


# The others.


def pycocoevalcap(path: str, size: int) -> Work:
    candidates, references = captions(path, size)
    tokenizer = import_module("pycocoevalcap.tokenizer.ptbtokenizer").PTBTokenizer()
    bleu = partial(import_module("pycocoevalcap.bleu.bleu").Bleu(4).compute_score, verbose=0)
    scorers = [bleu, import_module("pycocoevalcap.rouge.rouge").Rouge().compute_score]
    scorers.append(import_module("pycocoevalcap.cider.cider").Cider().compute_score)

    def work() -> float:
        gold, results = (
            tokenizer.tokenize({image: [{"caption": text} for text in texts] for image, texts in enumerate(each)})
            for each in (references, [[text] for text in candidates])
        )
        scores = [score(gold, results)[0] for score in scorers]
        return float(scores[-1])

    return work


def _tokens(path: str, size: int) -> tuple[list[Texts], list[list[Texts]]]:
    from multimodal_eval.text.tokenizers import tokenize

    candidates, references = captions(path, size)
    return tokenize(candidates), [tokenize(texts) for texts in references]


def java_meteor(path: str, size: int) -> Work:
    program = import_module("pycocoevalcap.meteor.meteor").Meteor
    candidates, references = _tokens(path, size)
    results = {image: [" ".join(tokens)] for image, tokens in enumerate(candidates)}
    gold = {image: [" ".join(tokens) for tokens in texts] for image, texts in enumerate(references)}
    return lambda: float(program().compute_score(gold, results)[0])


def nltk_meteor(path: str, size: int) -> Work:
    score, wordnet = import_module("nltk.translate.meteor_score").meteor_score, import_module("nltk.corpus").wordnet
    candidates, references = _tokens(path, size)

    def work() -> float:
        wordnet.ensure_loaded()
        pairs = zip(candidates, references, strict=True)
        return sum(float(score(texts, tokens)) for tokens, texts in pairs) / len(candidates)

    return work


def jiwer(size: int, rule: str, by_characters: bool) -> Work:
    module = import_module("jiwer")
    normalize: Callable[[str], str] = str
    if rule.startswith("whisper-english"):
        normalize = import_module("whisper_normalizer.english").EnglishTextNormalizer()
    candidates, references = sentences(size)

    def work() -> float:
        gold, heard = [normalize(texts[0]) for texts in references], [normalize(text) for text in candidates]
        edits = module.process_characters(gold, heard) if by_characters else module.process_words(gold, heard)
        return float(edits.cer if by_characters else edits.wer)

    return work


# name -> (ours, the peer or None); of each: the function and its arguments after the input.
Contest = tuple[tuple[Any, ...], tuple[Any, ...] | None]
CAPTIONS: dict[str, dict[str, Contest]] = {
    "captions": {"BLEU, ROUGE-L, CIDEr-D": ((our_captions,), (pycocoevalcap,))},
    "meteor": {
        "METEOR 1.5": ((our_meteor, "1.5"), (java_meteor,)),
        "METEOR of 2005": ((our_meteor, "2005"), (nltk_meteor,)),
    },
    "spice": {"SPICE": ((our_spice,), None)},
}
SENTENCES: dict[str, dict[str, Contest]] = {
    "speech": {
        f"{metric}, {rule}": ((our_speech, rule, metric == "cer"), (jiwer, rule, metric == "cer"))
        for metric in ("wer", "cer")
        for rule in ("jiwer@4", "whisper-english@0.1.15")
    },
}


def compare(title: str, contests: dict[str, Contest], path: str | None, sizes: list[int], rounds: int) -> None:
    jobs: dict[tuple[str, int], Callable[[], harness.Measured]] = {}
    for name, (ours, peer) in contests.items():
        for who, job in (("ours", ours), ("peer", peer)):
            for size in sizes if job else ():
                work, *arguments = job or ()
                inputs = [size] if path is None else [path, size]
                python = [sys.executable, "-O"]  # without assertions, of peers too
                jobs[f"{name}: {who}", size] = partial(harness.run_inside, work, *inputs, *arguments, python=python)
    results = harness.in_turn(jobs, rounds)
    harness.print_table(title, results, {f"{name}: peer": f"{name}: ours" for name in contests}, "size")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="captions,meteor,spice,speech")
    parser.add_argument("--captions", metavar="FILE")
    parser.add_argument("--sizes", default="1,10")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    for name in options.only.split(","):
        if name in SENTENCES:
            compare(name, SENTENCES[name], None, sizes, options.rounds)
        elif options.captions:
            compare(name, CAPTIONS[name], options.captions, sizes, options.rounds)
        else:
            print(f"\n{name}: needs --captions FILE")


if __name__ == "__main__":
    main()
