"""The contestants of caption_metrics.py: each function imports its package and returns the job that is timed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from typing import Any

Job = Callable[[], float]  # does the work once and returns a score to compare


def ours_whole(candidates: list[str], references: list[list[str]], threads: int = 1) -> Job:
    from multimodal_eval.interop.coco import caption_scores

    import_module("numpy")  # otherwise imported by the first result
    return lambda: caption_scores(candidates, references, threads=threads, meteor=False).corpus["CIDEr"]


def ours_whole_all_cores(candidates: list[str], references: list[list[str]]) -> Job:
    return ours_whole(candidates, references, os.cpu_count() or 1)


def ours_single(metric: str, tokenizer: str) -> Callable[[list[str], list[list[str]]], Job]:
    """One metric from the core that caption_scores uses for all of them, with one thread."""

    def prepare(candidates: list[str], references: list[list[str]]) -> Job:
        from multimodal_eval._native import Captions
        from multimodal_eval.evaluation.metrics.bleu import corpus_bleu

        import_module("numpy")  # otherwise imported by the first result

        def bleu(captions: Captions) -> float:
            return corpus_bleu(captions.bleu()[1].sum(axis=0))

        def rouge(captions: Captions) -> float:
            return float(captions.rouge_l().mean())

        def cider(captions: Captions) -> float:
            return float(captions.cider_d(captions.document_frequencies()).mean())

        scored = {"BLEU": bleu, "ROUGE-L": rouge, "CIDEr-D": cider}[metric]
        return lambda: scored(Captions(candidates, references, tokenizer, with_ngrams=metric != "ROUGE-L"))

    return prepare


def pycocoevalcap_whole(candidates: list[str], references: list[list[str]]) -> Job:
    tokenizer = import_module("pycocoevalcap.tokenizer.ptbtokenizer").PTBTokenizer()
    scorers = _pycocoevalcap_scorers()

    def tokens_of(texts: Iterable[list[str]]) -> Any:
        return tokenizer.tokenize(
            {image: [{"caption": text} for text in captions] for image, captions in enumerate(texts)}
        )

    def job() -> float:
        reference_tokens, tokens = tokens_of(references), tokens_of([text] for text in candidates)
        return [float(score(reference_tokens, tokens)) for score in scorers.values()][-1]

    return job


def pycocoevalcap_single(metric: str) -> Callable[[list[str], list[list[str]]], Job]:
    def prepare(candidates: list[str], references: list[list[str]]) -> Job:
        score = _pycocoevalcap_scorers()[metric]
        gts, res = dict(enumerate(references)), {image: [text] for image, text in enumerate(candidates)}
        return lambda: float(score(gts, res))

    return prepare


def _pycocoevalcap_scorers() -> dict[str, Callable[[Any, Any], Any]]:
    bleu = import_module("pycocoevalcap.bleu.bleu").Bleu(4)
    rouge = import_module("pycocoevalcap.rouge.rouge").Rouge()
    cider = import_module("pycocoevalcap.cider.cider").Cider()
    return {
        "BLEU": lambda gts, res: bleu.compute_score(gts, res, verbose=0)[0][3],
        "ROUGE-L": lambda gts, res: rouge.compute_score(gts, res)[0],
        "CIDEr-D": lambda gts, res: cider.compute_score(gts, res)[0],
    }


def sacrebleu_corpus(candidates: list[str], references: list[list[str]]) -> Job:
    package = import_module("sacrebleu")
    streams = [list(stream) for stream in zip_longest(*references)]
    return lambda: package.corpus_bleu(candidates, streams).score / 100


def sacrebleu_sentences(candidates: list[str], references: list[list[str]]) -> Job:
    package = import_module("sacrebleu")
    pairs = list(zip(candidates, references, strict=True))
    return lambda: sum(package.sentence_bleu(text, refs).score for text, refs in pairs) / 100 / len(pairs)


def bleuscore_corpus(candidates: list[str], references: list[list[str]]) -> Job:
    package = import_module("bleuscore")
    return lambda: float(package.compute(references, candidates, ref_len_method="closest")["bleu"])


def rouge_score_images(candidates: list[str], references: list[list[str]]) -> Job:
    scorer = import_module("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    pairs = list(zip(candidates, references, strict=True))
    return lambda: sum(scorer.score_multi(refs, text)["rougeL"].fmeasure for text, refs in pairs) / len(pairs)


def rouge_rs_images(candidates: list[str], references: list[list[str]]) -> Job:
    scorer = import_module("rouge_rs").RougeLScorer()
    pairs = list(zip(candidates, references, strict=True))
    return lambda: sum(max(scorer.score(ref, text).fmeasure for ref in refs) for text, refs in pairs) / len(pairs)


def aac_metrics_images(candidates: list[str], references: list[list[str]]) -> Job:
    package = import_module("aac_metrics.functional.cider_d")
    return lambda: float(package.cider_d(candidates, references)[0]["cider_d"])


@dataclass(frozen=True)
class Contestant:
    """A contestant. With `tokens`, its input is already tokenized, and it is compared with ours on tokens."""

    name: str
    prepare: Callable[[list[str], list[list[str]]], Job]
    computes: str
    peer: str | None = None  # the package to import; None for ours
    tokens: bool = False


def _ours(metric: str) -> list[Contestant]:
    return [
        Contestant("us", ours_single(metric, "ptb"), "per image and corpus, PTB tokenization included"),
        Contestant("us, on tokens", ours_single(metric, "whitespace"), "per image and corpus", tokens=True),
    ]


def _pycocoevalcap(metric: str) -> Contestant:
    computes = "the same as ours, per image and corpus"
    return Contestant("pycocoevalcap", pycocoevalcap_single(metric), computes, peer="pycocoevalcap", tokens=True)


TABLES: dict[str, list[Contestant]] = {
    "whole": [
        Contestant("us, 1 thread", ours_whole, "PTB tokens, BLEU-1..4, ROUGE-L, CIDEr-D; per image and corpus"),
        Contestant("us, all cores", ours_whole_all_cores, "the same"),
        Contestant("pycocoevalcap", pycocoevalcap_whole, "the same (Java tokenizer, run twice)", peer="pycocoevalcap"),
    ],
    "BLEU": [
        *_ours("BLEU"),
        _pycocoevalcap("BLEU"),
        Contestant("sacrebleu corpus", sacrebleu_corpus, "corpus only, BLEU-4, 13a tokens, case kept", "sacrebleu"),
        Contestant(
            "sacrebleu sentence", sacrebleu_sentences, "per image, BLEU-4 smoothed (exp), 13a tokens; mean", "sacrebleu"
        ),
        Contestant("bleuscore", bleuscore_corpus, "corpus only, BLEU-4, 13a tokens, case kept", "bleuscore"),
    ],
    "ROUGE-L": [
        *_ours("ROUGE-L"),
        _pycocoevalcap("ROUGE-L"),
        Contestant(
            "rouge_score",
            rouge_score_images,
            "per image, F1 (not beta 1.2), best reference, a-z 0-9 runs",
            "rouge_score",
        ),
        Contestant(
            "rouge_rs", rouge_rs_images, "per pair, F1 (not beta 1.2), own word split; maximum in Python", "rouge_rs"
        ),
    ],
    "CIDEr-D": [
        *_ours("CIDEr-D"),
        _pycocoevalcap("CIDEr-D"),
        Contestant(
            "aac_metrics", aac_metrics_images, "the same as ours, per image and corpus", "aac_metrics", tokens=True
        ),
    ],
}
