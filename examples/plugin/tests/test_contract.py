"""What multimodal-eval expects of the parts of this package, one line each."""

from __future__ import annotations

from multimodal_eval import Sample
from multimodal_eval.testing import check_metric, check_provider, check_recipe, check_rule

ANSWERS = [
    Sample("1", generated_answer="A red dog.", references=["a red dog", "a dark red dog on green grass"]),
    Sample("2", generated_answer="a grey cat", references=["a gray cat"]),
]


def test_the_metric():
    check_metric("colour_recall", ANSWERS)


def test_the_rule():
    check_rule("colours@1", "answer_text", {"Not red but Grey!": "gray", "I do not know": "i do not know"})


def test_the_provider():
    check_provider("colours:mean")


def test_the_recipe():
    check_recipe("colour-tiles")
