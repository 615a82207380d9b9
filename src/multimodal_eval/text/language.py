"""English or Russian: told by the letters, where a text may be in either."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from multimodal_eval.lint.languages import script_counts

Language = Literal["en", "ru"]


def language_of_texts(texts: Iterable[str]) -> Language:
    """Russian where at least half of the texts' Latin and Cyrillic letters are Cyrillic, else English.

    Texts in one language borrow names from the other; what has no letters at all is the same in both.
    """
    latin = cyrillic = 0
    for text in texts:
        if text.isascii():
            latin += sum(map(str.isalpha, text))
        else:
            counts = script_counts(text)
            latin += counts.get("Latin", 0)
            cyrillic += counts.get("Cyrillic", 0)
    return "ru" if cyrillic and cyrillic >= latin else "en"
