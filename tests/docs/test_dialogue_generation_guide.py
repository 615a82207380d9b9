"""The commands in docs/dialogue-generation.md work, with a model that repeats the question."""

from __future__ import annotations

import json
import re
import shutil
from importlib.resources import files
from math import log
from pathlib import Path

import pytest

from multimodal_eval.generate import registry
from multimodal_eval.generate.protocol import Answer
from tests.docs.page_commands import commands, run

GUIDE = Path(__file__).parents[2] / "docs" / "dialogue-generation.md"
EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))


class Repeating:
    """Every token has the probability 1/2."""

    label = "repeating"

    async def answer(self, request):
        return Answer(f"You asked: {request.prompt}", logprobs=[-log(2)] * 3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(registry, "find_generator", lambda config: Repeating())
    return tmp_path


def test_the_commands_work(folder):
    printed = [run(command + " --no-cache" * ("--model" in command), folder) for command in commands(GUIDE.read_text())]
    assert len(printed) == 3
    assert "56 replies of 24 dialogues: submission/output.json, submission/ppl_output.json" in printed[0]
    scored = [re.search(r"^integral score .* ([\d.]+)$", text, re.MULTILINE) for text in printed[1:]]
    assert scored[0][1] == scored[1][1]
    files_named = re.findall(r"^\| `([^`]+)` \|", GUIDE.read_text(), re.MULTILINE)
    assert [name for name in files_named if not (folder / "both" / name).exists()] == []
    assert json.loads((folder / "both" / "ppl_output.json").read_text())["t2t-en-2"] == [pytest.approx(2)] * 2
