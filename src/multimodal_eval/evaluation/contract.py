"""What the test kit checks parts with: samples, hostile answers, and what the rules of each family take and return."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NamedTuple

from multimodal_eval.core.sample import Box, Sample
from multimodal_eval.evaluation.rules._readings import Reading
from multimodal_eval.evaluation.rules.box import PlacedBox, PlacedPoint
from multimodal_eval.evaluation.rules.open_answer import Question, Verdict

__all__ = ["ANSWERS", "SAMPLES", "RuleContract", "rule_contracts"]

# Answers that models have given, and that programs have failed on.
_TEXTS = (
    "||  |\n\t|.|0|-1|1e999|NaN|١٢٣|A|B or C|(A) and (B)|Yes, but no|<think>|{|[1e400, 2, 3, 4]|(50%, 50%)|é|e\u0301"
)
_TEXTS += '|ß|ＡＢＣ|犬|كلب|👩\u200d👧|\u200b|\ufeff|\x00|a\u2028b|\r\n|%s {0} $x|{"answer": [1, null]}|[0, 0]|\\boxed{'
ANSWERS = [*_TEXTS.split("|"), "the " * 400, "x" * 3000, "9" * 400, "(" * 300, "yes no " * 100]

_RED = "data:image/gif;base64,R0lGODlhAQABAIAAAP8AAAAAACwAAAAAAQABAAACAkQBADs="
_BLUE = "data:image/gif;base64,R0lGODlhAQABAIAAAAAA/wAAACwAAAAAAQABAAACAkQBADs="
SAMPLES = [
    Sample(
        "caption",
        image=_RED,
        generated_answer="a red dog runs on the beach",
        references=["a dog runs on the beach", "the red dog"],
        perplexity=12.5,
        metadata={"objects": ["dog"], "score": 0.75},
    ),
    Sample(
        "question",
        image=_BLUE,
        question="How many cats sleep?",
        generated_answer="two cats and a dog",
        references=["two cats"],
        expected_answer="two cats",
        perplexity=3.5,
        metadata={"objects": ["cat"], "score": 0.25},
    ),
    Sample(
        "long",
        generated_answer="The photo shows a young man in a blue shirt who rides his bicycle along a busy street.",
        references=["a man rides a bike down the street", "a cyclist in traffic"],
    ),
    *(
        Sample(
            answer, question="Which?", generated_answer=answer, choices=choices, expected_answer="B", references=["B"]
        )
        for answer, choices in [("B", ["a dog", "a cat"]), ("(A)", ["one", "two"])]
    ),
    *(
        Sample(answer, generated_answer=answer, expected_answer="yes", references=["yes"], annotations=labels)
        for answer, labels in [
            ("Yes", {"a": "yes", "b": "no", "c": "yes"}),
            ("no", {"a": "yes", "b": "yes", "c": "yes"}),
        ]
    ),
    Sample("box", generated_answer="[0, 0, 10, 5]", boxes=[Box((0, 0, 10, 10))]),
    Sample("other box", generated_answer="[40, 40, 50, 50]", boxes=[Box((0, 0, 10, 10))]),
]


class RuleContract(NamedTuple):
    """What the functions of a family take besides the answer, and what they return."""

    arguments: tuple[Any, ...]
    returns: str
    fits: Callable[[Any], bool]


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _is_choice(value: object, options: Container[str]) -> bool:
    if not isinstance(value, Reading) or not all(letter in options for letter in value.among):
        return False
    return value.choice is None or value.choice in options


def _is_list(value: object, type_: type) -> bool:
    return isinstance(value, list) and all(isinstance(each, type_) for each in value)


def _is_compared(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str | None) and _is_list(value[1], str)


def rule_contracts() -> dict[str, RuleContract]:
    """The families of this package. A family of a plug-in is checked by cases only."""
    options = {"A": "a dog", "B": "two cats", "C": "12"}
    question = Question(["12"], {}, {"question_type": "free_form", "answer_type": "text"})
    text = RuleContract((), "a text", lambda value: isinstance(value, str))
    is_right = "True or False", lambda value: isinstance(value, bool)
    return {
        "anls": RuleContract(("a dog",), "a number from 0 to 1", _is_share),
        "answer_text": text,
        "box": RuleContract((), "a list of PlacedBox", lambda value: _is_list(value, PlacedBox)),
        "choice": RuleContract(
            (options,), "a Reading with one of the letters", lambda value: _is_choice(value, options)
        ),
        "gqa": text,
        "ocrbench": RuleContract(("a dog", False), *is_right),
        "open_answer": RuleContract(
            (question,), "a Verdict from 0 to 1", lambda value: isinstance(value, Verdict) and _is_share(value.value)
        ),
        "point": RuleContract((), "a PlacedPoint or None", lambda value: isinstance(value, PlacedPoint | None)),
        "relaxed": RuleContract(("12",), *is_right),
        "transcript": text,
        "vqa": RuleContract((["a dog", "dog", "a dog"],), "the answer and a list of texts", _is_compared),
        "yes_no": RuleContract((), "a Reading with yes or no", lambda value: _is_choice(value, ("yes", "no"))),
    }
