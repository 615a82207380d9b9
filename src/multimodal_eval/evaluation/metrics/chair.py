"""CHAIR: does an answer mention objects that are not in the image?

CHAIR_i: what share of the objects mentioned in an answer is not in the image?

Over COCO's 80 objects, with M the mentions of objects in the answers and H the mentions whose object is neither in the
references nor in the list `metadata["objects"]`:

    CHAIR_i = |H| / |M|

For a corpus it is the ratio of the sums, not the mean of the samples' ratios. Lower is better.

CHAIR_s: does an answer mention an object that is not in the image?

1 if the answer mentions one of COCO's 80 objects that is neither in the references nor in the list
`metadata["objects"]`, else 0. For a corpus, the share of such answers. Lower is better.

Reference:
    Rohrbach, Hendricks, Burns, Darrell and Saenko (2018). Object Hallucination in Image Captioning. EMNLP.
    arXiv:1809.02156. The list of names is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Rows, Score
from multimodal_eval.text.chair import NEEDS, is_blank, object_counts, texts_of
from multimodal_eval.text.languages import UNFIT, fits
from multimodal_eval.text.pos import LANGUAGES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["compute_chair_i", "compute_chair_s"]


def _share(sample: Sample) -> Score:
    if is_blank(sample):  # an empty answer is not rewarded: it counts as one hallucinated mention
        return Score(1.0, stats=(1.0, 1.0))
    warning = None if all(fits(text, LANGUAGES) for text in texts_of(sample)) else UNFIT
    counts = object_counts(sample)
    hallucinated, mentioned = float(len(counts.hallucinated)), float(len(counts.mentioned))
    if not mentioned:
        return Score(None, "degenerate", "the answer mentions none of COCO's objects", warning=warning)
    stats = (hallucinated, mentioned)
    return Score(hallucinated / mentioned, stats=stats, details=counts.details, warning=warning)


def _ratio(sums: Vector) -> float:
    return float(sums[0] / sums[1])


def _gradient(sums: Vector) -> Vector:
    import numpy as np

    return np.array([1 / sums[1], -sums[0] / sums[1] ** 2])


def _aggregate(rows: Rows) -> Estimate:
    from multimodal_eval.stats.estimates import function_of_sums

    return function_of_sums(rows, _ratio, _gradient)


@metric(
    "chair_i",
    version="1",
    needs=NEEDS,
    bounds=(0, 1),
    direction="lower",
    placement="process",
    batch=True,
    aggregate=_aggregate,
)
def compute_chair_i(samples: Sequence[Sample]) -> list[Score]:
    """The share of mentioned COCO objects that are not in the image.

    Called with one sample, it returns 0.0 for an answer that mentions none.
    """
    return [_share(sample) for sample in samples]


def _mention(sample: Sample) -> Score:
    if is_blank(sample):  # an empty answer is not rewarded
        return Score(1.0)
    warning = None if all(fits(text, LANGUAGES) for text in texts_of(sample)) else UNFIT
    counts = object_counts(sample)
    return Score(float(bool(counts.hallucinated)), details=counts.details, warning=warning)


@metric(
    "chair_s",
    version="1",
    needs=NEEDS,
    bounds=(0, 1),
    direction="lower",
    placement="process",
    batch=True,
)
def compute_chair_s(samples: Sequence[Sample]) -> list[Score]:
    """Whether the answer mentions a COCO object that is not in the image: 1.0 if so, else 0.0."""
    return [_mention(sample) for sample in samples]
