"""VQA accuracy: do people give this answer? Each person who agrees counts a third, up to three.

With n human answers h_1 … h_n, the mean over leaving out each of them:

    accuracy = 1/n sum_i min( |{j != i : h_j = answer}| / 3, 1 )

If k of them equal the answer, this is [ k min((k-1)/3, 1) + (n-k) min(k/3, 1) ] / n. The answer and the human answers
are normalised if the human answers differ from one another, as in the official program.

References:
    Antol et al. (2015). VQA: Visual Question Answering. ICCV. arXiv:1505.00468.
    Goyal et al. (2017). Making the V in VQA Matter. CVPR. arXiv:1612.00837; the evaluation program published with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Annotated, Literal

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.text.captions import require_references
from multimodal_eval.text.vqa_answers import normalise_vqa_answer, one_line

__all__ = ["compute_vqa_accuracy", "vqa_accuracy"]

ENOUGH = 3  # people who must agree for a full score
FEW_ANSWERS = "fewer_than_4_human_answers"  # with two or three, 1.0 cannot be reached
NORMALISE = ("differing", "always")
Normalise = Annotated[Literal["differing", "always"], "normalise if the human answers differ, or always"]


def vqa_accuracy(candidate: str, human_answers: Sequence[str], *, normalise: str = "differing") -> float:
    """VQA accuracy of one answer. Repeated human answers count: they come from different people.

    `normalise` says when texts are normalised: if the human answers differ (as in the official program), or `always`.
    With a single human answer, the accuracy is 1 if the two are equal after normalisation, else 0.
    """
    value, _ = _accuracy(candidate, human_answers, normalise)
    return value


def _accuracy(candidate: str, human_answers: Sequence[str], normalise: str) -> tuple[float, int]:
    """The accuracy, and how many people gave the same answer."""
    require_references("vqa_accuracy", human_answers)
    if normalise not in NORMALISE:
        raise ConfigError(f"vqa_accuracy has no normalisation {normalise!r}.{did_you_mean(normalise, NORMALISE)}")
    if not candidate.strip():
        return 0.0, 0
    answer, humans = one_line(candidate), [one_line(human) for human in human_answers]
    if normalise == "always" or len(humans) == 1 or len(set(humans)) > 1:
        answer, humans = normalise_vqa_answer(answer), [normalise_vqa_answer(human) for human in humans]
    matches = humans.count(answer)
    if len(humans) == 1:
        return float(matches), matches
    accuracies = [min((matches - (human == answer)) / ENOUGH, 1.0) for human in humans]
    return fsum(accuracies) / len(accuracies), matches


def human_answers_of(sample: Sample) -> list[str]:
    """`references` with their repeats; if there are none, `expected_answer` (or `caption`) alone."""
    return list(sample.references or sample.reference_texts[:1])


def score_vqa_accuracy(samples: Sequence[Sample], *, normalise: str = "differing") -> list[Score]:
    """VQA accuracy of many samples, with the share of people who gave the same answer."""
    return [_score(sample.generated_answer or "", human_answers_of(sample), normalise) for sample in samples]


def _score(candidate: str, human_answers: list[str], normalise: str) -> Score:
    value, matches = _accuracy(candidate, human_answers, normalise)
    warning = FEW_ANSWERS if 1 < len(human_answers) <= ENOUGH else None
    return Score(value, parts={"agreement": matches / len(human_answers)}, warning=warning)


@metric("vqa_accuracy", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=score_vqa_accuracy)
def compute_vqa_accuracy(sample: Sample, *, normalise: Normalise = "differing") -> float:
    """VQA v2's accuracy: people with the same answer, divided by 3 and at most 1, averaged over leaving one out."""
    return vqa_accuracy(sample.generated_answer or "", human_answers_of(sample), normalise=normalise)
