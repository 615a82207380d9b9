"""Rules for ANLS: how similar an answer is to one reference.

A rule takes the answer and a reference, and returns a similarity from 0 to 1; the metric takes the best reference. The
built-in rules differ in the normalisation, in the length by which the edit distance is divided, and at the threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from multimodal_eval._native import edit_distance
from multimodal_eval.core.rules import rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SIMILARITIES", "AnlsRule", "EditSimilarity"]

AnlsRule: TypeAlias = Callable[[str, str], float]
THRESHOLD = 0.5


@dataclass(frozen=True)
class EditSimilarity:
    """1 - distance / longer length of two texts in lower case, or 0 below the threshold.

    `collapses`: white space is collapsed and stripped before the distance is computed.
    `length_of`: the texts whose length divides: the normalised or the original ones. Some origins measure them in upper
    case, in which "ß" has two letters.
    `half_counts`: a similarity of exactly 0.5 counts; otherwise it is 0.
    """

    collapses: bool
    length_of: Literal["folded", "folded upper", "original", "original upper"]
    half_counts: bool

    def __call__(self, answer: str, reference: str) -> float:
        """The similarity of two texts."""
        distance = edit_distance(self.folded(answer), self.folded(reference))
        length = max(self.length(answer), self.length(reference))
        return float(self.similarity(distance / length if length else 0.0))

    def folded(self, text: str) -> str:
        """The text as it is compared."""
        return " ".join(text.lower().split()) if self.collapses else text.lower()

    def length(self, text: str) -> int:
        """The length that counts, of an original text."""
        measured = self.folded(text) if self.length_of.startswith("folded") else text
        return len(measured.upper()) if self.length_of.endswith("upper") else len(measured)

    def similarity(self, relative_distance: Any) -> NDArray[np.float64]:
        """The similarity of relative distances, with the threshold applied."""
        import numpy as np

        similarity = 1 - np.asarray(relative_distance, np.float64)
        counts = similarity >= THRESHOLD if self.half_counts else np.asarray(relative_distance) < THRESHOLD
        return np.where(counts, similarity, 0.0)


# The settings of the built-in rules, by which the compiled core scores whole columns.
SIMILARITIES = {
    "anls@2019": EditSimilarity(collapses=True, length_of="folded upper", half_counts=False),
    "lmms-eval@0.7.3/anls": EditSimilarity(collapses=True, length_of="original upper", half_counts=True),
    "vlmevalkit@e8e78f05/anls": EditSimilarity(collapses=True, length_of="original upper", half_counts=True),
    "inspect-evals@0.26.0/anls": EditSimilarity(collapses=False, length_of="original", half_counts=False),
    "anls@pix2struct": EditSimilarity(collapses=False, length_of="folded", half_counts=True),
}


@rule("anls", "anls@2019", origin="Biten et al. (2019), equation 1, arXiv:1907.00490; the package anls 0.0.2")
def paper(answer: str, reference: str) -> float:
    """The similarity counts if the distance is below half of the longer text.

    Texts are compared in lower case with collapsed white space. A distance of exactly half the length gives 0.
    """
    return SIMILARITIES["anls@2019"](answer, reference)


@rule("anls", "lmms-eval@0.7.3/anls", origin="anls of lmms-eval 0.7.3, after the script in Qwen-VL")
def lmms_eval(answer: str, reference: str) -> float:
    """As `anls@2019`, but divided by the length of the original texts, and a similarity of exactly 0.5 counts.

    Surrounding and repeated white space makes the original texts longer and so raises the score of a wrong answer.
    """
    return SIMILARITIES["lmms-eval@0.7.3/anls"](answer, reference)


@rule("anls", "vlmevalkit@e8e78f05/anls", origin="anls_compute and hit_calculate of VLMEvalKit at e8e78f05")
def vlmevalkit(answer: str, reference: str) -> float:
    """The same as `lmms-eval@0.7.3/anls`."""
    return SIMILARITIES["vlmevalkit@e8e78f05/anls"](answer, reference)


@rule("anls", "inspect-evals@0.26.0/anls", origin="the DocVQA scorer of inspect_evals 0.26.0")
def inspect_evals(answer: str, reference: str) -> float:
    """Texts are compared in lower case with their white space; a distance of exactly half the length gives 0."""
    return SIMILARITIES["inspect-evals@0.26.0/anls"](answer, reference)


@rule("anls", "anls@pix2struct", origin="anls_metric of pix2struct (google-research/pix2struct)")
def pix2struct(answer: str, reference: str) -> float:
    """Texts are compared in lower case with their white space; a distance of exactly half the length counts."""
    return SIMILARITIES["anls@pix2struct"](answer, reference)
