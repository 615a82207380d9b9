"""CHAIR_s: does an answer mention an object that is not in the image?

1 if the answer mentions one of COCO's 80 objects that is neither in the references nor in the list
`metadata["objects"]`, else 0. For a corpus, the share of such answers. Lower is better.

Reference:
    Rohrbach, Hendricks, Burns, Darrell and Saenko (2018). Object Hallucination in Image Captioning. EMNLP.
    arXiv:1809.02156. The list of names is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.text.chair import NEEDS, is_blank, object_counts, texts_of
from multimodal_eval.text.languages import UNFIT, fits
from multimodal_eval.text.pos import LANGUAGES

__all__ = ["compute_chair_s"]


def _score(sample: Sample) -> Score:
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
    return [_score(sample) for sample in samples]
