"""Outputs on generated pages."""

from __future__ import annotations

from tools.site.generated.command_examples import FENCE
from tools.site.generated.outputs import executed, has_examples, readable

EMPTY = f"    mmeval ls {{}}\n\n{FENCE}\n{FENCE}\n"


def test_an_empty_output_is_filled_and_not_stale():
    outcome = executed("page", EMPTY.format("prompts"))
    assert outcome.is_good
    assert outcome.executed == 1
    assert "Its text: mmeval card PROMPT" in outcome.text


def test_a_failure_is_a_problem():
    (problem,) = executed("page", EMPTY.format("planets")).problems
    assert problem.startswith("page:1: `mmeval ls planets` has exit status 2, not 0:")


def test_an_output_in_a_docstring_can_be_stale():
    (stale,) = executed("page", "```pycon\n>>> 1 + 1\n3\n```\n").stale
    assert stale.startswith("page:2: the output is stale")


def test_indented_code_has_to_be_executed():
    assert has_examples("text\n\n    x = f(1)\n")
    assert not has_examples("text\n\n```text\nx = f(1)\n```\n")


def test_long_outputs_are_cut():
    lines = [f"line {number}" for number in range(100)]
    page = f"    mmeval a\n\n{FENCE}\n" + "\n".join(lines[:40]) + f"\n{FENCE}\n"
    assert readable(page) == page
    cut = readable(page.replace("line 39\n", "\n".join(lines[39:]) + "\n"))
    shown = "\n".join(lines[:30])
    assert cut == f'    mmeval a\n\n{FENCE}\n{shown}\n{FENCE}\n\n<p class="cut">… and 70 more lines.</p>\n'


def test_an_output_without_lines_is_left_out():
    assert readable(f"    mmeval a\n\n{FENCE}\n{FENCE}\n\ntext\n") == "    mmeval a\n\n\ntext\n"
