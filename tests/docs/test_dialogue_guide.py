"""The transcripts, excerpts and code in docs/dialogue.md are real.

`python -m tests.docs.test_dialogue_guide` updates transcripts and excerpts.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.docs.transcripts import assert_outputs_are_pasted, commands, run, with_new_output

GUIDE = Path(__file__).parents[2] / "docs" / "dialogue.md"
EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))
SHOWN = "ia2t-en-1"
# The files of the JSON blocks of the guide, in their order. The last two blocks are written to files.
EXCERPTS = ["questions.json", "gold.json", "submissions/alba/output.json", "submissions/alba/ppl_output.json"]
REFUSED = ["submissions/caecias/output.json", "submissions/caecias/ppl_output.json"]
JSON, YAML, PYTHON = (re.compile(rf"(?<=```{name}\n).*?(?=```)", re.DOTALL) for name in ("json", "yaml", "python"))
EXPRESSION = re.compile(r"^(\S.*?)  # (-?\d+(?:\.\d+)?)", re.MULTILINE)  # an expression and its value


def prepare(folder: Path, guide: str) -> None:
    """The example's files, and the files shown in the guide."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    for name, block in zip(REFUSED, JSON.findall(guide)[len(EXCERPTS) :], strict=True):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(block, encoding="utf-8")
    (folder / "contest.yaml").write_text(YAML.findall(guide)[0], encoding="utf-8")
    (folder / "bits.py").write_text(PYTHON.findall(guide)[1], encoding="utf-8")


def excerpt(name: str) -> str:
    """One dialogue of a file, one item per line."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    dialogue = json.loads((EXAMPLE / name).read_text(encoding="utf-8"))[SHOWN]
    if isinstance(dialogue, dict):
        fields = ",\n  ".join(f"{text(key)}: {text(value)}" for key, value in dialogue.items())
        return f"{{{text(SHOWN)}: {{\n  {fields}\n}}}}\n"
    items = ",\n  ".join(map(text, dialogue))
    return f"{{{text(SHOWN)}: [\n  {items}\n]}}\n"


def with_excerpts(guide: str) -> str:
    fresh = iter(map(excerpt, EXCERPTS))
    return JSON.sub(lambda block: next(fresh, block[0]), guide)


@pytest.fixture(scope="module")
def guide():
    return GUIDE.read_text(encoding="utf-8")


def test_the_excerpts_match_the_files(guide):
    assert guide == with_excerpts(guide), "run: python -m tests.docs.test_dialogue_guide"


def test_the_commands_print_the_pasted_output(guide, tmp_path):
    prepare(tmp_path, guide)
    pasted = [printed for _, printed in commands(guide) if printed is not None]
    assert len(pasted) == 4
    assert_outputs_are_pasted(guide, tmp_path, "python -m tests.docs.test_dialogue_guide")


def test_the_rule_of_the_guide_works_in_a_leaderboard(guide, tmp_path):
    prepare(tmp_path, guide)
    output = run("leaderboard gold.json submissions -o board --rule bits --plugin bits.py --workers 2", tmp_path)
    assert "│ 1     │ alba" in output
    rule = json.loads((tmp_path / "board" / "alba" / "run.json").read_text())["signatures"]["hidden_metric"]["text"]
    assert re.search(r"\|rule:bits:[0-9a-f]{8}\|", rule)


@pytest.mark.parametrize("number", [0, 2])
def test_the_python_of_the_guide_has_the_stated_values(guide, number):
    code = PYTHON.findall(guide)[number]
    space: dict[str, Any] = {}
    exec(code, space)
    values = [(expression, float(value)) for expression, value in EXPRESSION.findall(code) if " = " not in expression]
    assert len(values) >= 4
    for expression, value in values:
        assert eval(expression, space) == pytest.approx(value, abs=5e-5), expression


if __name__ == "__main__":
    text = with_excerpts(GUIDE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        prepare(Path(scratch), text)
        GUIDE.write_text(with_new_output(text, Path(scratch)), encoding="utf-8")
