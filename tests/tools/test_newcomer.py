"""What a newcomer meets after the installation: every message says what to do next."""

from __future__ import annotations

import json
import sys

import pytest

from tools.newcomer import BEGINNER, LIMIT, Newcomer, NoHelpError, Step, as_page, commands_in, main, table


@pytest.mark.slow
def test_messages_lead_a_beginner_to_a_report(capsys, tmp_path):
    assert main(["--python", sys.executable, "--keep", str(tmp_path / "mine"), BEGINNER]) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert [line.split("  ")[0] for line in printed.splitlines() if " s " in line] == [
        "score captions.jsonl --m",
        "lint runs/first",
        "validate captions.jsonl",
        "demo --files demo",
        "score demo/captioning.js",
        "score demo/captioning.js",
        "compare runs/captioning.",
        "report runs/captioning.a",
        "card cider_d",
        "lint runs/captioning.bor",
        "misspelled metric",
        "score, attempt 1",
        "score, attempt 2",
        "open the report",
        "score again",
        "validate, attempt 1",
        "validate, attempt 2",
        "total",
    ]
    assert "says: --map generated_answer=answer" in printed
    assert (tmp_path / "mine" / "beginner" / "runs" / "mine" / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("role", ["notebook", "CI"])  # `.ci/long` plays all of them
def test_a_reader_of_readme_and_one_guide_is_not_stopped(role, capsys):
    assert main(["--python", sys.executable, role]) == 0, capsys.readouterr().out
    assert f"succeeded: {role}" in capsys.readouterr().out


def program(tmp_path, code):
    """A program in the place of mmeval."""
    file = tmp_path / "program.py"
    file.write_text(code)
    return Newcomer(tmp_path, (sys.executable, str(file)))


def test_a_message_without_help_is_a_failure(tmp_path):
    silent = program(tmp_path, "print('0 / 3')")
    with pytest.raises(NoHelpError, match="exit code 0 instead of 1"):
        silent.score_own_file()
    vague = program(tmp_path, "import sys; sys.exit('rouge_l: wrong')")
    with pytest.raises(NoHelpError, match="the output lacks \"'rouge_l'\""):
        vague.score_own_file()
    columns = program(tmp_path, "import sys; sys.exit(\"error: 'rouge_l' 'answer' add: --map id=COLUMN\")")
    with pytest.raises(NoHelpError, match="does not say which option to add"):
        columns.score_own_file()
    assert [step.title for step in columns.steps] == ["misspelled metric", "score, attempt 1"]


def test_a_suggestion_that_fails_is_a_failure(tmp_path):
    fails = program(tmp_path, "import sys; sys.exit(sys.argv[1] == 'score' and 'mmeval view runs' or None)")
    fails.suggestions = ["mmeval score a.jsonl --metrics rouge_l"]
    with pytest.raises(NoHelpError, match=r"score a\.jsonl"):
        fails.follow_suggestions()
    message = (
        "Next: `mmeval lint runs/a`, or mmeval run DATA --model PROVIDER:NAME; mmeval card cider_d, 'mmeval ls -h' or"
    )
    assert commands_in(message) == ["mmeval lint runs/a", "mmeval card cider_d", "mmeval ls -h"]
    assert commands_in("mmeval score a --metrics b,c, then") == ["mmeval score a --metrics b,c"]


def test_a_table_that_is_wider_than_the_terminal_is_a_failure(tmp_path):
    wide = program(tmp_path, "print('─' * 81)")
    wide.suggestions = ["mmeval ls runs"]
    with pytest.raises(NoHelpError, match="a table has more than 80 columns"):
        wide.follow_suggestions()


def test_a_guide_whose_command_or_code_fails_is_a_failure(tmp_path):
    newcomer = Newcomer(tmp_path, (sys.executable,))
    guide = tmp_path / "guide.md"
    guide.write_text("<!-- exit: 3 -->\n```console\n$ exit 3\n```\n\n```python\nn = 1\n```\n\n```python\nn / 0\n```\n")
    with pytest.raises(NoHelpError, match=r"guide\.md:11:\n(?s:.)*ZeroDivisionError"):
        newcomer.read_guide(guide)
    assert [step.got for step in newcomer.steps] == ["exit code 3", "Python"]
    guide.write_text("```console\n$ exit 3\n```\n")
    with pytest.raises(NoHelpError, match="exit code 3 instead of 0"):
        newcomer.read_guide(guide)


def test_the_last_result_of_a_cell_must_show_itself():
    def cell(*lines: str) -> dict[str, object]:
        return {"cell_type": "code", "source": list(lines)}

    notebook = json.dumps({"cells": [cell("a = 1\n", "a"), {"cell_type": "markdown", "source": ["x"]}, cell("b = 2")]})
    assert as_page(notebook) == "```python\na = 1\nprint(len((a)._repr_html_()))\n```\n\n```python\nb = 2\n```\n\n"


def test_more_than_the_limit_is_a_failure(monkeypatch, capsys):
    def score_own_file(newcomer):
        newcomer.steps += [Step("install", LIMIT - 1.0, ""), Step("score", 2.0, "")]

    monkeypatch.setattr(Newcomer, "score_own_file", score_own_file)
    for method in ("read_readme", "follow_suggestions", "was_led_to"):
        monkeypatch.setattr(Newcomer, method, lambda *given: None)
    assert main(["--python", sys.executable, BEGINNER]) == 1
    assert f"more than {LIMIT} s" in capsys.readouterr().out


def test_the_table_adds_the_seconds():
    lines = table([Step("clone", 1.25, "exit code 0"), Step("install", 2.5, "exit code 0")]).splitlines()
    assert [line.split()[1] for line in lines] == ["1.2", "2.5", "3.8"]
    assert all(len(line) <= 80 for line in lines)
