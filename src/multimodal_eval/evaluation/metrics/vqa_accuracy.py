"""VQA accuracy: do people answer so? One of three who agree is a third, three are enough.

With n human answers h_1 … h_n, the mean over leaving each one out:

    accuracy = 1/n sum_i min( |{j != i : h_j = answer}| / 3, 1 )

so that with k of them equal to the answer it is [ k min((k-1)/3, 1) + (n-k) min(k/3, 1) ] / n. Answer and human answers
are normalised where the human answers differ among themselves, as in the official program.

References:
    Antol et al. (2015). VQA: Visual Question Answering. ICCV. arXiv:1505.00468.
    Goyal et al. (2017). Making the V in VQA Matter. CVPR. arXiv:1612.00837; the evaluation program that goes with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Annotated, Literal

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.text.captions import refuse_no_list
from multimodal_eval.text.vqa_answers import normalise_vqa_answer, one_line

ENOUGH = 3  # people who agree
FEW_ANSWERS = "fewer_than_4_human_answers"  # with two or three, 1.0 cannot be reached
NORMALISE = ("differing", "always")
Normalise = Annotated[Literal["differing", "always"], "normalise answers if the human ones differ, or always"]


def vqa_accuracy(candidate: str, human_answers: Sequence[str], *, normalise: str = "differing") -> float:
    """VQA accuracy of one answer. Repeats among the human answers count: they are different people.

    `normalise` says when texts are normalised: where the human answers differ (the official program), or `always`.
    A single human answer leaves none to compare with; then it is whether the two are equal, normalised.
    """
    value, _ = _accuracy(candidate, human_answers, normalise)
    return value


def _accuracy(candidate: str, human_answers: Sequence[str], normalise: str) -> tuple[float, int]:
    """The accuracy, and how many people say the same."""
    refuse_no_list("vqa_accuracy", human_answers)
    if normalise not in NORMALISE:
        raise ConfigError(f"vqa_accuracy cannot normalise {normalise!r}.{did_you_mean(normalise, NORMALISE)}")
    if not candidate.strip():
        return 0.0, 0
    said, others = one_line(candidate), [one_line(answer) for answer in human_answers]
    if normalise == "always" or len(others) == 1 or len(set(others)) > 1:
        said, others = normalise_vqa_answer(said), [normalise_vqa_answer(answer) for answer in others]
    matches = others.count(said)
    if len(others) == 1:
        return float(matches), matches
    each = [min((matches - (other == said)) / ENOUGH, 1.0) for other in others]
    return fsum(each) / len(each), matches


def human_answers_of(sample: Sample) -> list[str]:
    """`references` with their repeats; without any, `expected_answer` (or `caption`) is the only one."""
    return list(sample.references or sample.reference_texts[:1])


def score_vqa_accuracy(samples: Sequence[Sample], *, normalise: str = "differing") -> list[Score]:
    """VQA accuracy of many samples, with the share of the people who say the same."""
    return [_score(sample.generated_answer or "", human_answers_of(sample), normalise) for sample in samples]


def _score(candidate: str, people: list[str], normalise: str) -> Score:
    value, matches = _accuracy(candidate, people, normalise)
    warning = FEW_ANSWERS if 1 < len(people) <= ENOUGH else None
    return Score(value, parts={"agreement": matches / len(people)}, warning=warning)


@metric("vqa_accuracy", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=score_vqa_accuracy)
def compute_vqa_accuracy(sample: Sample, *, normalise: Normalise = "differing") -> float:
    """VQA v2's accuracy: the share of three people who answer the same, averaged over leaving one human answer out."""
    return vqa_accuracy(sample.generated_answer or "", human_answers_of(sample), normalise=normalise)
