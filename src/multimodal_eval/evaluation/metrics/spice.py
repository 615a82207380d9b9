"""SPICE and SPIDEr: scene graphs of captions, compared.

SPICE: which objects, attributes and relations of a caption are in the references? 0 to 1.

Captions are parsed and turned into scene graphs. With T(G) the tuples of a graph, that is its objects, (object,
attribute) pairs and (subject, relation, object) triples, c the candidate and S its references, whose graphs are united:

    P = |T(G(c)) matched in T(G(S))| / |T(G(c))|,   R = |T(G(c)) matched in T(G(S))| / |T(G(S))|
    SPICE = 2 P R / (P + R)

Words match if they are equal or share a synset of WordNet. For a corpus, the mean.

Reference:
    Anderson, Fernando, Johnson and Gould (2016). SPICE: Semantic Propositional Image Caption Evaluation. ECCV.
    arXiv:1607.08822. The parser is another one than the original's; the card has the agreement of the two.

SPIDEr: the mean of SPICE and CIDEr-D. 0 to 5.5.

    SPIDEr = (SPICE + CIDEr-D) / 2

CIDEr-D is on the scale of coco-caption, 0 to 10, and therefore dominates.

Reference:
    Liu, Zhu, Ye, Guadarrama and Murphy (2017). Improved Image Captioning via Policy Gradient Optimization of SPIDEr.
    ICCV. arXiv:1612.00370.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.corpus import Corpus
from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.metric import BoundsWithParts, Metric, Scorer, require_references
from multimodal_eval.core.options import Option, Options, options_of
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, Scores
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.text.captions import (
    FrequenciesName,
    ImageKey,
    captions_of,
    document_frequencies,
    image_groups,
    named_frequencies,
)
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from multimodal_eval.text.languages import UNFIT, fits
from multimodal_eval.text.parsing import RESOURCE, open_parser
from multimodal_eval.text.scene_graphs.captions import compared_captions
from multimodal_eval.text.scene_graphs.matching import CATEGORIES, Match, Openings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["compute_spice", "compute_spider", "spice"]

PARSER = "en-core-web-sm-3.6.0"
_ENGLISH = frozenset({"en"})
OPENINGS = Option(
    str,
    "original",
    choices=("original", "plain"),
    convert=str,
    is_quiet=True,
    help='how "a man riding a horse" is read: as SPICE\'s own parser does, or as a clause',
)


class SceneGraphMetric(Metric):
    """A metric that needs the scene graphs of captions."""

    needs = ("generated_answer", "references")

    def unavailable(self) -> str | None:
        """Why the parser is missing, or None."""
        try:
            open_parser()
        except UnavailableError as absent:
            return str(absent)
        return None

    def resources(self) -> tuple[str, ...]:
        """The parser's weights."""
        return (RESOURCE,)

    def settings(self, state: Any) -> Mapping[str, object]:
        """The parser, the source of synonyms, the tokenizer, the options, and those of the document frequencies."""
        return {
            "parser": f"{PARSER}@{get_resource(RESOURCE).fingerprint}",
            "synonyms": "wordnet-3.0",
            "tokenizer": "ptb",
            **super().settings(state),
            **getattr(state, "settings", {}),
        }


def matches_of(samples: Sequence[Sample], openings: Openings) -> list[Match]:
    """The answers compared with their references. SPICE and SPIDEr of a run share them."""
    batch = Batch.of(samples)

    def compare() -> list[Match]:
        answers = [sample.generated_answer or "" for sample in batch]
        references = [sample.reference_texts for sample in batch]
        return list(compared_captions(open_parser(), answers, references, openings=openings))

    return batch.shared(("scene graphs", openings), compare)


def f_scores(matches: Sequence[Match]) -> Vector:
    """The F score of each sample."""
    import numpy as np

    return np.array([match.all.f for match in matches], np.float64)


def parts_of(match: Match) -> dict[str, float]:
    """Precision, recall, and the F score of each category in which the answer or the references have a tuple."""
    by_category = {category: match.by_category[category] for category in CATEGORIES}
    categories = {name: counts.f for name, counts in by_category.items() if counts.candidate + counts.references}
    return {"precision": match.all.precision, "recall": match.all.recall, **categories}


def details_of(match: Match) -> dict[str, Any]:
    """The tuples that matched, those that only the answer has, and those that only the references have."""
    groups = {"matched": match.matched, "only_in_answer": match.unmatched, "only_in_references": match.missed}
    named = {
        f"{group}_{kind}": getattr(tuples, kind)
        for group, tuples in groups.items()
        for kind in ("objects", "attributes", "relations")
    }
    return {name: values for name, values in named.items() if values}


def language_warnings(samples: Sequence[Sample]) -> dict[int, str]:
    """A warning for each sample with a text that is not English: the parser knows no other language."""
    known: dict[str, bool] = {}
    warnings = {}
    for row, sample in enumerate(samples):
        for text in (sample.generated_answer or "", *sample.reference_texts):
            if text not in known:
                known[text] = fits(text, _ENGLISH)
            if not known[text]:
                warnings[row] = UNFIT
    return warnings


def spice(candidate: str, references: Sequence[str], *, openings: Openings = "original") -> float:
    """SPICE of one English caption against its references. Needs the parser: `mmeval fetch spice`.

    `openings` says how "a man riding a horse" is read: as SPICE's own parser does, or `plain`, as a clause.
    """
    require_references("spice", references)
    (match,) = compared_captions(open_parser(), [candidate], [list(references)], openings=openings)
    return match.all.f


class Spice(SceneGraphMetric):
    """The F score of a caption's objects, attributes and relations against those of the references."""

    name = "spice"
    version = "2"
    bounds = BoundsWithParts((0, 1), dict.fromkeys(("precision", "recall", *CATEGORIES), (0, 1)))
    options = Options(openings=OPENINGS)

    def open(self, state: Any) -> Scorer:
        """Open the parser, which the process shares."""
        open_parser()
        return _SpiceScorer(self.options["openings"])


class _SpiceScorer:
    def __init__(self, openings: Openings) -> None:
        self.openings = openings

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        warnings = language_warnings(batch)
        return [
            Score(match.all.f, parts=parts_of(match), details=details_of(match), warning=warnings.get(row))
            for row, match in enumerate(matches_of(batch, self.openings))
        ]


compute_spice = Spice()
register(compute_spice)


def _declared(sample: Sample, *, df: FrequenciesName = "corpus", image_key: ImageKey = None) -> None:
    """Declares the options of CIDEr-D that SPIDEr has too."""


class Spider(SceneGraphMetric):
    """The mean of SPICE and CIDEr-D."""

    name = "spider"
    version = "2"
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
