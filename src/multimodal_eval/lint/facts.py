"""The facts kept per sample: flags, lengths and hashes, 58 bytes regardless of the length of its texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from operator import attrgetter
from unicodedata import category

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.answers import ERROR_PATTERNS, is_error_message
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.failures import compiled_patterns
from multimodal_eval.core.linear_patterns import Matcher
from multimodal_eval.core.sample import Sample
from multimodal_eval.lint.answers import mark_suspicious
from multimodal_eval.lint.injection import mark_injections
from multimodal_eval.lint.native import fill_facts
from multimodal_eval.lint.texts import ends_closed, ends_open, has_markup, repeats_itself, repeats_question
from multimodal_eval.text.languages import hits, is_off_language, is_off_script, language_of, unfinished_languages
from multimodal_eval.text.words import words_of

LONG = 4  # words: shorter answers are correct for many samples, and their language is unclear
COPIED = 6  # words: a shorter answer can be a reference by chance
_PRECHECKED = 6  # words: searching for every word would take quadratic time


class Flag:
    """Properties of a sample's texts, as bits. Plain numbers, since an enum costs more than the checks.

    `lint.answers.Doubt` has further ones.
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
