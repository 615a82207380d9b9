"""Our side of the captions table: mmeval with one thing changed gives the figure of each peer.

Each recipe returns scores by the names of the table, on the scale of pycocoevalcap (CIDEr up to 10, the others to 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING

from multimodal_eval._native import Captions, RougeTexts
from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics.bleu import corpus_bleu
from multimodal_eval.evaluation.metrics.meteor import compute_meteor
from multimodal_eval.evaluation.metrics.sacrebleu import compute_sacrebleu
from multimodal_eval.interop.coco import COCOEvalCap, caption_scores
from multimodal_eval.text.tokenizers import tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

NAMES = {"Bleu_1": "BLEU-1", "Bleu_2": "BLEU-2", "Bleu_3": "BLEU-3", "Bleu_4": "BLEU-4", "ROUGE_L": "ROUGE-L"}
METRICS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr", "SPICE")


@dataclass(frozen=True)
class CaptionSet:
    """Candidates with their references."""

    candidates: list[str]
    references: list[list[str]]

    def lower(self) -> CaptionSet:
        return CaptionSet(
            [text.lower() for text in self.candidates], [[text.lower() for text in row] for row in self.references]
        )

    def with_reference(self, place: int) -> CaptionSet:
        """Only the reference at one place, from 0."""
        return CaptionSet(self.candidates, [row[place : place + 1] for row in self.references])


Recipe = Callable[[CaptionSet], dict[str, float]]


def _named(corpus: dict[str, float]) -> dict[str, float]:
    scores = {NAMES.get(name, name): float(value) for name, value in corpus.items()}
    return {name: scores[name] for name in METRICS if name in scores}


def whole_files(data: CaptionSet) -> dict[str, float]:
    """`COCOEvalCap`: the captions are the lines of two files, as for the Java tokenizer."""
    images = range(len(data.candidates))
    annotations = {
        "images": [{"id": image} for image in images],
        "annotations": [{"image_id": image, "caption": text} for image in images for text in data.references[image]],
    }
    results = [{"image_id": image, "caption": data.candidates[image]} for image in images]
    evaluation = COCOEvalCap(annotations, results)
    with redirect_stdout(StringIO()):
        evaluation.evaluate()
    return _named(evaluation.eval)


def whitespace(data: CaptionSet) -> dict[str, float]:
    return _named(
        caption_scores(data.candidates, data.references, tokenizer="whitespace", meteor=False, spice=False).corpus
    )


def evalscope_without_java(data: CaptionSet) -> dict[str, float]:
    """The tokenizer `evalscope`; METEOR is the formula of our variant `fmean` with exact matches only."""
    scores = _named(
        caption_scores(data.candidates, data.references, tokenizer="evalscope", meteor=False, spice=False).corpus
    )

    def f_mean(words: list[str], others: list[str]) -> float:
        matches = (Counter(words) & Counter(others)).total()
        precision, recall = matches / max(1, len(words)), matches / max(1, len(others))
        return 10 * precision * recall / (recall + 9 * precision) if matches else 0.0

    candidates = tokenize(data.candidates, "evalscope")
    best = [
        max(f_mean(words, others) for others in tokenize(row, "evalscope"))
        for words, row in zip(candidates, data.references, strict=True)
    ]
    return {**scores, "METEOR": sum(best) / len(best)}


def sacrebleu(data: CaptionSet) -> dict[str, float]:
    return {"BLEU-4": _sacrebleu(data)}


def _sacrebleu(data: CaptionSet) -> float:
    stats = compute_sacrebleu.sentence_scores(data.candidates, data.references)[1]
    return compute_sacrebleu.corpus_score(stats.sum(axis=0)) / 100


def _rouge(data: CaptionSet, stemmer: bool) -> Vector:
    """rouge-score's ROUGE-L of the best reference: `rouge_lsum` of texts that have one line."""
    return RougeTexts(data.candidates, data.references, stemmer).summary_lcs()[:, 0]


def rouge_score(data: CaptionSet) -> dict[str, float]:
    return {"ROUGE-L": float(_rouge(data, stemmer=False).mean())}


def _one_order(data: CaptionSet, order: int) -> Vector:
    """The precision of n-grams of one order times the brevity penalty, per image; words are between spaces."""
    import numpy as np

    stats = Captions(data.candidates, data.references, "whitespace").bleu()[1]
    precision = stats[:, order - 1] / np.maximum(1, stats[:, 3 + order])
    length, nearest = np.maximum(stats[:, 8], 1e-300), stats[:, 9]
    return precision * np.exp(np.minimum(0, 1 - nearest / length))


@cache
def _nltk_words(text: str) -> str:
    from nltk.tokenize import word_tokenize

    return " ".join(word_tokenize(text))


def _nltk_tokens(data: CaptionSet) -> CaptionSet:
    try:
        return CaptionSet(
            [_nltk_words(text) for text in data.candidates],
            [[_nltk_words(text) for text in row] for row in data.references],
        )
    except LookupError:
        raise UnavailableError("NLTK's word_tokenize needs punkt_tab in NLTK_DATA") from None


def lighteval_corpus(data: CaptionSet) -> dict[str, float]:
    """sacrebleu with the first reference only; the mean of rouge-score's ROUGE-L over references."""
    places = range(len(data.references[0]))
    rouge = sum(float(_rouge(data.with_reference(place), stemmer=False).mean()) for place in places) / len(places)
    return {"BLEU-4": _sacrebleu(data.with_reference(0)), "ROUGE-L": rouge}


def lighteval_sentences(data: CaptionSet) -> dict[str, float]:
    words = _nltk_tokens(data)
    return {f"BLEU-{order}": float(_one_order(words, order).mean()) for order in (1, 4)}


def helm(data: CaptionSet) -> dict[str, float]:
    """One order per reference alone, and the best reference; ROUGE-L with stems."""
    import numpy as np

    words = _nltk_tokens(data)
    pairs = [words.with_reference(place) for place in range(len(data.references[0]))]
    scores = {
        f"BLEU-{order}": float(np.max([_one_order(pair, order) for pair in pairs], axis=0).mean()) for order in (1, 4)
    }
    return {**scores, "ROUGE-L": float(_rouge(data, stemmer=True).mean())}


def nltk(data: CaptionSet) -> dict[str, float]:
    """BLEU of words between spaces, where a caption too short for an n-gram counts as one wrong n-gram.

    METEOR is our variant `2005`, which aligns better than NLTK's.
    """
    import numpy as np

    stats = Captions(data.candidates, data.references, "whitespace").bleu()[1]
    stats[:, 4:8] = np.maximum(1, stats[:, 4:8])
    bleu = {f"BLEU-{order}": corpus_bleu(stats.sum(axis=0), order) for order in range(1, 5)}
    metric = configured(compute_meteor, {"variant": "2005", "tokenizer": "whitespace"})
    lower = data.lower()
    return {**bleu, "METEOR": metric.aggregate(metric.rows_of(lower.candidates, lower.references, 2)).value}


def torchmetrics(data: CaptionSet) -> dict[str, float]:
    return {
        **{name: value for name, value in whitespace(data).items() if name.startswith("BLEU")},
        **rouge_score(data),
    }


def difference(ours: float, theirs: float) -> float:
    """The relative difference."""
    return 0.0 if ours == theirs else abs(ours - theirs) / max(abs(ours), abs(theirs))


def differences(ours: dict[str, float], theirs: dict[str, object]) -> dict[str, float]:
    """The relative differences of the metrics that both have."""
    common: Sequence[str] = [name for name in METRICS if name in ours and isinstance(theirs.get(name), float)]
    return {name: difference(ours[name], float(theirs[name])) for name in common}  # type: ignore[arg-type]
