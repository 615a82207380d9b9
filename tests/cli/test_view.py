"""`mmeval view` as a command: its address, its requirements, its errors."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from multimodal_eval import evaluate
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.core.sample import Sample


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    evaluate(
        [Sample("1", references=["a"], generated_answer="a")], metrics=["rouge_l"], output=tmp_path / "runs" / "one"
    )
    return tmp_path / "runs"


def test_it_prints_its_address_and_answers_there(folder: Path):
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "view", str(folder), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address is not None, line
        with urlopen(address[0]) as answer:
            assert b'href="/run/one"' in answer.read()
            assert "server" not in {name.lower() for name in answer.headers}
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def test_a_port_that_is_taken_is_an_error(folder: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(cli, ["view", str(folder), "--port", str(port)])
    assert isinstance(result.exception, ConfigError)
    assert f"cannot listen on 127.0.0.1, port {port}: " in str(result.exception)


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "duckdb"])
def test_a_missing_package_is_named_with_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str):
    monkeypatch.setitem(sys.modules, package, None)
    result = CliRunner().invoke(cli, ["view", str(folder)])
    assert isinstance(result.exception, UnavailableError)
    assert f"needs the package {package!r}" in str(result.exception)
    assert "pip install 'multimodal-eval[view]'" in str(result.exception)


def test_a_missing_folder_is_wrong_usage(tmp_path: Path):
    result = CliRunner().invoke(cli, ["view", str(tmp_path / "nothing")])
    assert result.exit_code == 2
    assert "does not exist" in result.output


def test_help_shows_the_options():
    output = CliRunner().invoke(cli, ["view", "--help"]).output
    for option in ("[DIR]", "--port", "--host", "--open"):
        assert option in output
