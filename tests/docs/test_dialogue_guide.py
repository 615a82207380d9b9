"""docs/dialogue.md is real: its transcripts, its excerpts and its code.

`python -m tests.docs.test_dialogue_guide` pastes transcripts and excerpts anew.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from tests.docs.transcripts import commands, pasted_anew, run

GUIDE = Path(__file__).parents[2] / "docs" / "dialogue.md"
EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))
SHOWN = "ia2t-en-1"
# The files that the JSON blocks of the guide are from, in their order; the last two are made of them.
EXCERPTS = ["questions.json", "gold.json", "submissions/alba/output.json", "submissions/alba/ppl_output.json"]
REFUSED = ["submissions/caecias/output.json", "submissions/caecias/ppl_output.json"]
JSON, YAML, PYTHON = (re.compile(rf"(?<=```{name}\n).*?(?=```)", re.DOTALL) for name in ("json", "yaml", "python"))
SAID = re.compile(r"^(\S.*?)  # (-?\d+(?:\.\d+)?)", re.MULTILINE)  # an expression, and what it gives


def prepared(folder: Path, guide: str) -> None:
    """The example's files, and those that the guide has one write."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    for name, block in zip(REFUSED, JSON.findall(guide)[len(EXCERPTS) :], strict=True):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(block, encoding="utf-8")
    (folder / "contest.yaml").write_text(YAML.findall(guide)[0], encoding="utf-8")
    (folder / "bits.py").write_text(PYTHON.findall(guide)[1], encoding="utf-8")


def excerpt(name: str) -> str:
    """One dialogue of a file, an item a line."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    own = json.loads((EXAMPLE / name).read_text(encoding="utf-8"))[SHOWN]
    if isinstance(own, dict):
        fields = ",\n  ".join(f"{text(key)}: {text(value)}" for key, value in own.items())
        return f"{{{text(SHOWN)}: {{\n  {fields}\n}}}}\n"
    items = ",\n  ".join(map(text, own))
    return f"{{{text(SHOWN)}: [\n  {items}\n]}}\n"


def with_excerpts(guide: str) -> str:
    fresh = iter(map(excerpt, EXCERPTS))
    return JSON.sub(lambda block: next(fresh, block[0]), guide)


@pytest.fixture(scope="module")
def guide():
    return GUIDE.read_text(encoding="utf-8")


def test_the_excerpts_are_the_files(guide):
    assert guide == with_excerpts(guide), "run: python -m tests.docs.test_dialogue_guide"


def test_the_commands_run_and_print_what_is_pasted(guide, tmp_path):
    prepared(tmp_path, guide)
    pasted = [printed for _, printed in commands(guide) if printed is not None]
    assert len(pasted) == 4
    for command, printed in commands(guide):
        told = run(command, tmp_path)
        if printed is None:
            assert not re.search("^error:|^Traceback", told, re.MULTILINE), told
        else:
            for old, new in zip_longest(printed.splitlines(), told.splitlines()):
                assert old == new, "run: python -m tests.docs.test_dialogue_guide"


def test_the_rule_of_the_guide_serves_a_leaderboard_too(guide, tmp_path):
    prepared(tmp_path, guide)
    told = run("leaderboard gold.json submissions -o board --rule bits --plugin bits.py --workers 2", tmp_path)
    assert "│ 1    │ alba" in told
    rule = json.loads((tmp_path / "board" / "alba" / "run.json").read_text())["signatures"]["hidden_metric"]["text"]
    assert re.search(r"\|rule:bits:[0-9a-f]{8}\|", rule)


@pytest.mark.parametrize("number", [0, 2])
def test_the_python_of_the_guide_gives_what_it_says(guide, number):
    code = PYTHON.findall(guide)[number]
    space: dict[str, Any] = {}
    exec(code, space)
    said = [(expression, float(value)) for expression, value in SAID.findall(code) if " = " not in expression]
    assert len(said) >= 4
    for expression, value in said:
        assert eval(expression, space) == pytest.approx(value, abs=5e-5), expression


if __name__ == "__main__":
    text = with_excerpts(GUIDE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        prepared(Path(scratch), text)
        GUIDE.write_text(pasted_anew(text, Path(scratch)), encoding="utf-8")
