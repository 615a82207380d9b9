"""docs/generation.md: all commands are valid, also those that need a hosted model, and the tables are complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from multimodal_eval.cli.main import cli
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.generate.protocol import FAILURES
from multimodal_eval.generate.registry import providers
from multimodal_eval.run.config import load_config
from tests.docs.page_commands import commands, write_files

GUIDE = Path(__file__).parents[2] / "docs" / "generation.md"
TEXT = GUIDE.read_text(encoding="utf-8")
CONFIG = re.compile(r"`--config`:\n\n```yaml\n(.*?)```", re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    write_files(tmp_path, TEXT)
    return tmp_path


def test_there_are_commands_for_every_kind_of_model():
    models = [command.partition("--model ")[2].split()[:1] for command in commands(TEXT)]
    named = {model.partition(":")[0] for words in models for model in words if not model.endswith(".yaml")}
    assert named <= {*providers(), "ollama"}
    assert {"vllm", "sglang", "llamacpp", "ollama", "openai", "anthropic", "gemini", "transformers", "llama"} <= named


def test_every_command_is_valid(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "results.jsonl").touch()  # comes from the batch API
    for command in commands(TEXT):
        name, *arguments = shlex.split(command)
        cli.commands[name].make_context(name, arguments)


def test_every_status_is_explained():
    for status in FAILURES:
        assert f"| `{status}` |" in TEXT


def test_the_configuration_is_valid():
    (example,) = CONFIG.findall(TEXT)
    assert isinstance(load_config(yaml.safe_load(example)).generation, GenerationConfig)
