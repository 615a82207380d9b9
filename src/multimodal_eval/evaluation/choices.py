"""The options of a multiple-choice question and its gold letters, and keys of samples that belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.rules._readings import Options, letters_of

__all__ = [
    "MMBENCH_COPIES",
    "GoldError",
    "gold_answers",
    "gold_letters",
    "key_of",
    "number_readings",
    "options_of",
    "stats_of_key",
]

MMBENCH_COPIES = 1_000_000  # the distance between the indexes of an MMBench question and of its rotations
_KEY_BYTES = 6  # of each of two numbers, which are exact as floating-point numbers


class GoldError(ValueError):
    """A gold answer that is not one of the options."""


def options_of(sample: Sample) -> Options:
    """Letter -> text. A list of choices gets the letters A, B, C, …"""
    choices = sample.choices or {}
    return choices if isinstance(choices, dict) else dict(zip(letters_of(len(choices)), choices, strict=True))


def gold_answers(sample: Sample) -> Sequence[str]:
    """`expected_answer`, else `references`, of which any is right, else `caption`."""
    if sample.expected_answer is not None:
        return (sample.expected_answer,)
    return sample.references or sample.reference_texts


def gold_letters(sample: Sample, options: Options, gold: str = "auto") -> list[str]:
    """The letters of the gold answers, which are letters, texts of options, or positions from 0.

    `auto` takes a letter as one, in any case and in parentheses, and anything else as the text of an option.
    """
    return [_letter(answer, options, gold) for answer in gold_answers(sample)]


def _letter(answer: str, options: Options, gold: str) -> str:
    text = answer.strip()
    if gold == "index":
        if not text.isdecimal() or int(text) >= len(options):
            raise GoldError(f"the gold answer must be a position from 0 to {len(options) - 1}. Got {shorten(answer)}")
        return list(options)[int(text)]
    if gold in ("auto", "letter"):
        bare = text.strip("().") or text
        if bare in options:
            return bare
        same = [letter for letter in options if letter.casefold() == bare.casefold()]
        if len(same) == 1:
            return same[0]
    if gold in ("auto", "text"):
        same = [letter for letter, option in options.items() if _plain(option) == _plain(text)]
        if len(same) == 1:
            return same[0]
        if len(same) > 1:
            raise GoldError(f"the gold answer {shorten(answer)} is the text of several choices: {', '.join(same)}")
    known = ", ".join(options)
    what = {"letter": "letters", "text": "texts", "auto": "letters or texts"}[gold]
    raise GoldError(f"the gold answer {shorten(answer)} is none of the {what} of the choices {known}")


def number_readings(answer: str, options: Options) -> dict[str, str]:
    """The letters of a gold number among choices that are numbers, by how it is read: letter, text or index.

    Empty if only one way is possible. `auto` takes the first.
    """
    readings: dict[str, str] = {}
    for gold in ("letter", "text", "index") if answer.strip().isdecimal() else ():
        with suppress(GoldError):
            readings[gold] = _letter(answer, options, gold)
    return readings if "text" in readings and len(readings) > 1 else {}


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def key_of(sample: Sample, by: str) -> str:
    """What samples that belong together have in common: their group, the rest of their index, or a metadata column.

    `index` is MMBench's numbering: the rotations of question i have the indexes i, i + 1,000,000, …
    """
    if by == "group":
        key: object = sample.group
    elif by == "index":
        if not sample.id.isdecimal():
            raise ConfigError(f"the ids must be whole numbers to belong together by index. Got {shorten(sample.id)}")
        key = int(sample.id) % MMBENCH_COPIES
    else:
        key = sample.metadata.get(by)
    return f"id:{sample.id}" if key is None else f"key:{key}"


def stats_of_key(key: str) -> tuple[float, float]:
    """A key as two numbers, with 96 bits of its hash, so that it can be among the statistics of a row."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=2 * _KEY_BYTES).digest()
    return float(int.from_bytes(digest[:_KEY_BYTES])), float(int.from_bytes(digest[_KEY_BYTES:]))
