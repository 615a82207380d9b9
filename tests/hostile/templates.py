"""Prompt templates of somebody else: each is rendered quickly and without the answer, or refused with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.template import PromptTemplate
from multimodal_eval.generate.template_language import FILTERS, LONGEST_OUTPUT
from tests.hostile.campaign import FaultError, campaign, tried
from tests.hostile.mutations import damaged

SECRET = "the gold answer"
SAMPLE = Sample(
    "s1",
    question="What? \x1b[2J {{ references }} {% raw %}",
    image="a.png",
    images=["b.png"],
    choices={"a": "dog", "b": "cat"},
    references=[SECRET],
    expected_answer=SECRET,
    metadata={
        "deep": {"list": [1, 2.5, None, "x"], "none": None},
        "long": "x" * 50_000,
        "n": 10**14,
        "nan": float("nan"),
    },
)
GOOD = (
    "question",
    "prompt",
    "choices",
    "metadata",
    "deep.list",
    "long",
    "n",
    "nan",
    "1",
    "-7",
    "'x'",
    "[1, 2]",
    "none",
)
ODD = (
    *("image", "images", "images[1]", "loop", "loop.index", "self", "range", "nothing", "{'a': 1}", "(1, 2)", "i"),
    *(
        "references",
        "question.__class__",
        "''.__class__.__mro__",
        "cycler",
        "lipsum",
        "namespace",
        "_x",
        "metadata['x']",
    ),
)
FILTER_NAMES = (*FILTERS, "join", "replace", "list")
ODD_FILTERS = ("map", "attr", "center", "format", "indent", "_concat", "_each")
OPERATORS = ("~", "~", "~", "+", "*", "%", "==", "in", "and", "or")
ODD_OPERATORS = ("-", "/", "//", "**", "<", "not in", "is", ".")
WHOLE = (
    "{% for i in range(99999) %}{% for j in range(99999) %}{{ long }}{% endfor %}{% endfor %}",
    "{% set a = long %}" + "{% set a = a ~ a %}" * 60 + "{{ a }}",
    "{{ range(99999) | join(long) }}{{ long | replace('x', long) }}",
    "{% for i in range(99999) %}{% if question in long and long[1:] != long %}{% endif %}{% endfor %}",
    "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
    "{{ question.__class__.__base__.__subclasses__() }}",
    "{% include '/etc/passwd' %}{% import 'os' as os %}{% extends 'x' %}",
)


def _usual(random: Random, good: Sequence[str], odd: Sequence[str]) -> str:
    return random.choice(good if random.random() < 0.97 else odd)


def _expression(random: Random, depth: int) -> str:
    if depth <= 0 or random.random() < 0.4:
        return _usual(random, GOOD, ODD)
    first, second, third = (_expression(random, depth - 1) for _ in range(3))
    name, operator = _usual(random, FILTER_NAMES, ODD_FILTERS), _usual(random, OPERATORS, ODD_OPERATORS)
    usual = (
        f"({first} {operator} {second})",
        f"{first} | string | {name}",
        f"({first} | tojson) ~ ({second} | tojson)",
        f"({first} | tojson | replace({second} | tojson, {third} | tojson))",
        f"({first} if {second} else {third})",
        f"({first} | default({second}))",
        f"({first} | tojson)[:{random.randint(-5, 50)}]",
    )
    odd = (f"{first} | {name}({second})", f"{first}[{second}]", f"range({first})", f"{first}({second})")
    return _usual(random, usual, odd)


def _template(random: Random, depth: int) -> str:
    inner = _template(random, depth - 1) if depth > 0 else "text"
    value = _expression(random, 2)
    return random.choice(
        (
            f"{{{{ {value} | tojson }}}}{inner}",
            f"{{% for i in {value} | tojson %}}{inner}{{{{ i | tojson }}}}{{% endfor %}}",
            f"{{% if {value} %}}{inner}{{% else %}}{{{{ {value} | tojson }}}}{{% endif %}}",
            f"{{% set long = {value} %}}{inner}",
        )
    )


@campaign("templates", cases=3_000, seconds=20)
def attack_templates(random: Random, folder: Path) -> str | None:
    text = random.choice(WHOLE) if random.random() < 0.1 else _template(random, random.randint(1, 8))
    if random.random() < 0.2:
        text = damaged(random, text.encode()).decode("utf-8", "replace")
    (folder / "template.md").write_text(text, encoding="utf-8", newline="")
    rendered: list[str] = []

    def render() -> None:
        rendered.extend(map(str, PromptTemplate(text, "template.md").render(SAMPLE)))

    verdict = tried(render)
    if sum(map(len, rendered)) > LONGEST_OUTPUT + 1_000:
        raise FaultError("more text than the limit")
    if any(SECRET in piece for piece in rendered):
        raise FaultError("the answer is in the prompt")
    return verdict
