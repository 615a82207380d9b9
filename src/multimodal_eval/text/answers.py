"""What is done to an answer before a model reads it as a caption."""

from __future__ import annotations

import re

CAPTION_WORDS = 32

_LABEL = re.compile(r"(?:answer|caption):", re.IGNORECASE)
_STRANGE = re.compile(r"[^\w\s.,!?%\-:;()/#]")


def clean_and_truncate_caption(text: str) -> str:
    """The text as one line of at most 32 words, without a leading "answer:" or "caption:" and without odd characters.

    In this order: strip; drop one leading label, in any case; characters other than word characters, white space and
    `.,!?%-:;()/#` become spaces; white space folds; the first 32 words stay.
    """
    return " ".join(_words(text)[:CAPTION_WORDS])


def is_truncated(text: str) -> bool:
    """Whether `clean_and_truncate_caption` leaves words of the text out for their number."""
    return len(_words(text)) > CAPTION_WORDS


def _words(text: str) -> list[str]:
    bare = text.strip()
    if label := _LABEL.match(bare):
        bare = bare[label.end() :]
    return _STRANGE.sub(" ", bare).split()
