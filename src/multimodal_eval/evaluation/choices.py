"""The options of a multiple-choice question and its gold letters, and keys of samples that belong together.

Letters that the origin of a rule draws at random are drawn again with its seed.

MMMU's program sets a seed once and draws a letter for every answer in which it finds none, in the order of the data. So
a drawn letter depends on all answers before it: the answers are counted before they are scored.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache

import msgspec

from multimodal_eval.core.corpus import Corpus
from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.options import Option
from multimodal_eval.core.rules import find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.rules._readings import Options, Reading, letters_of, read

__all__ = [
    "DRAW",
    "DRAWN",
    "MMBENCH_COPIES",
    "RANDOM",
    "SEEDS",
    "Draws",
    "GoldError",
    "draws_of",
    "gold_answers",
    "gold_letters",
    "has_key",
    "key_of",
    "number_readings",
    "options_of",
    "stats_of_key",
    "value_of",
]

DRAW = "draw"  # in the details of a sample whose letter was drawn with the seed of the origin
DRAWN = "the origin of the rule draws a letter at random"
RANDOM = Option(
    str,
    "unscored",
    choices=("unscored", "expected"),
    help="if the origin of the rule draws a letter: leave the sample unscored, or score the expected value",
)

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

    `auto` takes a letter as one, in any case and in parentheses, a number as a position, unless it is the text of
    another option, and anything else as the text of an option.
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
            _refuse_position(text, options, same[0], gold)
            return same[0]
        if len(same) > 1:
            raise GoldError(f"the gold answer {shorten(answer)} is the text of several choices: {', '.join(same)}")
    if gold == "auto" and text.isdecimal() and int(text) < len(options):
        return list(options)[int(text)]
    known = ", ".join(options)
    what = {"letter": "letters", "text": "texts", "auto": "letters or texts"}[gold]
    raise GoldError(f"the gold answer {shorten(answer)} is none of the {what} of the choices {known}")


def _refuse_position(text: str, options: Options, letter: str, gold: str) -> None:
    """Refuse a number that is the text of an option and the position of another one."""
    if gold == "auto" and text.isdecimal() and int(text) < len(options):
        other = list(options)[int(text)]
        if other != letter:
            raise GoldError(
                f"the gold answer {text} is the text of the choice {letter} and the position of {other}. Say which "
                "one is meant: --option multiple_choice.gold=text, or gold=index"
            )


def value_of(reading: Reading, gold: Sequence[str]) -> float:
    """1 if a gold letter was read, else 0; the expected value of a draw."""
    if reading.is_drawn:
        return len({*gold} & {*reading.among}) / len(reading.among)
    return float(reading.choice in gold)


def number_readings(answer: str, options: Options) -> dict[str, str]:
    """The letters of a gold number among choices with numbers as letters and as texts: letter, text and index.

    Empty if the choices do not have it both as a letter and as a text. `auto` takes the letter.
    """
    readings: dict[str, str] = {}
    for gold in ("letter", "text", "index") if answer.strip().isdecimal() else ():
        with suppress(GoldError):
            readings[gold] = _letter(answer, options, gold)
    return readings if {"letter", "text"} <= readings.keys() else {}


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def key_of(sample: Sample, by: str) -> str:
    """What samples that belong together have in common: their group, the rest of their index, or a metadata column.

    `index` is MMBench's numbering: the rotations of question i have the indexes i, i + 1,000,000, …
    """
    key = _key(sample, by)
    return f"id:{sample.id}" if key is None else f"key:{key}"


def has_key(sample: Sample, by: str) -> bool:
    """Whether the sample has a value by which it belongs to others."""
    return _key(sample, by) is not None


def _key(sample: Sample, by: str) -> object:
    if by == "group":
        return sample.group
    if by != "index":
        return sample.task if by == "task" and sample.task is not None else sample.metadata.get(by)
    if not sample.id.isdecimal():
        raise ConfigError(f"the ids must be whole numbers to belong together by index. Got {shorten(sample.id)}")
    return int(sample.id) % MMBENCH_COPIES


@lru_cache(maxsize=1 << 16)
def stats_of_key(key: str) -> tuple[float, float]:
    """A key as two numbers, with 96 bits of its hash, so that it can be among the statistics of a row."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=2 * _KEY_BYTES).digest()
    return float(int.from_bytes(digest[:_KEY_BYTES])), float(int.from_bytes(digest[_KEY_BYTES:]))


SEEDS = {"mmmu@2024/seed42": 42}  # rule -> the seed of its draws


class Draws(msgspec.Struct, frozen=True):
    """The ids of the answers for which a letter is drawn, with the letters, in the order of the data."""

    rows: list[tuple[str, tuple[str, ...]]] = []

    def __add__(self, other: Draws) -> Draws:
        return Draws([*self.rows, *other.rows])

    def letters(self, rule: str) -> dict[str, Reading]:
        """What the origin of the rule draws, by id; empty if it has no seed."""
        if rule not in SEEDS:
            return {}
        source = random.Random(SEEDS[rule])
        return {id: read(source.choice(letters)) for id, letters in self.rows}


def drawn_choices(samples: Iterable[Sample], *, rule: str) -> Draws:
    """The answers in which a rule of the family `choice` finds no letter."""
    function = find_rule("choice", rule).function
    readings = ((sample.id, function(sample.generated_answer or "", options_of(sample))) for sample in samples)
    return Draws([(id, reading.among) for id, reading in readings if reading.among])


def drawn_answers(samples: Iterable[Sample], *, rule: str) -> Draws:
    """The answers in which a rule of the family `open_answer` finds no letter."""
    from multimodal_eval.evaluation.rules.open_answer import question_of

    function = find_rule("open_answer", rule).function
    readings = ((sample.id, function(sample.generated_answer or "", question_of(sample))) for sample in samples)
    return Draws([(id, reading.among) for id, reading in readings if isinstance(reading, Reading) and reading.among])


_FITS = {"choice": drawn_choices, "open_answer": drawn_answers}


def draws_of(family: str, rule: str) -> Corpus | None:
    """What a metric gathers before it scores by a rule; None if the rule draws nothing, or without a seed."""
    return Corpus(_FITS[family], default=Draws) if rule in SEEDS else None
