"""Checks of one text: markup, repetition, how it ends, whether it repeats its question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import eq

import msgspec
import numpy as np

from multimodal_eval.text.words import words_of

# Only texts with one of these characters are checked closely; few have one.
_SUSPECT = re.compile("[<\\[{`&:#▁Ġ\ufffd]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_TAGS = (
    "a|b|i|u|p|br|hr|em|strong|div|span|ul|ol|li|h[1-6]|img|table|tr|td|th|pre|code|html|body|sup|sub|"  # HTML
    "s|pad|unk|mask|bos|eos|sep|cls|image|end|start|eot|eod|think|answer|caption|unused\\d+|"  # special tokens
    "start_of_\\w+|end_of_\\w+|0x[0-9a-f]{2}"
)
_LABELS = (
    "answer|short answer|final answer|caption|response|output|assistant|user|human|question|"
    "ответ|подпись|описание|вопрос|antwort|frage|réponse|respuesta|pregunta|risposta|domanda|resposta|antwoord"
)
LABELS = tuple(_LABELS.split("|"))
_MARKUP = re.compile(
    rf"<\|[^<>|\s]{{1,40}}\|>|<<SYS>>|</?(?:{_TAGS})\b(?:[\s/][^<>]{{0,200}})?>"
    r"|\[/?(?:INST|PAD|UNK|CLS|SEP|MASK|EOS|BOS)\]"
    r"|&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,6}|#x[0-9a-f]{1,5});"
    rf"|^[ \t#*]*+(?:{_LABELS})[*]*[ \t]*[:：]"
    r"|```|▁|\ufffd|(?<=\w)(?-i:Ġ)(?=[a-z])|(?<=\w )##(?=[a-z])",
    re.IGNORECASE | re.MULTILINE,
)
LONGEST_JSON = 100_000


def has_rare_markup(character: str) -> bool:
    """Whether a character beyond ASCII may be markup."""
    return bool(_CONTROL.match(character) or _SUSPECT.match(character))


def has_markup(text: str) -> bool:
    """Whether a text contains special tokens, tags, labels, JSON or control characters."""
    if not text.isprintable() and _CONTROL.search(text):
        return True
    if not _SUSPECT.search(text):
        return False
    return _MARKUP.search(text) is not None or _is_json(text.strip())


def _is_json(text: str) -> bool:
    if not text or (text[0], text[-1]) not in {("{", "}"), ("[", "]")} or len(text) > LONGEST_JSON:
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


_TAIL = 256  # words: loops are at the end of an answer
_LONGEST_PERIOD = 32
_MANY = 40  # words; from here on an array is faster
_ENOUGH = 12  # repeating words in a row, for an answer of any length
_LONG_WORD = 30
_STUTTER = re.compile(r"(.{1,10}?)\1{4,}")


def repeats_itself(words: Sequence[str]) -> bool:
    """Whether a phrase repeats three times in a row (a single word four times) and fills a third of the answer's end.

    In a long answer, twelve repeating words in a row are enough. Numbers may repeat.
    """
    tail = words[-_TAIL:]
    count = len(tail)
    if count and max(map(len, tail)) > _LONG_WORD and any(map(_stutters, tail)):
        return True
    least = min(-(-count // 3), _ENOUGH)
    if count < 4 or 3 * (count - len(set(tail))) < 2 * least:  # too many different words
        return False
    numbers: dict[str, int] = {}
    coded = np.array([numbers.setdefault(word, len(numbers)) for word in tail]) if count > _MANY else None
    for period in range(1, min(_LONGEST_PERIOD, count // 3) + 1):
        times = 4 if period == 1 else 3
        span = max(times * period, least)
        # A phrase of `period` words repeats if each word equals the one `period` words earlier.
        same = bytes(map(eq, tail[period:], tail)) if coded is None else (coded[period:] == coded[:-period]).tobytes()
        start = same.find(b"\x01" * (span - period))
        if start >= 0 and any(any(map(str.isalpha, word)) for word in tail[start : start + period]):
            return True
    return False


def _stutters(word: str) -> bool:
    if len(word) <= _LONG_WORD:
        return False
    return any(len(match[0]) >= 20 and any(map(str.isalpha, match[1])) for match in _STUTTER.finditer(word[-1000:]))


_CLOSING = frozenset(".!?。！？؟۔।॥።։؛‽⁈⁉\"'”’»›)]}）】」』*`")
_OPEN = frozenset(",;:-–—([{，、：；،（「『«“‘")
_ELLIPSES = ("...", "…")


def ends_open(text: str) -> bool:
    """Whether the last character expects more text: comma, colon, hyphen, opening bracket, ellipsis."""
    return text[-1:] in _OPEN or text.endswith(_ELLIPSES)


def ends_closed(text: str) -> bool:
    """Whether a text ends in final punctuation, or in a closing quotation mark or bracket."""
    return text[-1:] in _CLOSING and not text.endswith(_ELLIPSES)


_ASKS, _ANSWERS = ("question", "вопрос", "q"), ("answer", "ответ", "a")


_SHORT = 1000  # characters; longer questions are not cached


def _key(question: str) -> str:
    return "".join(words_of(question))


_cached_key = lru_cache(maxsize=4096)(_key)  # many samples ask the same question


def repeats_question(words: Sequence[str], question: str) -> bool:
    """Whether the words are the question, once or repeated, or a contiguous three quarters of it.

    A word or two of the question can be a correct answer ("black or white?"), so a part needs at least five words.
    """
    key = _cached_key(question) if len(question) <= _SHORT else _key(question)
    if not key or not words:
        return False
    if words[0] in _ASKS and _repeats("".join(words[1 : -1 if words[-1] in _ANSWERS else None]), key, len(words) - 1):
        return True  # "Question: … Answer:"
    return _repeats("".join(words), key, len(words))


def _repeats(answer: str, question: str, words: int) -> bool:
    if len(answer) >= len(question):
        times, rest = divmod(len(answer), len(question))
        return rest == 0 and answer == question * times
    return words >= 5 and 4 * len(answer) >= 3 * len(question) and answer in question
