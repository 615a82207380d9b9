"""docs/judges.md: all commands are valid, also those that need a hosted model; tables and values are right."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from multimodal_eval import Sample, load_run
from multimodal_eval.cli.main import cli
from multimodal_eval.core.judge_config import JudgeConfig, JudgeForm
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.judges.form import UnreadableVerdictError
from multimodal_eval.judges.forms.by_name import form_of, judges
from multimodal_eval.judges.prompt_texts import VARIABLES
from multimodal_eval.run.judging import read_judge
from tests.docs.page_commands import commands, run, write_files

GUIDE = Path(__file__).parents[2] / "docs" / "judges.md"
TEXT = GUIDE.read_text(encoding="utf-8")


def section(heading: str) -> str:
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_cells(heading: str) -> list[str]:
    """The names in the first cells of the table of a section."""
    rows = re.findall(r"^\| (`.*?) \|", section(heading), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    write_files(tmp_path, TEXT)
    return tmp_path


def is_local(command: str) -> bool:
    return "openai:" not in command


def test_the_weights_of_the_criteria(folder):
    for command in commands(TEXT):
        if is_local(command):
            run(command, folder)
    # accuracy 5, 1, 5, 5 and detail 4, 5, 5, 3 are .75 * (1, 0, 1, 1) + .25 * (.75, 1, 1, .5), then halves of both
    judged, equal = (load_run(folder / "runs" / name)["quality"]["value"] for name in ("judged", "equal"))
    assert judged == pytest.approx(0.75 * 3 / 4 + 0.25 * 3.25 / 4)
    assert equal == pytest.approx(0.5 * 3 / 4 + 0.5 * 3.25 / 4)


def test_every_command_is_valid(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "runs" / "judged").mkdir(parents=True)
    for command in commands(TEXT):
        name, *arguments = shlex.split(command)
        cli.commands[name].make_context(name, arguments)


def test_the_page_lists_every_judge_form_and_setting():
    assert first_cells("Judges of the package") == [f"judge:{name}" for name in judges()]
    rows = re.findall(r"^\| `judge:(\w+)` \| (\w+) \|", section("Judges of the package"), re.MULTILINE)
    assert {name: read_judge(name).form for name in judges()} == dict(rows)
    assert sorted(first_cells("Forms")) == sorted(get_args(JudgeForm))
    assert set(first_cells("Settings")) - {"model"} == set(JudgeConfig.__struct_fields__) - {"template"}
    assert set(first_cells("Your own prompt")) | {"answers"} == set(VARIABLES)


def test_the_template_on_the_page_works():
    block = section("Your own prompt").partition("`mine.md`:\n\n")[2].partition("\n\n|")[0]
    template = "\n".join(line.removeprefix("    ") for line in block.split("\n"))
    config = JudgeConfig(name="mine", prompt="mine.md", template=template)
    sample = Sample("1", question="q", references=["r"], generated_answer="a", image="a.png")
    (draft,) = form_of(config).drafts(sample, 0)
    assert draft.parts[-1].endswith('from 1 to 5?\nReply with JSON only: {"score": …}')


def is_read(form: JudgeForm, reply: str) -> bool:
    try:
        form_of(JudgeConfig(form=form)).read(Sample("1"), Answer(reply), 0)
    except UnreadableVerdictError:
        return False
    return True


def test_the_table_of_replies_is_right():
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", section("What counts as a verdict"), re.MULTILINE)
    replies = {meaning: re.findall(r"`([^`]+)`", row) for row, meaning in rows if "`" in row}
    assert all(is_read("scale", reply) for reply in replies["4"])
    assert all(is_read("binary", reply) for reply in replies["yes, no"])
    assert not any(is_read("scale", reply) for reply in replies["unreadable"])
    both = replies["the verdict, if the form has one field"]
    assert all(is_read("binary" if "yes" in reply else "scale", reply) for reply in both)
