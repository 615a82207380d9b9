"""docs/generation.md: commands that need no server run as printed, the others are valid.

`python -m tests.docs.test_generation_guide` updates the output.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from multimodal_eval.cli.main import cli
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.generate.outcomes import FAILURES
from multimodal_eval.generate.registry import providers
from multimodal_eval.run.config import load_config
from tests.docs.transcripts import commands, run, with_new_output, write_files

GUIDE = Path(__file__).parents[2] / "docs" / "generation.md"
TEXT = GUIDE.read_text(encoding="utf-8")
UPDATE = "python -m tests.docs.test_generation_guide"
PRICES = re.compile(r"`prices.yaml`:\n\n```yaml\n(.*?)```", re.DOTALL)
CONFIG = re.compile(r"`--config`:\n\n```yaml\n(.*?)```", re.DOTALL)
VERSION = re.compile(r"(?<=pillow-)[0-9.]+")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def write_all(folder: Path) -> None:
    write_files(folder, TEXT)
    (prices,) = PRICES.findall(TEXT)
    (folder / "prices.yaml").write_text(prices)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    write_all(tmp_path)
    return tmp_path


def is_local(command: str) -> bool:
    return "script:" in command or "--batch-out" in command or command.startswith("score")


def test_local_commands_print_what_is_pasted(folder):
    for command, printed in commands(TEXT):
        if is_local(command):
            output = run(command, folder)
            assert not re.search("^error:|^Traceback", output, re.MULTILINE), output
            assert printed is None or VERSION.sub("", printed) == VERSION.sub("", output), f"run: {UPDATE}"


def test_there_are_commands_for_every_kind_of_model():
    named = {command.partition("--model ")[2].partition(":")[0] for command, _ in commands(TEXT)} - {""}
    assert named <= {*providers(), "ollama"}
    assert {"vllm", "sglang", "llamacpp", "ollama", "openai", "anthropic", "gemini", "transformers", "llama"} <= named


def test_every_command_is_valid(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "results.jsonl").touch()  # comes from the batch API
    for command, _ in commands(TEXT):
        name, *arguments = shlex.split(command)
        cli.commands[name].make_context(name, arguments)


def test_every_status_is_explained():
    for status in FAILURES:
        assert f"| `{status}` |" in TEXT


def test_the_configuration_is_valid():
    (example,) = CONFIG.findall(TEXT)
    assert isinstance(load_config(yaml.safe_load(example)).generation, GenerationConfig)


def test_the_python_examples_run(folder, capsys):
    first, second = PYTHON.findall(TEXT)
    with chdir(folder):
        space: dict[str, object] = {}
        exec(first, space)
        assert eval("answers.generation.statuses", space) == {"ok": 2, "rejected": 1}
        assert eval("run['exact_match']['value']", space) == 0.5
        exec(second, space)
        assert eval("run['exact_match']['n_scored']", space) == 3


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, patch.dict(os.environ, {"MMEVAL_CACHE": "off"}):
        write_all(Path(scratch))
        GUIDE.write_text(
            with_new_output(TEXT, Path(scratch), lambda command, at: run(command, at) if is_local(command) else ""),
            encoding="utf-8",
        )
