"""The rule `colours@1` of the family `answer_text`, for `exact_match` and `contains`."""

from __future__ import annotations

from mmeval_colours import colours_in
from multimodal_eval import rule


@rule("answer_text", "colours@1", origin="mmeval-colours")
def last_colour(text: str) -> str:
    """The last colour that a text names, or the whole text in lower case: "not red but Grey" is "gray"."""
    named = colours_in(text)
    return named[-1] if named else text.lower().strip()
