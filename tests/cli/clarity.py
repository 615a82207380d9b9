"""CLARITY's test data for tests of `mmeval clarity`."""

from __future__ import annotations

import csv
import json
import shutil

from click.testing import CliRunner

from multimodal_eval.cli.main import cli
from multimodal_eval.contests.clarity.labels import normalize_label
from tests.contests.clarity.make_data import ANNOTATORS, FOLDER


def copy_data(tmp_path, monkeypatch):
    """Copy the files into a folder and make it the current one."""
    monkeypatch.chdir(tmp_path)
    for file in FOLDER.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


def rows(name):
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


TEST, DEV = rows("test.csv"), rows("dev.csv")
OPINIONS = [[normalize_label(row[name]) for name in ANNOTATORS] for row in TEST]


def scored(*arguments):
    done = CliRunner().invoke(cli, ["clarity", *arguments, "--format", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def predicted(name, column="evasion_pred"):
    return [row[column] for row in rows(name)]
