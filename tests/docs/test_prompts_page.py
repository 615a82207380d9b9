"""docs/prompts.md matches the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.tasks_config import TASKS
from multimodal_eval.generate.prompts import Prompts, built_in, prompts, usual_prompt
from multimodal_eval.generate.template import PromptTemplate
from multimodal_eval.generate.template_language import FILTERS

PAGE = (Path(__file__).parents[2] / "docs" / "prompts.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .*? \|$", PAGE, re.MULTILINE))


def test_the_page_lists_every_template():
    assert sorted(ROWS) == list(prompts())


@pytest.mark.parametrize("name", ["caption", "vqa", "mcq", "yes_no", "transcription", "dialogue"])
def test_the_page_shows_what_is_asked(name):
    sample = Sample("1", question="QUESTION", choices=["CHOICE", "CHOICE"], image="a.png")
    asked = "".join(map(str, built_in(name).render(sample))).strip()
    assert ROWS[name].replace("<br>", "\n").replace(" …", "") == asked


@pytest.mark.parametrize("task", TASKS)
def test_the_page_names_the_default_of_every_task(task):
    name = usual_prompt(Sample("1", question="q"), task)
    defaults = {row[0]: row[1] for row in re.findall(r"^\| `(\w+)` \| .*? \| (.*?) \|$", PAGE, re.MULTILINE)}
    assert f"`{task}`" in defaults[name] or (name == "plain" and f"`{task}`" not in "".join(defaults.values()))


def test_the_page_lists_every_filter():
    listed = PAGE.partition("**Filters**: ")[2].partition(". The only function")[0]
    assert re.findall(r"`(\w+)`", listed) == sorted([*FILTERS, "join", "list", "replace"])


def test_the_template_on_the_page_works():
    text = PAGE.partition("```jinja\n")[2].partition("```")[0]
    sample = Sample("1", question="Which?", choices=["dog", "cat"], image="a.png", metadata={"hint": "It barks."})
    pieces = PromptTemplate(text, "page").render(sample)
    assert pieces[-1].strip() == "Which?\nHint: It barks.\n(A) dog\n(B) cat\nAnswer with one letter."


def test_the_digest_on_the_page():
    (digest,) = re.findall(r"`prompt:(vqa@\w+)`", PAGE)
    assert Prompts(GenerationConfig(model="m", prompt="vqa")).settings["prompt"] == digest
