"""Every example of a command and of a docstring is executed, or the page says why not.

The build of the site uses what these tests executed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multimodal_eval.cli.examples import EXAMPLES
from tools.reference import commands
from tools.site.blocks import parse
from tools.site.generated import command_examples
from tools.site.generated.api import api_pages
from tools.site.generated.command_examples import Needs, faults
from tools.site.generated.commands import command_pages, page_of
from tools.site.generated.outputs import executed, has_examples
from tools.site.records import keep

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def pages():
    return command_pages()


@pytest.fixture(scope="module")
def modules():
    return api_pages()


def assert_executed(name: str, text: str) -> None:
    outcome = executed(name, text)
    assert outcome.problems == []
    assert outcome.stale == [], "correct the output in the docstring"
    keep(outcome, text)


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_examples_of_a_command_are_executed(path, pages):
    assert_executed(page_of(path), pages[page_of(path)])


def test_the_examples_of_docstrings_are_executed(modules):
    sessions = {name: text for name, text in modules.items() if has_examples(text)}
    assert len(sessions) > 5
    for name, text in sessions.items():
        assert_executed(name, text)


def test_every_session_in_the_code_is_on_a_page(modules):
    sessions = {
        line.strip()
        for file in SOURCE.rglob("*.py")
        for line in re.findall(r"^ *>>> .+$", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    shown = {line for text in modules.values() for line in text.splitlines() if line.startswith(">>> ")}
    assert sessions == shown


def test_no_program_in_a_docstring_is_taken_for_a_file(modules):
    blocks = [block for text in modules.values() for block in parse(text).blocks if block.kind == "file"]
    assert {block.language for block in blocks} <= {"text"}  # formulas


def test_every_command_has_examples_with_an_entry():
    assert {name.removeprefix("mmeval").strip() for name, _, _ in commands()} == set(EXAMPLES)
    assert faults() == []


def test_a_command_without_an_entry(monkeypatch):
    monkeypatch.setitem(EXAMPLES, "ls planets", ("mmeval ls planets",))
    assert faults() == [
        "the examples of `mmeval ls planets` have no entry. Add 'ls planets' to NEEDS in "
        "tools/site/generated/command_examples.py, with the setups they need"
    ]


def test_an_entry_about_an_example_that_is_gone(monkeypatch):
    needs = Needs(not_run={"mmeval view": "serves pages"})
    monkeypatch.setitem(command_examples.NEEDS, "view", needs)
    assert faults() == [
        "tools/site/generated/command_examples.py names `mmeval view`, which is not an example of `mmeval view`. "
        "Correct or remove it"
    ]
