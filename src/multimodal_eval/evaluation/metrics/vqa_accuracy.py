"""VQA accuracy: do people give this answer? Each person who agrees counts a third, up to three.

With n human answers h_1 … h_n, the mean over leaving out each of them:

    accuracy = 1/n sum_i min( |{j != i : h_j = answer}| / 3, 1 )

If k of them equal the answer, this is [ k min((k-1)/3, 1) + (n-k) min(k/3, 1) ] / n. Which texts are compared is the
matter of a rule: in the official program, texts are normalised if the human answers differ from one another.

References:
    Antol et al. (2015). VQA: Visual Question Answering. ICCV. arXiv:1505.00468.
    Goyal et al. (2017). Making the V in VQA Matter. CVPR. arXiv:1612.00837; the evaluation program published with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Annotated, Literal

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.metric import require_references
from multimodal_eval.core.options import QUIET
from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import Rule, RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.rules.vqa import WITHOUT_EXCEPTION

__all__ = ["compute_vqa_accuracy", "vqa_accuracy"]

ENOUGH = 3  # people who must agree for a full score
FEW_ANSWERS = "fewer_than_4_human_answers"  # with up to three, 1.0 cannot be reached
DEFAULT_RULE = "vqa-v2@official"
# The values of the option `normalise`, which existed before rules had names.
OLDER_NAMES = {"differing": DEFAULT_RULE, "always": "lmms-eval@0.7.3/vqav2"}
RuleName = Annotated[str, "how texts are normalised before they are compared", RuleFamily("vqa")]
OlderName = Annotated[Literal["differing", "always"] | None, "the older way to name a rule; it replaces `rule`", QUIET]


def vqa_accuracy(
    candidate: str, human_answers: Sequence[str], *, rule: str = DEFAULT_RULE, normalise: str | None = None
) -> float:
    """VQA accuracy of one answer. Repeated human answers count: they come from different people.

    `rule` names the normalisation. `normalise` is the older way to choose it: if the human answers are `differing` (as
    in the official program), or `always`.
    With a single human answer, the accuracy is 1 if the two are equal after normalisation, else 0. By the rules of
    harnesses, whose formula leaves the only person out, it is 0.
    """
    value, _ = _accuracy(candidate, human_answers, _rule(rule, normalise))
    return value


def _rule(rule: str, normalise: str | None) -> Rule:
    if normalise is not None and normalise not in OLDER_NAMES:
        raise ConfigError(
            f"vqa_accuracy has no normalisation {normalise!r}.{did_you_mean(normalise, list(OLDER_NAMES))}"
        )
    return find_rule("vqa", rule if normalise is None else OLDER_NAMES[normalise])


def _accuracy(candidate: str, human_answers: Sequence[str], rule: Rule) -> tuple[float, int]:
    """The accuracy, and how many people gave the same answer."""
    require_references("vqa_accuracy", human_answers)
    answer, humans = rule.function(candidate, human_answers)
    matches = 0 if answer is None else humans.count(answer)
    if len(humans) == 1 and rule.name not in WITHOUT_EXCEPTION:
        return float(matches), matches
    accuracies = [min((matches - (human == answer)) / ENOUGH, 1.0) for human in humans]
    return fsum(accuracies) / len(accuracies), matches


def human_answers_of(sample: Sample) -> list[str]:
    """`references` with their repeats; if there are none, `expected_answer` (or `caption`) alone."""
    return list(sample.references or sample.reference_texts[:1])


def _score(candidate: str, human_answers: list[str], rule: Rule) -> Score:
    value, matches = _accuracy(candidate, human_answers, rule)
    is_few = len(human_answers) <= ENOUGH and (len(human_answers) > 1 or rule.name in WITHOUT_EXCEPTION)
    warning = FEW_ANSWERS if is_few else None
    return Score(value, parts={"agreement": matches / len(human_answers)}, warning=warning)


@metric(
    "vqa_accuracy",
    version="2",
    needs=("generated_answer", "references"),
    bounds=(0, 1),
    part_bounds={"agreement": (0, 1)},
    batch=True,
)
def compute_vqa_accuracy(
    samples: Sequence[Sample], *, rule: RuleName = DEFAULT_RULE, normalise: OlderName = None
) -> list[Score]:
    """VQA v2's accuracy: people with the same answer, divided by 3 and at most 1, averaged over leaving one out."""
    compared = _rule(rule, normalise)
    return [_score(sample.generated_answer or "", human_answers_of(sample), compared) for sample in samples]
