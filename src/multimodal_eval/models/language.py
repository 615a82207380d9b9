"""Whether a text is in a language that a model was made for. In doubt it is."""

from __future__ import annotations

import re
from functools import lru_cache

from multimodal_eval.lint.languages import LANGUAGES, hits, language_of, script_of

UNFIT = "language_unfit"
_SCRIPTS = {"ru": "Cyrillic"}  # the others of `LANGUAGES` are written in Latin letters
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=65_536)
def fits(text: str, languages: frozenset[str]) -> bool:
    """False where the text's script, or the language of its small words, is known and is none of `languages`.

    An empty set stands for a model of which nothing is known: everything fits.
    """
    if not languages:
        return True
    script = script_of(text)
    if script is not None and script not in {_SCRIPTS.get(language, "Latin") for language in languages}:
        return False
    number = language_of(hits(_WORD.findall(text.lower())))
    return number is None or LANGUAGES[number] in languages
