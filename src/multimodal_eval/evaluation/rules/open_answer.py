"""Open answers: is the answer to a question of a benchmark right, by the rule of the benchmark?

A rule is a function `rule(answer, question) -> Verdict | Reading`. The question has the gold answers, the options if it
is a multiple-choice question, and the columns of the data. A verdict is a value from 0 to 1 with what was read; a
reading is a letter, which is compared with the gold letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from multimodal_eval.core.rules import rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.choices import GoldError, gold_answers, options_of
from multimodal_eval.evaluation.rules._readings import Options, Reading
from multimodal_eval.evaluation.rules.answer_text import final_answer
from multimodal_eval.evaluation.rules.choice import (
    default_choice,
    first_word,
    mcq_extract,
    mmmu,
    mmmu_lmms_eval,
)
from multimodal_eval.evaluation.rules.relaxed import plain_number

__all__ = ["OpenRule", "Question", "Verdict", "question_of"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a rule knows about a question."""

    golds: Sequence[str]
    options: Options
    columns: Mapping[str, Any]

    def column(self, name: str) -> Any:
        """The value of a column; `Question Type` and `question_type` are the same. None if there is none."""
        if name in self.columns:
            return self.columns[name]
        return next((value for key, value in self.columns.items() if key.lower().replace(" ", "_") == name), None)


class Verdict(NamedTuple):
    """A value from 0 to 1, and what was read; None if nothing was."""

    value: float
    read: str | None


OpenRule: TypeAlias = Callable[[str, Question], Verdict | Reading]
NOTHING = Verdict(0.0, None)


def question_of(sample: Sample) -> Question:
    """The question of a sample."""
    return Question(gold_answers(sample), options_of(sample), sample.metadata)


@rule("open_answer", "mmeval@1", origin="multimodal_eval, the default")
def default_open(answer: str, question: Question) -> Verdict | Reading:
    """With options, the rule `mmeval@1` for letters. Otherwise the final answer equals a gold answer.

    The final answer is what the rule `mmeval@1` for texts reads. Numbers are equal if their values are: separators,
    currency and percent signs are left out. Other texts are compared in lower case with collapsed white space.
    """
    if question.options:
        return default_choice(answer, question.options)
    said = final_answer(answer)
    if not said:
        return NOTHING
    number = plain_number(said)
    for gold in map(final_answer, question.golds):
        if said == gold or (number is not None and number == plain_number(gold)):
            return Verdict(1.0, said)
    return Verdict(0.0, said)


# MMMU


_KEYS = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
_BARE_MARKS = frozenset(":,.!?;'")
_SEARCHED = 20_000  # characters of a statement that are searched for numbers
_NUMBERS = tuple(
    map(
        re.compile,
        (
            r"-?\b\d{1,3}(?:,\d{3})+\b",
            r"(?:-|(?<!\d))\d+(?:\.\d+)?[eE][+-]?\d+",
            r"(?:(?:-|(?<!\d))(?:\d+\.\d+|\d+\b)|-?\.\d+)(?![eE][+-]?\d+)(?![,\d])",
        ),
    )
)


def _statements(answer: str) -> list[str]:
    """What follows the key words in each line, the shortest of each; the whole answer if there is none."""
    text = answer.strip().strip(".").lower()
    *lines, last = text.split("\n")
    statements = []
    for line, keys in [*((line, _KEYS) for line in lines), (last, (*_KEYS, "="))]:
        shortest = ""
        for key in keys:
            if key in line:
                tail = line.rpartition(key)[2].strip()
                if not shortest or len(tail) < len(shortest):
                    shortest = tail
        if shortest and shortest not in _BARE_MARKS:
            statements.append(shortest)
    return statements or [text]


def _normalised(text: str) -> tuple[float | str, ...]:
    """A number rounded to two places, or the text in lower case; a single character with a blank before or after it."""
    text = text.strip()
    with suppress(ValueError):
        return (round(float(text.replace(",", "")), 2),)
    text = text.lower()
    return (f" {text}", f"{text} ") if len(text) == 1 else (text,)


def _mmmu_open(answer: str, question: Question) -> Verdict:
    statements = _statements(answer)
    numbers = [number for text in statements for pattern in _NUMBERS for number in pattern.findall(text[:_SEARCHED])]
    predicted = {form for text in (*statements, *numbers) for form in _normalised(text)}
    golds = [form for gold in question.golds for form in _normalised(gold)]
    texts = [form for form in predicted if isinstance(form, str)]
    is_right = any(
        any(gold in text for text in texts) if isinstance(gold, str) else gold in predicted for gold in golds
    )
    return Verdict(float(is_right), " / ".join(statements))


@rule("open_answer", "mmmu@2024", origin="mmmu/utils/eval_utils.py of https://github.com/MMMU-Benchmark/MMMU (bb0b95a)")
def mmmu_question(answer: str, question: Question) -> Verdict | Reading:
    """With options, the rule `mmmu@2024` for letters; if nothing is found, the origin draws a letter.

    Without options: in each line, the shortest text after "so ", "is ", "therefore ", "answer " and similar words (in
    the last line also after `=`), else the whole answer, and all numbers in these texts. Right if a number equals a
    gold number, both rounded to two places, or if one of the texts contains a gold text.
    """
    return mmmu(answer, question.options) if question.options else _mmmu_open(answer, question)


@rule("open_answer", "mmmu@2024/seed42", origin="as mmmu@2024, with the seed 42 that the program sets")
def mmmu_question_seeded(answer: str, question: Question) -> Verdict | Reading:
    """As `mmmu@2024`; letters are drawn as the origin draws them, from one sequence in the order of the data.

    The order must be that of the origin: by subject in alphabetical order, then by row.
    """
    return mmmu_question(answer, question)


@rule("open_answer", "lmms-eval@0.7.3/mmmu", origin="lmms-eval 0.7.3, tasks/mmmu/utils.py")
def mmmu_question_lmms_eval(answer: str, question: Question) -> Verdict | Reading:
    """With options, the rule `lmms-eval@0.7.3/mmmu` for letters. Without options, as `mmmu@2024`."""
    return mmmu_lmms_eval(answer, question.options) if question.options else _mmmu_open(answer, question)


# VSI-Bench


_TENTHS = 9  # steps between the lowest and the highest threshold
_THRESHOLDS = (*(0.5 + step * ((0.95 - 0.5) / _TENTHS) for step in range(_TENTHS)), 0.95)
_DIGITS, _LETTERS = re.compile(r"-?\d+(?:\.\d+)?"), re.compile("[a-z]+")
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBER_WORDS = {
    **{word: number for number, word in enumerate(_UNITS)},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "hundred": 100,
    "thousand": 1000,
}


def mean_relative_accuracy(predicted: float, gold: float) -> float:
    """The share of ten thresholds t from .5 to .95 with a relative error of at most 1 - t."""
    error = abs(predicted - gold) / gold
    return sum(error <= 1 - threshold for threshold in _THRESHOLDS) / len(_THRESHOLDS)


def _gold_number(question: Question) -> float:
    gold = question.golds[0]
    try:
        number = float(gold)
    except ValueError:
        number = 0.0
    if number == 0:
        raise GoldError(f"a relative error needs a gold number other than 0. Got {gold!r} instead.")
    return number


def _vsi(answer: str, question: Question, number: Callable[[str], float | None]) -> Verdict | Reading:
    if question.options:
        return first_word(answer, question.options)
    gold, predicted = _gold_number(question), number(answer)
    return NOTHING if predicted is None else Verdict(mean_relative_accuracy(predicted, gold), f"{predicted:g}")


def _first_word_number(answer: str) -> float | None:
    try:
        return float(answer.split(" ", 1)[0].rstrip(".").strip())
    except ValueError:
        return None


@rule("open_answer", "vsi-bench@2024", origin="lmms_eval/tasks/vsibench/utils.py of VSI-Bench")
def vsi_bench(answer: str, question: Question) -> Verdict | Reading:
    """With options, the rule `vsi-bench@2024` for letters. Otherwise the mean relative accuracy of the first word.

    The first word, without full stops at its end, must be a number p. The value is the share of the ten thresholds
    .50, .55, … .95 for which |p - g| / g is at most 1 minus the threshold.
    """
    return _vsi(answer, question, _first_word_number)


def _first_number(answer: str) -> float | None:
    """The number that comes first, in digits or in English words."""
    text = answer.strip().lower()
    digits = _DIGITS.search(text)
    words: list[int] = []
    for match in _LETTERS.finditer(text):
        value = _NUMBER_WORDS.get(match[0])
        if value is not None:
            if not words and digits is not None and digits.start() < match.start():
                break
            words.append(value)
        elif words and match[0] != "and":
            break
    if not words:
        return None if digits is None else float(digits[0])
    total = current = 0
    for value in words:
        if value == 1000:
            total, current = total + 1000 * max(current, 1), 0
        else:
            current = 100 * max(current, 1) if value == 100 else current + value
    return float(total + current)


@rule("open_answer", "lmms-eval@0.7.3/vsibench", origin="lmms-eval 0.7.3, tasks/vsibench/utils.py")
def vsi_bench_lmms_eval(answer: str, question: Question) -> Verdict | Reading:
    """As `vsi-bench@2024`, with the first number anywhere in the answer, in digits or in English words."""
    return _vsi(answer, question, _first_number)


# RealWorldQA


_FOUR = dict.fromkeys("ABCD", "")


@rule("open_answer", "lmms-eval@0.7.3/realworldqa", origin="lmms-eval 0.7.3, tasks/realworldqa/utils.py")
def realworldqa(answer: str, question: Question) -> Verdict:
    """lmms-eval's rule for RealWorldQA: by `lmms-eval@0.7.3/mcq_extract` if the gold answer is A, B, C or D.

    Otherwise the answer in lower case, without white space around it and full stops at its end, equals the gold answer.
    """
    gold = question.golds[0].strip()
    if gold.upper() in _FOUR:
        letter = mcq_extract(answer, _FOUR).choice
        return Verdict(float(letter == gold.upper()), letter)
    said = answer.lower().strip().rstrip(".")
    return Verdict(float(said == gold.lower()), said or None)


# Further rules of this family, which are listed after these.
from multimodal_eval.evaluation.rules import _open_benchmarks  # noqa: E402, F401
