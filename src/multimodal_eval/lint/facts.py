"""The facts kept per sample: flags, lengths and hashes, 58 bytes regardless of the length of its texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from operator import attrgetter, eq
from unicodedata import category

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import LintLexicon, lint_facts
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.failures import ERROR_PATTERNS, answers_of, compiled_patterns, is_error_message
from multimodal_eval.core.linear_patterns import Matcher
from multimodal_eval.core.sample import Sample
from multimodal_eval.lint.failed_answers import mark_suspicious
from multimodal_eval.text.languages import (
    hits,
    is_off_language,
    is_off_script,
    known_words,
    language_of,
    script_number,
    unfinished_languages,
)

# Split a text into words without case and punctuation.

# Written without spaces: each character is a word.
_UNSPACED_SCRIPTS = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))


class _Separating(dict[int, int | str]):
    """A translation table: punctuation, spaces and control characters become spaces. Filled on demand."""

    def __missing__(self, code: int) -> int | str:
        if category(chr(code))[0] in "PZC":
            self[code] = " "
        elif any(first <= code <= last for first, last in _UNSPACED_SCRIPTS):
            self[code] = f" {chr(code)} "
        else:
            self[code] = code
        return self[code]


_SEPARATING = _Separating()
_ASCII = bytes(ord(chr(code).lower().translate(_SEPARATING)) for code in range(128)).ljust(256)


def words_of(text: str) -> list[str]:
    """The case-folded words of a text, without punctuation."""
    if text.isascii():  # the same result, twice as fast
        return text.encode().translate(_ASCII).decode().split()
    return separated(text).split()


def separated(text: str) -> str:
    """The case-folded text with spaces between its words. Each character is converted independently of the others."""
    return text.casefold().translate(_SEPARATING)


# Checks of one text: markup, repetition, how it ends, whether it repeats its question.

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


@cache
def _markup() -> re.Pattern[str]:
    return re.compile(
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
    return _markup().search(text) is not None or _is_json(text.strip())


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


# Facts computed from Arrow columns in compiled code, without a `Sample` per row.

# The columns that facts depend on; `answers_of` reads `error`.
_COLUMNS = (
    *("generated_answer", "references", "expected_answer", "caption", "question", "prompt", "group"),
    *("image", "image_bytes", "audio", "audio_bytes", "video", "video_bytes", "metadata", "choices"),
    *("images", "messages", "boxes", "epoch"),
)


_PAGE = 256  # characters
_WORD, _UNSPACED, _UNUSUAL, _SPACE, _FORMAT, _CLOSES, _OPENS, _MARKUP = (1 << bit for bit in range(8))
_LONGEST = 13  # bytes of a case-folded character


@cache
def _lexicon() -> LintLexicon:
    return LintLexicon(known_words(), [label.casefold() for label in LABELS])


def page_of_characters(number: int) -> bytes:
    """The properties of 256 characters in the layout of native/lint_characters.h.

    Compiled code asks for a page when it meets a character of it: both use the Unicode version of this Python.
    """
    return b"".join(_character(chr(code)) for code in range(number * _PAGE, (number + 1) * _PAGE))


def _character(character: str) -> bytes:
    if category(character) == "Cs":  # half of a surrogate pair is not stored
        return bytes([_UNUSUAL]).ljust(16, b"\0")
    text = separated(character)
    word = "".join(text.split())
    folded = word.encode()
    flags = {word: _WORD, f" {word} ": _UNSPACED}.get(text, _UNUSUAL) if word else 0
    if len(folded) > _LONGEST:
        flags, folded = _UNUSUAL, b""
    flags |= _SPACE * character.isspace() | _FORMAT * (category(character) == "Cf")
    flags |= _CLOSES * ends_closed(character) | _OPENS * ends_open(character) | _MARKUP * has_rare_markup(character)
    return bytes([flags, script_number(character), len(folded)]) + folded.ljust(_LONGEST, b"\0")


def fill_facts(facts: NDArray[np.void], batch: Batch, patterns: Sequence[str]) -> NDArray[np.int64]:
    """Write the facts of a batch with columns, and return the rows for which Python must compute them.

    Those are rows with several images, messages or boxes, and rows that may have a finding for which the references
    must be searched too.
    """
    failed = np.zeros(len(batch), np.uint8)
    failed[list(answers_of(batch, patterns).failed)] = 1
    columns = {name: column for name in _COLUMNS if (column := batch.column(name)) is not None}
    return lint_facts(_lexicon(), page_of_characters, columns, failed, facts.view(np.uint8))


LONG = 4  # words: shorter answers are correct for many samples, and their language is unclear
COPIED = 6  # words: a shorter answer can be a reference by chance
_PRECHECKED = 6  # words: searching for every word would take quadratic time


class Flag:
    """Properties of a sample's texts, as bits. Plain numbers, since an enum costs more than the checks.

    `lint.failed_answers.Doubt` has further ones.
    """

    ANSWERED = 1  # an answer that is neither null nor an error message
    BLANK = 2
    COPIES_QUESTION = 4
    COPIES_REFERENCE = 8
    MARKUP = 16
    REPETITION = 32
    OFF_LANGUAGE = 64
    OPEN = 128
    CLOSED = 256
    REFERENCE_CLOSED = 512


# Hashes are 0 if there is nothing to hash.
FACTS = np.dtype(
    [
        ("flags", "<u4"),
        ("words", "<u4"),
        ("characters", "<u4"),
        ("references", "<u4"),
        ("answer", "<u8"),  # the words
        ("unit", "<u8"),  # what the sample is about: its group or its media; 0: the sample itself
        ("content", "<u8"),  # everything except the id
        ("corpus", "<u8"),  # all references
        ("reference", "<u8"),  # the words of the first reference
        ("unfinished_in", "u1"),  # languages, as bits, in which no sentence ends in the answer's last word
        ("language", "u1"),  # 1 + index of the answer's language; 0 if it is unknown
    ]
)
Facts = NDArray[np.void]
_ALL = 2**64 - 1
# The input fields of a sample.
_INPUTS = attrgetter(
    *("question", "prompt", "metadata", "image", "audio", "choices", "images", "video", "messages", "boxes", "epoch")
)

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def facts_of(
    samples: Sequence[Sample], patterns: Sequence[str] = ERROR_PATTERNS, judged: Sequence[str] | None = None
) -> Facts:
    """One row per sample. Answers that start with one of `patterns` are error messages and are not checked.

    If a judge reads the answers, `judged` are the metadata columns with further ones: see `lint.injection`.

    For a batch with columns, compiled code computes the same facts; samples are created only for the rows that it
    leaves out.
    """
    if isinstance(samples, Batch) and samples.has_columns:
        facts = np.zeros(len(samples), FACTS)
        others = fill_facts(facts, samples, patterns)
        if len(others):
            facts[others] = _facts(samples.take(others), patterns)
    else:
        facts = _facts(samples, patterns)
    answered = (facts["flags"] & (Flag.ANSWERED | Flag.BLANK)) == Flag.ANSWERED
    mark_suspicious(facts["flags"], samples, answered)
    if judged is not None:
        from multimodal_eval.lint.injection import mark_injections  # its many patterns, only for judges

        mark_injections(facts["flags"], samples, answered, judged)
    return facts


def _facts(samples: Iterable[Sample], patterns: Sequence[str]) -> Facts:
    compiled = compiled_patterns(tuple(patterns))
    return np.array([_fact(sample, compiled) for sample in samples], dtype=FACTS)


def _fact(sample: Sample, patterns: Sequence[Matcher]) -> tuple[int, ...]:
    references, answer = sample.reference_texts, sample.generated_answer
    joined = "\x1f".join(references)
    corpus = _hash(joined) if references else 0
    first_words = words_of(references[0]) if references else []
    first = _hash("".join(first_words)) if references else 0
    media = sample.group or sample.image or sample.images or sample.audio or sample.video
    unit = _unit(media)
    if answer is None or sample.error or is_error_message(answer, patterns):
        return 0, 0, 0, len(references), 0, unit, 0, corpus, first, 0, 0
    words = words_of(answer)
    key = "".join(words) or ("" if _is_blank(answer) else answer.strip())
    if not key:
        flags, unfinished_in, language = Flag.ANSWERED | Flag.BLANK, 0, 0
    else:
        flags, unfinished_in, language = _text_facts(sample, answer, words, references, joined, first_words)
    answer_hash = _hash(key) if key else 0
    # A short answer may be correct for many samples: without media or a group, equal ones are not duplicates.
    content = _content(sample, answer_hash, corpus, unit) if media or len(words) >= LONG else 0
    lengths = len(words), len(answer), len(references)
    return flags, *lengths, answer_hash, unit, content, corpus, first, unfinished_in, language


def _is_blank(text: str) -> bool:
    """Whether a text is invisible: only white space and zero-width characters."""
    return all(character.isspace() or category(character) == "Cf" for character in text)


def _text_facts(
    sample: Sample, answer: str, words: list[str], references: list[str], joined: str, first_words: list[str]
) -> tuple[int, int, int]:
    """Flags, languages in which the answer's last word cannot end a sentence, and the answer's language.

    A property that a reference has too is not flagged.
    """
    flags, unfinished_in, language = Flag.ANSWERED, 0, None
    text = answer.rstrip()
    if ends_closed(text):
        flags |= Flag.CLOSED
    elif len(words) > 1 and ends_open(text):
        if not any(ends_open(reference.rstrip()) for reference in references):
            flags |= Flag.OPEN
    elif len(words) >= LONG and text.endswith(words[-1]):  # "vitamin A" is complete
        unfinished_in = unfinished_languages(words[-1])
        if unfinished_in and any(words_of(reference)[-1:] == words[-1:] for reference in references):
            unfinished_in = 0
    if has_markup(answer) and not any(map(has_markup, references)):
        flags |= Flag.MARKUP
    if repeats_itself(words) and not any(repeats_itself(words_of(reference)) for reference in references):
        flags |= Flag.REPETITION
    for question in (sample.question, sample.prompt):
        if (
            question
            and repeats_question(words, question)
            and not any(repeats_question(words_of(reference), question) for reference in references)
        ):
            flags |= Flag.COPIES_QUESTION
    if len(words) >= LONG:
        counts = hits(words)
        language = language_of(counts)
        if language is not None and references and _is_foreign(counts, language, first_words, references):
            flags |= Flag.OFF_LANGUAGE
    if references:
        if ends_closed(references[0].rstrip()):
            flags |= Flag.REFERENCE_CLOSED
        if len(words) >= COPIED and _is_one_of(words, references, joined):
            flags |= Flag.COPIES_REFERENCE
        if is_off_script(answer, references):
            flags |= Flag.OFF_LANGUAGE
    return flags, unfinished_in, 0 if language is None else language + 1


def _is_one_of(words: list[str], references: list[str], joined: str) -> bool:
    """Whether a reference has the same words."""
    folded = joined.casefold()
    if not all(map(folded.__contains__, words[-_PRECHECKED:])):  # the cheap check
        return False
    return any(words_of(reference) == words for reference in references)


def _is_foreign(counts: bytes, language: int, first_words: list[str], references: list[str]) -> bool:
    if language_of(hits(first_words)) == language:
        return False
    return is_off_language(counts, hits(word for reference in references for word in words_of(reference)))


def _unit(media: object) -> int:
    """A hash of what the sample is about; 0 if that is the sample itself."""
    if isinstance(media, list):
        hashes = [_unit(item) for item in media]
        return _hash(_encode(hashes)) if all(hashes) else 0
    return _hash(media) if isinstance(media, str | bytes) else 0


def _content(sample: Sample, answer_hash: int, corpus: int, unit: int) -> int:
    """A hash of everything except the id. Metadata counts: two systems may give the same answer for one image."""
    inputs = _INPUTS(sample)
    input_hash = 0
    if any(inputs) or sample.epoch is not None or sample.boxes is not None:
        input_hash = _hash(_encode([_hash(value) if isinstance(value, bytes) else value for value in inputs]))
    return hash((answer_hash, corpus, unit, input_hash)) & _ALL  # a hash of integers is the same in every process


def _hash(content: str | bytes) -> int:
    """64 bits that are the same in every process; never 0."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") or 1
