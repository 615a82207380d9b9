"""The normalisation that exact_match and contains share."""

from __future__ import annotations

from typing import Annotated, Literal

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.options import QUIET
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.evaluation.rules.answer_text import TextRule

# The type of an option that names a rule for texts.
TextRuleName = Annotated[str, "how both texts are normalised before they are compared", RuleFamily("answer_text")]
# The values of the option `normalise`, which existed before rules had names.
OLDER_NAMES = {"lower": "lower@1", "vqa": "vqa@official", "none": "none@1"}
OlderName = Annotated[Literal["lower", "vqa", "none"] | None, "the older way to name a rule; it replaces `rule`", QUIET]


def normaliser(metric: str, rule: str, older_name: str | None = None) -> TextRule:
    """The function of a rule, which may be given by its older name."""
    if older_name is not None and older_name not in OLDER_NAMES:
        known = did_you_mean(older_name, list(OLDER_NAMES))
        raise ConfigError(f"{metric} has no normalisation {older_name!r}.{known}")
    function: TextRule = find_rule("answer_text", OLDER_NAMES[older_name] if older_name else rule).function
    return function
