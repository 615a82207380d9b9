"""How English spells the forms of a regular word: plurals, -s, -ed, -ing, -er and -est.

"riding" can only come from "ride", since "rid" would double its last letter, and "rides" only from "ride", since "rid"
takes no -es. Which syllable of a longer word is stressed is not known here: "admit" is taken to become "admiting".
"""

from __future__ import annotations

import re

_DOUBLES_ITS_END = re.compile(
    r"(?:[^aeiou]|qu)*[aeiou][^aeiouwxy]"
)  # one syllable that ends in a short vowel: rid, star
_TAKES_ES = re.compile(r".*(?:s|x|z|ch|sh|o)")
_ENDS_IN_Y = re.compile(r".*[^aeiou]y")


def is_regular_form(form: str, lemma: str) -> bool:
    """Whether the form is the lemma itself or is spelled as one of its regular forms."""
    return form == lemma or form in _with_s(lemma) or form in _with_vowel(lemma)


def _with_s(lemma: str) -> set[str]:
    if _ENDS_IN_Y.fullmatch(lemma):
        return {f"{lemma[:-1]}ies"}
    if not _TAKES_ES.fullmatch(lemma):
        return {f"{lemma}s"}
    return {f"{lemma}es", f"{lemma}s"} if lemma.endswith("o") else {f"{lemma}es"}


def _with_vowel(lemma: str) -> set[str]:
    """With -ed, -er, -est and -ing."""
    if lemma.endswith("e"):
        stem, before_ing = lemma[:-1], lemma if lemma.endswith(("ee", "oe", "ye")) else lemma[:-1]
    elif _ENDS_IN_Y.fullmatch(lemma):
        stem, before_ing = f"{lemma[:-1]}i", lemma
    else:
        stem = before_ing = lemma + lemma[-1] if _DOUBLES_ITS_END.fullmatch(lemma) else lemma
    return {f"{stem}ed", f"{stem}er", f"{stem}est", f"{before_ing}ing"}
