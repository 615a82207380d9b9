"""What SPICE and SPIDEr share: the parser, the scene graphs of a batch, and the scores and details of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.options import Option
from multimodal_eval.core.sample import Sample
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.text.languages import UNFIT, fits
from multimodal_eval.text.parsing import RESOURCE, open_parser
from multimodal_eval.text.scene_graphs.captions import compared_captions
from multimodal_eval.text.scene_graphs.matching import CATEGORIES, Match
from multimodal_eval.text.scene_graphs.openings import Openings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

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
