"""Clean an answer before a model reads it as a caption."""

from __future__ import annotations

import re

__all__ = ["clean_and_truncate_caption"]

CAPTION_WORDS = 32

_LABEL = re.compile(r"(?:answer|caption):", re.IGNORECASE)
_UNUSUAL = re.compile(r"[^\w\s.,!?%\-:;()/#]")


def clean_and_truncate_caption(text: str) -> str:
    """The text as one line of at most 32 words, without a leading "answer:" or "caption:" or unusual characters.

    Steps: strip; drop one leading label, in any case; replace characters other than word characters, white space and
    `.,!?%-:;()/#` by spaces; collapse white space; keep the first 32 words.
    """
    return " ".join(_words(text)[:CAPTION_WORDS])


def is_truncated(text: str) -> bool:
    """Whether the text has more words than `clean_and_truncate_caption` keeps."""
    return len(_words(text)) > CAPTION_WORDS


def _words(text: str) -> list[str]:
    bare = text.strip()
    if label := _LABEL.match(bare):
        bare = bare[label.end() :]
    return _UNUSUAL.sub(" ", bare).split()
