"""SPICE: which objects, attributes and relations of a caption are in the references? 0 to 1.

Captions are parsed and turned into scene graphs. With T(G) the tuples of a graph, that is its objects, (object,
attribute) pairs and (subject, relation, object) triples, c the candidate and S its references, whose graphs are united:

    P = |T(G(c)) matched in T(G(S))| / |T(G(c))|,   R = |T(G(c)) matched in T(G(S))| / |T(G(S))|
    SPICE = 2 P R / (P + R)

Words match if they are equal or share a synset of WordNet. For a corpus, the mean.

Reference:
    Anderson, Fernando, Johnson and Gould (2016). SPICE: Semantic Propositional Image Caption Evaluation. ECCV.
    arXiv:1607.08822. The parser is another one than the original's; the card has the agreement of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from multimodal_eval.core.metric import BoundsWithParts, Scorer
from multimodal_eval.core.options import Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.scene_graph_metric import (
    OPENINGS,
    SceneGraphMetric,
    details_of,
    language_warnings,
    matches_of,
    parts_of,
)
from multimodal_eval.text.captions import require_references
from multimodal_eval.text.parsing import open_parser
from multimodal_eval.text.scene_graphs.captions import compared_captions
from multimodal_eval.text.scene_graphs.matching import CATEGORIES
from multimodal_eval.text.scene_graphs.openings import Openings

__all__ = ["compute_spice", "spice"]


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
    version = "1"
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
