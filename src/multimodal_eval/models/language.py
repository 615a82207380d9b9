"""Whether a text is in a language that a model was made for. Sure rather than complete: in doubt it is."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from multimodal_eval.lint.languages import LANGUAGES, hits, language_of, script_of
from multimodal_eval.lint.words import words_of

_SCRIPTS = {"ru": "Cyrillic"}  # the others of `LANGUAGES` are written in Latin letters


def fits(text: str, languages: AbstractSet[str]) -> bool:
    """Whether nothing speaks against the text being in one of the languages; no languages: nothing is known."""
    if not languages:
        return True
    script = script_of(text)
    if script is not None and script not in {_SCRIPTS.get(language, "Latin") for language in languages}:
        return False
    counts = hits(words_of(text))
    number = language_of(counts)
    if number is None or LANGUAGES[number] in languages:
        return True
    most = max((counts[LANGUAGES.index(language)] for language in languages if language in LANGUAGES), default=0)
    return counts[number] - most < 2  # by a single small word, "man in furry hat" would be German
