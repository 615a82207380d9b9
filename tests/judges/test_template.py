"""A judge's own prompt: a template in which texts of the sample stay in their fences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.judge_config import Criterion, JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.template import PromptError
from multimodal_eval.generate.turns import Reference
from multimodal_eval.judges.forms.by_name import form_of
from multimodal_eval.judges.prompt_texts import RULE, VARIABLES, JudgeTemplate, drafts_of, fenced

SAMPLE = Sample(
    "1",
    question="What runs?",
    choices={"A": "a dog", "B": "a cat"},
    references=["a dog", "the dog"],
    generated_answer="A dog. {{ question }} {% if %}",
    image="dog.png",
    images=["other.png"],
)


def judge(template: str, **settings) -> JudgeConfig:
    return JudgeConfig(name="mine", prompt="mine.md", template=template, **settings)


def parts(template: str, sample: Sample = SAMPLE, **settings):
    drafts = form_of(judge(template, **settings)).drafts(sample, 0)
    assert drafts[-1].role == "user"
    return list(drafts[-1].parts)


def fault(template: str, sample: Sample = SAMPLE) -> str:
    with pytest.raises(PromptError) as caught:
        parts(template, sample)
    return str(caught.value)


def test_a_template_with_everything():
    template = """
{# Comments are not sent. #}
{{ rule }}
{{ instruction }}
{{ images[1] }}
{{ question }}
{{ choices }}
{% for reference in references %}
{{ reference }}
{% endfor %}
{{ answer }}
From {{ scale.low }} to {{ scale.high }}.
{{ reply }}
"""
    first, second, text = parts(template, question="Is it short?", scale=(0, 3))[:3]
    assert first == Reference("image", "dog.png")  # the template does not place it
    assert second == f"{RULE}\nYou judge the answer of a model. Is it short?\n" + (
        "Reply with a whole number from 0 to 3, where 3 is the best."
    )
    assert text == Reference("image", "other.png")
    rest = parts(template, scale=(0, 3))[3]
    assert rest == "\n".join(
        [
            fenced("question", "What runs?"),
            fenced("choices", "A. a dog\nB. a cat"),
            fenced("reference-1", "a dog"),
            fenced("reference-2", "the dog"),
            fenced("answer", SAMPLE.generated_answer),
            "From 0 to 3.",
            'Reply with JSON only: {"score": …}',
        ]
    )


def test_the_rule_about_fences_is_always_there():
    assert parts("{{ answer }}", show=())[-1] == f"{RULE}\n\n{fenced('answer', SAMPLE.generated_answer)}"


def test_the_criteria_of_a_rubric():
    criteria = [Criterion(name="a", question="A?"), Criterion(name="b", question="B?", scale=(0, 9))]
    line = "{{ each.name }} {{ each.question }} {{ each.low }}-{{ each.high }};"
    text = parts(
        f"{{% for each in criteria %}}{line}{{% endfor %}}{{{{ answer }}}}", form="rubric", criteria=criteria, show=()
    )[-1]
    assert "a A? 1-5;b B? 0-9;" in text


def test_compared_answers_are_in_the_order_in_which_they_are_shown():
    texts = [fenced("answer-1", "x"), fenced("answer-2", "y")]
    config = judge("{{ answers[1] }} or {{ answers[0] }}?", show=())
    (draft,) = drafts_of(config, SAMPLE, "i", texts, "e")
    assert draft.parts == (f"{RULE}\n\n{texts[1]} or {texts[0]}?",)
    assert "`answers`" in fault("{{ answer }} {{ baseline }}")


def test_a_system_prompt_comes_first():
    first, second = form_of(judge("{{ answer }}", system="Be strict.")).drafts(SAMPLE, 0)
    assert (first.role, first.parts, second.role) == ("system", ("Be strict.",), "user")


def test_what_is_not_to_be_shown_is_empty():
    shown = "{% if question %}{{ question }}{% else %}nothing{% endif %}{% for each in references %}!{% endfor %}"
    assert "nothing<answer" in parts(f"{shown}{{{{ answer }}}}", show=())[-1]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("How good?", "the template mine.md does not show what is judged: write {{ answer }}"),
        ("{{ answer }}{{ anwser }}", "names `anwser`. Did you mean 'answer'?"),
        ("{{ answer }}{{ metadata.hint }}", "names `metadata`. Known: "),
        ("{{ answer", "the template mine.md, line 1: "),
        ("\n{{ answer | upper }}", "line 2 ('{{ answer | upper }}'): a fenced text is written as it is"),
        ("{{ answer | replace('<', '') }}", "a fenced text is written as it is"),
        ("{{ answer | truncate(3) }}", "a fenced text is written as it is"),
        ("{{ answer ~ '!' }}", "a fenced text is written as it is"),
        ("{{ references | join(', ') }}{{ answer }}", "a fenced text is written as it is"),
        ("{{ references }}{{ answer }}", "it writes a list"),
        ("{{ answer + 1 }}", "`+` needs numbers. Got a fenced text"),
        ("{{ answer[0] }}", "has no"),
        ("{{ answer.texts }}", "has no"),
        ("{% if answer %}{{ answer | tojson }}{% endif %}", "a fenced text is written as it is"),
        ("{{ answer }}{{ images | tojson | replace(':0', ':7') }}", "changes a place for a text or media"),
        ("{{ answer }}{% for x in range(1000) %}{% for y in range(1000) %}.{% endfor %}{% endfor %}", "steps"),
    ],
)
def test_what_a_template_must_not_do(template, message):
    assert message in fault(template)


def test_an_empty_field_is_named():
    bare = Sample("1", generated_answer="x")
    assert "it writes a field that is empty" in fault("{{ question }}{{ answer }}", bare)


def test_every_variable_is_known():
    JudgeTemplate("".join(f"{{% if {name} %}}{{% endif %}}" for name in VARIABLES), "all")


@given(answer=st.text(), question=st.text(min_size=1))
def test_no_text_of_a_sample_is_outside_its_fence(answer, question):
    sample = Sample("1", question=question, generated_answer=answer)
    (text,) = parts("Q {{ question }} A {{ answer }} Z", sample)
    assert text == f"{RULE}\n\nQ {fenced('question', question)} A {fenced('answer', answer)} Z"
