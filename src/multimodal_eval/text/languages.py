"""Script and language of a text, by Unicode ranges and by function words.

Prefers certainty to coverage: a text that could be in two languages is assigned to neither.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

LANGUAGES = ("en", "ru", "de", "fr", "es", "it", "pt", "nl")
EXAMINED = 5_000  # characters: enough to identify a script

# First code point of each range, and its script ("" for none).
_RANGES = (
    (0x0, ""), (0x41, "Latin"), (0x5B, ""), (0x61, "Latin"), (0x7B, ""), (0xC0, "Latin"), (0x2B0, ""),
    (0x370, "Greek"), (0x400, "Cyrillic"), (0x530, "Armenian"), (0x590, "Hebrew"), (0x600, "Arabic"), (0x700, ""),
    (0x750, "Arabic"), (0x780, ""), (0x8A0, "Arabic"), (0x900, "Devanagari"), (0x980, "Bengali"), (0xA00, "Gurmukhi"),
    (0xA80, "Gujarati"), (0xB00, ""), (0xB80, "Tamil"), (0xC00, "Telugu"), (0xC80, "Kannada"), (0xD00, "Malayalam"),
    (0xD80, "Sinhala"), (0xE00, "Thai"), (0xE80, "Lao"), (0xF00, "Tibetan"), (0x1000, "Myanmar"), (0x10A0, "Georgian"),
    (0x1100, "Hangul"), (0x1200, "Ethiopic"), (0x13A0, ""), (0x1780, "Khmer"), (0x1800, ""), (0x1C80, "Cyrillic"),
    (0x1C90, "Georgian"), (0x1CC0, ""), (0x1E00, "Latin"), (0x1F00, "Greek"), (0x2000, ""), (0x2DE0, "Cyrillic"),
    (0x2E00, ""), (0x3041, "Kana"), (0x3100, ""), (0x3130, "Hangul"), (0x3190, ""), (0x3400, "Han"), (0x4DC0, ""),
    (0x4E00, "Han"), (0xA000, ""), (0xAC00, "Hangul"), (0xD800, ""), (0xF900, "Han"), (0xFB00, "Latin"),
    (0xFB13, "Armenian"), (0xFB1D, "Hebrew"), (0xFB50, "Arabic"), (0xFE00, ""), (0xFE70, "Arabic"), (0xFF00, ""),
    (0xFF21, "Latin"), (0xFF3B, ""), (0xFF41, "Latin"), (0xFF5B, ""), (0xFF66, "Kana"), (0xFFA0, "Hangul"),
    (0xFFE0, ""), (0x20000, "Han"), (0x40000, ""),
)  # fmt: skip
_STARTS = [start for start, _ in _RANGES]
_NAMES = sorted({name for _, name in _RANGES if name})
_LATIN = re.compile("[A-Za-z]")


class _Scripts(dict[int, str | None]):
    """A translation table: a letter becomes the code of its script, anything else is deleted. Filled on demand."""

    def __missing__(self, code: int) -> str | None:
        name = _RANGES[bisect_right(_STARTS, code) - 1][1]
        self[code] = chr(0x41 + _NAMES.index(name)) if name and chr(code).isalpha() else None
        return self[code]


_SCRIPTS = _Scripts()


def script_counts(text: str) -> dict[str, int]:
    """The number of letters of each script in a text."""
    examined = text[:EXAMINED]
    if text.isascii():
        return {"Latin": len(_LATIN.findall(examined))}
    codes = examined.translate(_SCRIPTS)
    return {_NAMES[ord(code) - 0x41]: codes.count(code) for code in set(codes)}


def script_number(character: str) -> int:
    """A number for the script of a letter, from 1 on; 0 if the character is not a letter of a known script."""
    code = _SCRIPTS[ord(character)]
    return 0 if code is None else ord(code) - 0x40


def script_of(text: str) -> str | None:
    """The script of at least 3 in 5 letters. None for a mixture, and for a text with fewer than two letters."""
    return _dominant(script_counts(text))


def _dominant(counts: dict[str, int]) -> str | None:
    letters = sum(counts.values())
    if letters < 2:
        return None
    script = max(counts, key=counts.__getitem__)
    return script if 5 * counts[script] >= 3 * letters else None


def is_off_script(answer: str, references: Sequence[str]) -> bool:
    """Whether the answer's script makes up less than a fifth of the letters of its references."""
    if answer.isascii() and references[0].isascii() and _LATIN.search(references[0]):
        return False
    script = script_of(answer)
    if script is None:
        return False
    shared, letters = 0, 0
    for reference in references:
        counts = script_counts(reference)
        if _dominant(counts) == script:
            return False
        shared += counts.get(script, 0)
        letters += sum(counts.values())
    return letters > 1 and 5 * shared < letters


# Function words of each language. A word of several languages is in each list and does not separate those languages.
# The last row keeps Danish, Norwegian and Swedish from being taken for French or English. It is never a result.
_FUNCTION_WORDS = {
    "en": "a an the and or of in on at to with for from by is are was were be it its this that there his her "
    "their he she they you we i as not but has have had into over up down next near front two one some "
    "while who which what out off through across him them",
    "ru": "и в во на с со к ко у о об из от до для по за под над при не но а или как что это его её ее их он она "
    "они мы вы я был была было были есть нет то так же бы ли все всё который которая которые рядом",
    "de": "der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren auf in im am "
    "an mit von vom zu zum zur für aus bei nach über unter vor neben es er sie wir ich nicht auch wie als "
    "sich dass wird werden hat haben",
    "fr": "le la les l un une des du de d et ou mais est sont était dans sur sous avec pour par au aux en à il "
    "elle ils elles on nous vous je ce cette ces son sa ses leur leurs qui que ne pas se qu devant près",
    "es": "el la los las un una unos unas de del y o pero es son está están era en con por para al a sobre entre "
    "junto su sus se que no lo le como más hay muy este esta ella ellos nos",
    "it": "il lo la i gli le un uno una di del dello della dei degli delle e o ma è sono era in nel nella con per "
    "da dal dalla su sul sulla al alla a che non si come più suo sua questo questa c ci",
    "pt": "o a os as um uma uns umas de do da dos das e ou mas é são está estão era em no na nos nas com por para "
    "ao à pelo pela sobre que não se como mais seu sua ele ela eles este esta há",
    "nl": "de het een en of maar is zijn was waren op in met van voor door bij naar uit aan over onder naast te "
    "om er hij zij ze we ik je niet ook als dat die dit deze wordt worden heeft hebben staat zit",
    "": "og och på med af av til till som det den de en et ett i er är att om for var han hun",
}
# One byte per language, so that the counts of a text are a sum of integers.
_HITS: dict[str, int] = {}
for _number, _words in enumerate(_FUNCTION_WORDS.values()):
    for _word in set(_words.split()):
        _HITS[_word] = _HITS.get(_word, 0) + (1 << 8 * _number)
_KNOWN = frozenset(_HITS)


def hits(words: Iterable[str]) -> bytes:
    """The number of distinct function words of each language among some words."""
    return sum(map(_HITS.__getitem__, _KNOWN.intersection(words))).to_bytes(len(_FUNCTION_WORDS), "little")


@lru_cache(maxsize=65_536)  # counts repeat often
def language_of(counts: bytes) -> int | None:
    """The index of the language with the most function words, at least two. None for a tie."""
    most = max(counts)
    index = counts.index(most)
    return index if most > 1 and counts.count(most) == 1 and index < len(LANGUAGES) else None


def is_off_language(answer: bytes, references: bytes) -> bool:
    """Whether both languages are known and differ by at least two of the answer's function words.

    With a single one, "man in furry hat" would be German.
    """
    actual, expected = language_of(answer), language_of(references)
    return actual is not None and expected is not None and answer[actual] - answer[expected] >= 2


# Words that cannot end a sentence. English and German prepositions are left out: "he has his coat on".
_UNFINISHED = {
    "en": "a an the and or of my your their our",
    "ru": "и в во на с со к ко у о об из от до для по за под над при или",
    "de": "der dem den ein eine einen einem einer eines und oder für im am vom zum zur",
    "fr": "le la les un une des du de et ou à au aux dans avec son sa ses leur",
    "es": "el la los las un una de del y o con en al por para su sus",
    "it": "il lo la i gli le un uno una di del della dei delle e o con in nel nella da dal su sul sulla al alla",
    "pt": "o a os as um uma de do da dos das e ou com em no na nos nas por para ao",
    "nl": "de het een en of van voor met te",
}
_CANNOT_END: dict[str, int] = {}
for _number, _words in enumerate(_UNFINISHED.values()):
    for _word in _words.split():
        _CANNOT_END[_word] = _CANNOT_END.get(_word, 0) | 1 << _number


def unfinished_languages(word: str) -> int:
    """The languages, as bits, in which a sentence cannot end with this word."""
    return _CANNOT_END.get(word, 0)


def known_words() -> dict[str, tuple[int, int]]:
    """By word: the languages of which it is a function word, and those in which it cannot end a sentence, as bits.

    The highest bit of the first is for languages that are not in `LANGUAGES`.
    """
    return {
        word: (
            sum(1 << number for number in range(len(_FUNCTION_WORDS)) if _HITS.get(word, 0) >> 8 * number & 1),
            unfinished_languages(word),
        )
        for word in (*_HITS, *(word for word in _CANNOT_END if word not in _HITS))
    }


Language = Literal["en", "ru"]


def language_of_texts(texts: Iterable[str]) -> Language:
    """Russian if at least half of the texts' Latin and Cyrillic letters are Cyrillic, else English.

    A mixture is common: texts in one language borrow names from the other.
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


UNFIT = "language_unfit"
_SCRIPT_OF = {"ru": "Cyrillic"}  # the other `LANGUAGES` are written in Latin letters
_WORD = re.compile(r"\w+")


def fits(text: str, languages: frozenset[str]) -> bool:
    """Whether a text may be in one of `languages`.

    False if less than a fifth of its letters are in their scripts, or if its function words are those of another
    language. An empty set means that the languages are unknown: everything fits.
    """
    if not languages:
        return True
    counts = script_counts(text)
    letters = sum(counts.get(script, 0) for script in {_SCRIPT_OF.get(language, "Latin") for language in languages})
    if sum(counts.values()) > 1 and 5 * letters < sum(counts.values()):
        return False
    word_counts = hits(_WORD.findall(text.lower()))
    detected = language_of(word_counts)
    best = max(word_counts[LANGUAGES.index(language)] for language in languages)
    return detected is None or word_counts[detected] - best < 2  # with one word, "man in furry hat" would be German
