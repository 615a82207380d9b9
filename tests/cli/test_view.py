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


def served_by(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "view", str(folder), "--port", "0", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        ((), ""),
        (("--host", "0.0.0.0"), "can read the runs and their media, and write labels, tags and notes"),
        (("--host", "0.0.0.0", "--only-labels"), "can read the labelled samples and write labels"),
    ],
)
def test_labels_are_collected_and_the_terminal_says_by_whom(folder: Path, tmp_path: Path, arguments, warning: str):
    file = tmp_path / "labels.jsonl"
    file.write_bytes(b'{"id": "1", "label": 1, "run": "one"}\n{"id": "1", "la')
    server = served_by(folder, "--label", str(file), "--scale", "1-5", "--annotator", "ann", *arguments)
    assert server.stdout is not None
    try:
        address = re.search(r"http://[\d.:]+/", server.stdout.readline())
        assert address is not None
        line = server.stdout.readline()
        assert line == f"labels are appended to {file}: {address[0]}label\n"
        with urlopen(f"{address[0]}label") as answer:
            assert b"Start as ann" in answer.read()
    finally:
        server.terminate()
        _, errors = server.communicate()
    assert (warning in errors) if warning else "anyone" not in errors
    assert "the last line was incomplete (15 bytes), and is now in" in errors
    assert file.read_bytes().endswith(b"}\n")
    assert (tmp_path / "labels.jsonl.partial").read_bytes() == b'{"id": "1", "la\n'


@pytest.mark.parametrize(
    "arguments",
    [
        ("--scale", "1-5"),
        ("--pairwise",),
        ("--label-run", "one"),
        ("--seed", "0"),
        ("--only-labels",),
        ("--annotator", "ann"),
        ("--label", "labels.jsonl", "--annotator", "a\x1b"),
        ("--label", "labels.jsonl", "--labels", "0"),
    ],
)
def test_options_of_labelling_are_checked(folder: Path, tmp_path: Path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["view", str(folder), *arguments])
    assert result.exit_code == 2, result.output
    assert arguments[-2 if len(arguments) > 1 else 0].removesuffix("s") in result.output
    assert not (tmp_path / "labels.jsonl").exists()


def test_help_shows_the_options():
    output = CliRunner().invoke(cli, ["view", "--help-all"]).output
    for option in ("[DIR]", "--port", "--host", "--open", "--label", "--pairwise", "--scale", "--plan"):
        assert option in output
