"""The language of templates: what it renders, what it refuses, and that no template runs for long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.generate import template_language
from multimodal_eval.generate.template import WITHHELD, PromptCostError, PromptError, PromptTemplate, Slot, letters
from multimodal_eval.generate.template_language import BUDGET, LONGEST_OUTPUT, PromptLanguage

SAMPLE = Sample(
    "s1",
    question="What is it?",
    image="a.png",
    images=["b.png"],
    choices={"a": "dog", "b": "cat"},
    references=["SECRET"],
    metadata={"lang": "ru", "deep": {"items": [1, 2]}, "long": "x" * 100_000},
)


def text(template, sample=SAMPLE):
    return "".join(map(str, PromptTemplate(template, "my.md").render(sample)))


def refusal(template, sample=SAMPLE):
    with pytest.raises(PromptError) as error:
        PromptTemplate(template, "my.md").render(sample)
    return str(error.value)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ question }}", "What is it?"),
        ("{{ lang }} {{ metadata.lang }} {{ metadata['lang'] }}", "ru ru ru"),
        ("{{ deep.items[1] }} {{ deep['items'] | length }}", "2 2"),  # a key, not Python's method
        ("{% for letter, option in choices | items %}{{ letter }}={{ option }};{% endfor %}", "a=dog;b=cat;"),
        ("{% for letter in choices %}{{ loop.index }}{{ letter }}{{ ',' if not loop.last }}{% endfor %}", "1a,2b"),
        ("{{ question | lower | replace('what', 'who') }}", "who is it?"),
        ("{{ question[:4] }}|{{ question | truncate(4) }}", "What|What"),
        ("{{ prompt or question }}", "What is it?"),
        ("{{ nothing | default('none') }}, {{ prompt | default('empty') }}", "none, empty"),
        ("{% if metadata.hint %}x{% endif %}{{ metadata['hint'] or 'y' }}{{ metadata.deep.hint or 'z' }}", "yz"),
        ("{% if nothing is defined %}x{% else %}y{% endif %}", "y"),
        ("{% set n = 2 * 3 + 1 %}{{ n }}{{ 7 % 4 }}{{ 'a' ~ n }}{{ 'b' + 'c' }}", "73a7bc"),
        ("{{ range(3) | join('-') }} {{ choices | tojson }}", '0-1-2 {"a": "dog", "b": "cat"}'),
        ("{{ '<b>&' }}", "<b>&"),  # prompts are not HTML
        ("{# a comment #}\n{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
    ],
)
def test_templates_are_rendered(template, expected):
    assert text(template) == expected


def test_media_are_places_in_the_text():
    parts = PromptTemplate("A {{ images[1] }} B {{ image }} C", "my.md").render(SAMPLE)
    # `image` means all images of the sample, in order: `image`, then `images`
    assert parts == ["A ", Slot("image", (1,)), " B ", Slot("image", (0,)), "", Slot("image", (1,)), " C"]
    assert text("{{ 'has' if image else 'no' }} {{ 'has' if audio else 'no' }}") == "has no"


@given(st.text())
def test_no_text_of_a_sample_becomes_media_or_is_changed(question):
    assert PromptTemplate("{{ question }}", "my.md").render(Sample("s", question=question)) == [question]


def test_a_missing_field_is_named_with_its_line_and_what_there_is():
    message = refusal("first line\n{{ nothing }}")
    known = "choices, deep, id, image, images, lang, long, metadata, question"
    assert (
        message == f"the template my.md, line 2 ('{{{{ nothing }}}}'): 'nothing' is undefined. The sample has: {known}"
    )


@pytest.mark.parametrize(
    "use",
    [
        "{{ metadata.hint }}",
        "{{ metadata.hint | length }}",
        "{% for x in metadata.hint %}x{% endfor %}",
        "{{ metadata.hint ~ 'x' }}",
    ],
)
def test_a_missing_key_may_be_tested_and_not_used(use):
    assert "has no attribute 'hint'. The sample has: " in refusal("{% if not metadata.hint %}" + use + "{% endif %}")


def test_a_missing_name_may_be_a_mistake():
    assert "'hint' is undefined" in refusal("{% if hint %}x{% endif %}")


def test_an_empty_field_is_an_error_and_not_the_word_none():
    assert "line 1 ('{{ prompt }}'): it writes a field that is empty. The sample has: choices, " in refusal(
        "{{ prompt }}"
    )
    assert "it needs `choices`" in refusal("{{ choices | items }}", Sample("s"))


@pytest.mark.parametrize("name", sorted(WITHHELD))
def test_a_template_never_sees_an_answer(name):
    message = refusal("{{ question }}{% if 1 > 2 %}{{ " + name + " }}{% endif %}")
    assert message.startswith(f"the template my.md names `{name}`, which a model must not see")


def test_every_field_is_either_given_or_withheld():
    given_fields = {"id", "task", "group", "question", "prompt", "choices", "metadata"}
    media = {"image", "images", "audio", "video"}
    assert set(FIELDS) - WITHHELD == given_fields | media | {"messages", "epoch"}
    assert {"references", "expected_answer", "caption", "generated_answer", "annotations", "prediction"} <= WITHHELD


def test_metadata_cannot_stand_for_an_answer():
    sample = Sample("s", expected_answer="SECRET", metadata={"question": "another", "note": "n"})
    assert "empty" in refusal("{{ question }}", sample)  # the field, which is empty, and not the key
    assert text("{{ metadata.question }}{{ note }}", sample) == "anothern"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ question.__class__ }}", "names that start with `_`"),
        ("{{ question['__class__'] }}", "has no attribute '__class__'"),
        ("{{ question | attr('__class__') }}", "no filter is named 'attr'"),
        ("{{ question.upper() }}", "call no functions but `range`"),
        ("{{ question.upper }}", "has no attribute 'upper'"),
        ("{{ metadata.get }}", "has no attribute 'get'"),
        ("{{ lipsum() }}", "call no functions"),
        ("{{ self }}", "`self` is not available"),
        ("{{ _x }}", "`_x` is not available"),
        ("{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}", "do not have `macro`"),
        ("{% include '/etc/passwd' %}", "do not have `include`"),
        ("{% import 'x' as y %}", "do not have `import`"),
        ("{% extends 'x' %}", "do not have `extends`"),
        ("{% for a in range(3) recursive %}{{ loop(range(3)) }}{% endfor %}", "recursive"),
        ("{{ [question, question] }}", "only constants"),
        ("{{ choices }}", "writes a mapping"),
        ("{{ image ~ 'x' }}", "`image` is media, not text"),
        ("{{ image | upper }}", "`image` is media, not text"),
        ("{{ messages }}", "names `messages`"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% if %}", "Expected an expression"),
        ("{{ question is nonsense }}", "No test named 'nonsense'"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "RecursionError"),
        ("{{ 1 if 1[none] else 2 }}", "int object has no element None"),
        ("x" * 100_001, "more than 100,000 characters"),
    ],
)
def test_everything_else_is_refused(template, reason):
    message = refusal(template)
    assert message.startswith("the template my.md")
    assert reason in message


@pytest.mark.parametrize(
    "bomb",
    [
        "{% for i in range(10**9) %}x{% endfor %}",
        "{% for i in range(1000000000) %}x{% endfor %}",
        "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
        "{% for i in long %}{% for j in long %}{% endfor %}{% endfor %}",
        "{{ 'x' * 1000000000 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ 2 ** 1000000000 }}",
        "{% set n = 999999999999999 %}{{ n * n * n * n }}",
        "{% set a = long %}" + "{% set a = a ~ a %}" * 40 + "{{ a }}",
        "{% set a = long %}" + "{% set a = a + a %}" * 40 + "{{ a }}",
        "{{ long | replace('x', long) }}",
        "{{ range(99999) | join(long) }}",
        "{% for i in range(99999) %}{{ long | upper | length }}{% endfor %}",
        "{% for i in range(99) %}{{ long }}{% endfor %}",
    ],
)
def test_bombs_end_with_an_error(bomb):
    assert refusal(bomb)


TEXT, WORDS, NESTED = "x" * 1_000, ["y" * 100] * 10, {"k": [["z" * 10] * 10]}
# Each value costs 1, also inside others, and each character 1.
COSTS = {
    "{{ 'y' in x }}": 2 + 1_001,
    "{{ x == x }}": 2 * 1_001,
    "{{ 'a' < x < 'z' }}": 2 + 1_001 + 2,
    "{{ x in words }}": 1_001 + 1_011,
    "{{ nested == nested }}": 2 * (1 + 2 + 1 + 1 + 10 * 11),
    "{{ x[1:] }}": 1 + 999,
    "{% set a = words[:5] %}": 1 + 5,
    "{{ 'x' is in(x) }}": 2 + 1_001,
    "{{ x is upper }}": 1_001,
    "{{ x is defined and words is sequence }}": 0,
    "{{ 'y' in range(500) }}": 2 + 501,
    "{{ x | upper }}": 1_001 + 1_001,
    "{{ nested | tojson }}": 115 + 1 + 149,  # {"k": [["zzzzzzzzzz", …]]}: 9 + 10 * 12 + 9 * 2 + 2
    "{% set a = words | sort %}": 10 + 4 * 1_011,  # about 4 comparisons of each of 10 items
    "{% set a = words | unique %}": 10 + 1_011 + 2,
    "{{ words | length }}": 10 + 1,
    "{{ x | replace('y', 'z') }}": 1_000 + 1,
    "{{ x ~ x }}": 2_000,
    "{% for word in words %}{% endfor %}": 10 * 100,
    "{% for i in range(3) %}" + "{% if x %}{% endif %}" * 100 + "{% endfor %}": 3 * 204,
}


@pytest.mark.parametrize("template", COSTS)
def test_operations_cost_by_the_length_of_what_they_work_on(template):
    language = PromptLanguage()
    language.written(language.from_string(template), {"x": TEXT, "words": WORDS, "nested": NESTED})
    assert BUDGET - language.left == COSTS[template]


@pytest.mark.parametrize(
    "operation",
    [
        *("'y' in long", "long == long", "long[1:]", "long is lower", "'y' is in(long)", "docs == docs"),
        *("docs | sort", "docs | tojson", "docs | unique", "long | reverse", "metadata[long]", "'x' in range(9999)"),
    ],
)
def test_a_loop_over_costly_operations_is_refused(operation):
    loop = f"{{% for i in range(4000) %}}{{% if {operation} %}}{{% endif %}}{{% endfor %}}"
    sample = Sample("s", question="?", metadata={"long": "x" * 50_000, "docs": ["y" * 1_000] * 20})
    assert "it needs more than 100,000 steps, or 10,000,000 characters" in refusal(loop, sample)


def test_a_template_that_takes_too_long_is_refused(monkeypatch):
    template = PromptTemplate("one\n{% if question in id %}{% endif %}two", "my.md")
    assert template.render(SAMPLE)
    monkeypatch.setattr(template_language, "SECONDS", -1)
    with pytest.raises(PromptCostError, match=r"the template my.md, line 2 .*: it takes more than -1 seconds"):
        template.render(SAMPLE)


def test_the_clock_starts_anew_for_each_sample(monkeypatch):
    times = iter(range(0, 1_000, 6))  # every look at the clock is 6 seconds later
    monkeypatch.setattr(template_language, "thread_time", lambda: next(times))
    template = PromptTemplate("{% if 1 %}{{ question[:3] }}{% endif %}", "my.md")
    assert [template.render(SAMPLE) for _ in range(3)]
    with pytest.raises(PromptCostError, match="more than 10 seconds"):
        PromptTemplate("{{ question[:3] }}{{ question[:3] }}", "my.md").render(SAMPLE)


def test_the_output_has_a_limit_and_large_ones_below_it_are_whole():
    many = Sample("s", question="x" * (LONGEST_OUTPUT - 1))
    assert len(text("{{ question }}!", many)) == LONGEST_OUTPUT
    assert "writes more than 1,000,000 characters" in refusal("{{ question }}!!", many)


def test_one_sample_does_not_use_up_the_budget_of_the_next():
    template = PromptTemplate("{% for i in range(60000) %}{% endfor %}ok", "my.md")
    assert [template.render(SAMPLE) for _ in range(3)] == [["ok"]] * 3


@given(st.integers(2, 26))
def test_choices_have_letters(count):
    named = letters(Sample("s", choices=[f"choice {place}" for place in range(count)]))
    assert list(named) == list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count])
    assert list(named.values())[-1] == f"choice {count - 1}"


def test_more_choices_than_letters():
    assert list(letters(Sample("s", choices=[""] * 29)))[25:] == ["Z", "AA", "AB", "AC"]
