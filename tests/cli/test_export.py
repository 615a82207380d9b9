"""`mmeval export`."""

from __future__ import annotations

import pytest
import yaml

from multimodal_eval.interop.export.registry import FORMATS
from tests.cli.command_line import mmeval
from tests.interop.export.runs import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("export") / "run")


def test_text_is_printed_and_notes_are_apart(run):
    finished = mmeval("export", str(run.path), "--to", "model-index")
    assert yaml.safe_load(finished.stdout)["model-index"][0]["name"] == "run"
    assert finished.stderr.startswith("note: the run does not say who made its model: unnamed/run.")


def test_files_are_named(run, tmp_path):
    path = tmp_path / "scores.csv"
    command = ["export", str(run.path), "--to", "csv", "-o", str(path)]
    finished = mmeval(*command, "--set", "rows=metrics", "--metrics", "wer")
    assert finished.stdout == f"written: {path}\n"
    assert path.read_text().splitlines()[1].startswith("run,wer,")
    again = mmeval(*command, code=1)
    assert "already exists. Replace it with --overwrite" in again.stderr


def test_all_formats_are_listed(run):
    listed = mmeval("export", "--list-formats").stdout
    for name in FORMATS:
        assert f"{name}: " in listed
    assert "--set rows=…  one row per sample, or one per metric (default: samples)" in listed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--to", "cvs"), 2, "no export format is named 'cvs'. Did you mean 'csv'?"),
        (("--to", "csv", "--set", "rows"), 2, "'rows' must be written NAME=VALUE"),
        (("--to", "csv", "--set", "rows=[1"), 2, "--set rows: '[1' is not a YAML value"),
        (("--to", "csv", "--metrics", ","), 2, "--metrics names no metric"),
        (("--to", "csv", "--config", "x.yaml", "-o", "x.csv"), 1, "the format csv has no option 'config'"),
        ((), 2, "Missing option '--to'"),
    ],
)
def test_wrong_usage(run, arguments, code, message):
    assert message in mmeval("export", str(run.path), *arguments, code=code).stderr
