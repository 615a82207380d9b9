"""The excerpts in docs/dialogue.md are real. `python -m tests.docs.test_dialogue_guide` updates them."""

from __future__ import annotations

import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.docs.page_commands import run, write_files

GUIDE = Path(__file__).parents[2] / "docs" / "dialogue.md"
EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))
SHOWN = "ia2t-en-1"
# The files of the JSON blocks of the guide, in their order. The last two blocks are files of their own.
EXCERPTS = ["questions.json", "gold.json", "submissions/alba/output.json", "submissions/alba/ppl_output.json"]
JSON = re.compile(r"(?<=```json\n).*?(?=```)", re.DOTALL)


def prepare(folder: Path, guide: str) -> None:
    """The example's files, and the files shown in the guide."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    write_files(folder, guide)


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


def test_the_rule_of_the_guide_works_in_a_leaderboard(guide, tmp_path):
    prepare(tmp_path, guide)
    output = run("leaderboard gold.json submissions -o board --rule bits --plugin bits.py --workers 2", tmp_path)
    assert re.search(r"^1 +alba", output, re.MULTILINE)
    rule = json.loads((tmp_path / "board" / "alba" / "run.json").read_text())["signatures"]["hidden_metric"]["text"]
    assert re.search(r"\|rule:bits:[0-9a-f]{8}\|", rule)


if __name__ == "__main__":
    GUIDE.write_text(with_excerpts(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
