"""SPIDEr: the mean of SPICE and CIDEr-D. 0 to 5.5.

    SPIDEr = (SPICE + CIDEr-D) / 2

CIDEr-D is on the scale of coco-caption, 0 to 10, and therefore dominates.

Reference:
    Liu, Zhu, Ye, Guadarrama and Murphy (2017). Improved Image Captioning via Policy Gradient Optimization of SPIDEr.
    ICCV. arXiv:1612.00370.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from multimodal_eval.core.corpus import Corpus
from multimodal_eval.core.metric import BoundsWithParts, Scorer
from multimodal_eval.core.options import Options, options_of
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.scene_graph_metric import (
    OPENINGS,
    SceneGraphMetric,
    f_scores,
    language_warnings,
    matches_of,
)
from multimodal_eval.text.captions import (
    FrequenciesName,
    captions_of,
    document_frequencies,
    image_groups,
    named_frequencies,
)
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from multimodal_eval.text.image_keys import ImageKey
from multimodal_eval.text.parsing import open_parser
from multimodal_eval.text.scene_graphs.openings import Openings

__all__ = ["compute_spider"]


def _declared(sample: Sample, *, df: FrequenciesName = "corpus", image_key: ImageKey = None) -> None:
    """Declares the options of CIDEr-D that SPIDEr has too."""


class Spider(SceneGraphMetric):
    """The mean of SPICE and CIDEr-D."""

    name = "spider"
    version = "1"
    bounds = BoundsWithParts((0, 5.5), {"spice": (0, 1), "cider_d": (0, 10)})
    options = Options(options_of(_declared), openings=OPENINGS)
    corpus = Corpus(document_frequencies, image_groups, named_frequencies)

    def open(self, state: Any) -> Scorer:
        """Open the parser, which the process shares."""
        open_parser()
        return _SpiderScorer(state, self.options["openings"])


class _SpiderScorer:
    def __init__(self, corpus: DocumentFrequencies, openings: Openings) -> None:
        self.corpus, self.openings = corpus, openings

    def score(self, batch: Sequence[Sample]) -> Scores:
        spice, cider_d = (
            f_scores(matches_of(batch, self.openings)),
            captions_of(batch, "ptb").cider_d(self.corpus.table),
        )
        scores = Scores.of_values((spice + cider_d) / 2, parts={"spice": spice, "cider_d": cider_d})
        scores.warnings.update(language_warnings(batch))
        return scores


compute_spider = Spider()
register(compute_spider)
