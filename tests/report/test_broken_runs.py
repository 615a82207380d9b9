"""Damaged run folders, or ones copied while they were written, cause an error message and no crash."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner

from multimodal_eval import evaluate
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.sample import Sample

pytest.importorskip("duckdb")
pytest.importorskip("starlette")
from tests.report.viewer.viewed import client  # needs the packages checked above


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "runs"
    samples = [Sample(str(number), references=["a cat"], generated_answer="a cat sat") for number in range(4)]
    evaluate(samples, output=folder / "good", metrics=["rouge_l"])
    return folder


def _half(file):
    file.write_bytes(file.read_bytes()[:100])


DAMAGE = {
    "half of results.json": lambda run: _half(run / "results.json"),
    "NaN in results.json": lambda run: (run / "results.json").write_text('{"n": NaN}'),
    "a list as results.json": lambda run: (run / "results.json").write_text("[]"),
    "an empty results.json": lambda run: (run / "results.json").write_text("{}"),
    "half of the scores": lambda run: _half(run / "scores" / "part-00000.parquet"),
    "half of the samples": lambda run: _half(run / "samples" / "part-00000.parquet"),
    "half of classification.json": lambda run: (run / "classification.json").write_text('{"format"'),
}


@pytest.fixture(params=DAMAGE)
def damaged(request, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "runs")
    shutil.copytree(whole / "good", tmp_path / "runs" / "bad")
    DAMAGE[request.param](tmp_path / "runs" / "bad")
    return tmp_path / "runs"


def test_the_report_names_the_damaged_file(damaged):
    result = CliRunner().invoke(cli, ["report", str(damaged / "bad"), "-o", str(damaged / "page.html")])
    message = str(result.exception)
    assert isinstance(result.exception, RunFolderError)  # the command prints it without a traceback
    assert "bad/" in message
    assert "cannot be read" in message or "lacks" in message
    assert not (damaged / "page.html").exists()


def test_the_viewer_serves_every_page_of_a_damaged_run(damaged):
    browser = client(damaged)
    for page in (
        "/",
        "/run/bad",
        "/samples/bad",
        "/sample/bad?row=0",
        "/export/run.csv/bad",
        "/export/samples.csv/bad",
    ):
        assert browser.get(page).status_code in (200, 404, 409), page
    for page in ("/compare/numbers?run=good&run=bad", "/pairs?run=good&run=bad"):
        assert browser.get(page).status_code in (200, 400, 409), page
