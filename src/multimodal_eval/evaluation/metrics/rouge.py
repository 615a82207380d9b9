"""ROUGE-1, ROUGE-2 and ROUGE-Lsum as the package rouge-score computes them: what do answer and reference share?

ROUGE-1 counts words and ROUGE-2 pairs of neighbouring words, each at most as often as both texts have it. With the
number of units that are shared, of the answer and of the reference:

    P = shared / answer        R = shared / reference        F = 2 P R / (P + R)

ROUGE-Lsum asks which words of the reference are in the same order in the answer. The lines of a text are its sentences.
For each sentence of the reference, the words that are in a longest common subsequence with any sentence of the answer
count, each word at most as often as both texts have it. With `lines=False`, the text is one sentence: that is rougeL.

With several references, the one with the largest F counts. Words are runs of a-z and 0-9 in lower case.

None of them is `rouge_l`, which is coco-caption's: that one takes the text as a single sentence, has other words,
weights recall by beta = 1.2, and takes the best precision and the best recall of different references.

Reference:
    Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. ACL workshop, section 3.2 for ROUGE-Lsum;
    the implementation is rouge-score 0.1.2, `rouge1`, `rouge2`, `rougeLsum` and `rougeL`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from multimodal_eval._native import RougeTexts
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.function_metric import FunctionMetric
from multimodal_eval.core.options import QUIET
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Scores
from multimodal_eval.text.captions import score_of_texts, texts_of

__all__ = [
    "RougeScore",
    "compute_rouge_1",
    "compute_rouge_2",
    "compute_rouge_lsum",
    "rouge_1",
    "rouge_2",
    "rouge_lsum",
]

Stemmer = Annotated[bool, "whether words of more than three letters are compared by their Porter stems"]


class RougeScore(NamedTuple):
    """Precision, recall and F-measure, as rouge-score returns them."""

    precision: float
    recall: float
    fmeasure: float


Shared = Literal["words", "pairs", "summary_lcs"]


def _scores(samples: Sequence[Sample], shared: Shared, stemmer: bool, *, lines: bool = True) -> Scores:
    """What is shared; the ROUGE metrics of a run share the words of its texts."""
    batch = Batch.of(samples)
    texts = batch.shared(("rouge", stemmer, lines), lambda: RougeTexts(*_texts(batch, lines=lines), stemmer))
    fmeasure, precision, recall = getattr(texts, shared)().T.copy()
    return Scores.of_values(fmeasure, {"precision": precision, "recall": recall})


def _texts(batch: Batch, *, lines: bool) -> tuple[Any, Any]:
    if lines:
        return texts_of(batch)
    answers = [(sample.generated_answer or "").replace("\n", " ") for sample in batch]
    return answers, [[text.replace("\n", " ") for text in sample.reference_texts] for sample in batch]


def _registered(name: str, shared: Shared, summary: str) -> FunctionMetric:
    """The metric of what is shared, by the name of the compiled function."""

    def compute(samples: Sequence[Sample], *, stemmer: Stemmer = False) -> Scores:
        return _scores(samples, shared, stemmer)

    compute.__name__ = compute.__qualname__ = f"compute_{name}"
    compute.__doc__ = summary
    return metric(name, version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=True)(compute)


compute_rouge_1 = _registered(
    "rouge_1", "words", "F-measure of shared words, as rouge-score computes it. Parts: precision and recall."
)
compute_rouge_2 = _registered(
    "rouge_2",
    "pairs",
    "F-measure of shared pairs of neighbouring words, as rouge-score computes it. Parts: precision and recall.",
)
Lines = Annotated[bool, "whether lines are sentences; false: the text is one, which is rouge-score's rougeL", QUIET]


@metric("rouge_lsum", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=True)
def compute_rouge_lsum(samples: Sequence[Sample], *, stemmer: Stemmer = False, lines: Lines = True) -> Scores:
    """F-measure of longest common subsequences, line by line, as rouge-score computes it. Parts: precision, recall."""
    return _scores(samples, "summary_lcs", stemmer, lines=lines)


def rouge_1(candidate: str, references: Sequence[str], **options: bool) -> RougeScore:
    """ROUGE-1 of one text against its references. The options are those of the metric."""
    return _score(compute_rouge_1, candidate, references, **options)


def rouge_2(candidate: str, references: Sequence[str], **options: bool) -> RougeScore:
    """ROUGE-2 of one text, as `rouge_1`."""
    return _score(compute_rouge_2, candidate, references, **options)


def rouge_lsum(candidate: str, references: Sequence[str], **options: bool) -> RougeScore:
    """ROUGE-Lsum of one text, as `rouge_1`."""
    return _score(compute_rouge_lsum, candidate, references, **options)


def _score(metric: FunctionMetric, candidate: str, references: Sequence[str], **options: bool) -> RougeScore:
    score = score_of_texts(metric, candidate, references, options)
    parts = score.parts or {}
    return RougeScore(parts["precision"], parts["recall"], float(score.value or 0))
