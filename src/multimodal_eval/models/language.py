"""Whether a text is in a language that a model was made for. In doubt it is."""

from __future__ import annotations

import re

from multimodal_eval.lint.languages import LANGUAGES, hits, language_of, script_counts

UNFIT = "language_unfit"
_SCRIPTS = {"ru": "Cyrillic"}  # the others of `LANGUAGES` are written in Latin letters
_WORD = re.compile(r"\w+")


def fits(text: str, languages: frozenset[str]) -> bool:
    """False where less than a fifth of the letters, or the language of the small words, is one of `languages`.

    An empty set stands for a model of which nothing is known: everything fits.
    """
    if not languages:
        return True
    counts = script_counts(text)
    own = sum(counts.get(script, 0) for script in {_SCRIPTS.get(language, "Latin") for language in languages})
    if sum(counts.values()) > 1 and 5 * own < sum(counts.values()):
        return False
    small = hits(_WORD.findall(text.lower()))
    number = language_of(small)
    best = max(small[LANGUAGES.index(language)] for language in languages)
    return number is None or small[number] - best < 2  # by a single word "man in furry hat" would be German
