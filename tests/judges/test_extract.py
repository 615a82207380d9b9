"""The form `extract`: what is asked, and how the reply is read."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample
from multimodal_eval.core.judge_config import JudgeConfig, JudgeModel
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.judges.form import UnreadableVerdictError
from multimodal_eval.judges.forms.one_answer import Extract
from multimodal_eval.judges.prompt_texts import fenced

FORM = Extract(JudgeConfig(name="multiple_choice", form="extract", models=[JudgeModel(model="echo")]))
CHOICES = Sample(
    "a",
    question="What is it?",
    generated_answer="It barks.",
    choices=["dog", "cat"],
    expected_answer="A",
    references=["the secret"],
    image="dog.png",
)
PLAIN = Sample("a", question="Is it a dog?", generated_answer="It barks.", expected_answer="yes")


def test_the_judge_sees_the_question_the_choices_and_the_answer_but_not_the_right_one():
    (draft,) = FORM.drafts(CHOICES, 0)
    (text,) = draft.parts  # no image
    assert isinstance(text, str)
    for part in (("question", "What is it?"), ("choices", "A. dog\nB. cat"), ("answer", "It barks.")):
        assert fenced(*part) in text
    assert "secret" not in text
    assert "whether it says yes or no" in str(FORM.drafts(PLAIN, 0))


def test_the_schema_lists_the_choices():
    schema = FORM.schema(CHOICES)
    assert schema is not None
    assert schema["properties"]["choice"] == {"type": "string", "enum": ["A", "B", "none"]}
    plain = FORM.schema(PLAIN)
    assert plain is not None
    assert plain["properties"]["choice"]["enum"] == ["yes", "no", "none"]


@pytest.mark.parametrize(
    ("reply", "choice"),
    [('{"choice": "B"}', "B"), ('{"choice": "(b)"}', "B"), ('{"choice": " A. "}', "A"), ('{"choice": "None"}', None)],
)
def test_a_choice_is_read(reply, choice):
    assert FORM.read(CHOICES, Answer(reply), 0) == {"choice": choice}


@pytest.mark.parametrize(
    "reply", ['{"choice": "C"}', '{"choice": 1}', '{"choice": "A or B"}', '{"choice": ""}', "dunno"]
)
def test_everything_else_is_unreadable(reply):
    with pytest.raises(UnreadableVerdictError):
        FORM.read(CHOICES, Answer(reply), 0)


def test_a_choice_that_is_called_none_can_be_chosen():
    sample = Sample("a", generated_answer="?", choices={"None": "nothing", "some": "something"})
    assert FORM.read(sample, Answer('{"choice": "none"}'), 0) == {"choice": "None"}
