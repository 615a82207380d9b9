"""The page of a run: headline, histograms, slices as a heat map, grouped warnings, and the report."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from multimodal_eval.core.figure import Figure
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.report.build import report_html
from multimodal_eval.report.viewer import run_pages
from multimodal_eval.report.viewer.drawings import heat_map
from multimodal_eval.report.viewer.guard import POLICY
from tests.report.viewer.viewed import client, make_runs
from tests.run_info import run_info


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("run-page") / "runs"
    make_runs(runs)
    return runs


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


def test_the_headline_leads_as_the_run_declares_it(folder: Path, tmp_path: Path):
    shutil.copytree(folder / "alba", tmp_path / "runs" / "alba")
    run = RunFolder(tmp_path / "runs" / "alba")
    results = run.read_results()
    run.write_results(msgspec.structs.replace(results, headline="cider_d"))
    text = client(tmp_path / "runs").get("/run/alba").text
    lead = re.search(r'<p class="lead-score">.*?</p>', text, re.DOTALL)
    assert lead is not None
    entry = results.metrics["cider_d"]
    assert "CIDEr-D" in lead[0]
    assert f"<strong>{entry.value:.4f}</strong>" in lead[0]
    assert f"{entry.low:.4f} … {entry.high:.4f}" in lead[0]


def test_every_metric_has_a_histogram(browser: TestClient):
    text = browser.get("/run/alba").text
    drawn = re.findall(r'aria-label="Histogram of (\w+): (\d+) samples', text)
    assert drawn == [("bleu", "118"), ("rouge_l", "118"), ("cider_d", "118")]
    assert re.findall(r"Histogram of (\w+):", browser.get("/histograms/alba").text) == ["bleu", "rouge_l", "cider_d"]


def test_a_large_run_requests_its_histograms(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("multimodal_eval.report.viewer.run_pages.AT_ONCE", 10)
    text = browser.get("/run/alba").text
    assert 'hx-get="/histograms/alba"' in text
    assert '<a href="/histograms/alba">' in text  # without scripts
    assert "Histogram of" not in text


def test_slices_are_a_table_with_values_and_intervals(browser: TestClient, folder: Path):
    text = browser.get("/run/alba").text
    stored = RunFolder(folder / "alba").read_results().slices["language"]
    for part in stored.values():
        for entry in part.metrics.values():
            assert f"{entry.value:.4f}" in text
            assert f"{entry.low:.4f} … {entry.high:.4f}" in text
    assert 'href="/samples/alba?meta=language&amp;value=en"' in text
    assert 'hx-get="/slices/alba"' in text
    more = browser.get("/slices/alba").text
    assert re.findall(r"By <bdi>(\w+)</bdi>", more) == ["language", "place"]
    again = browser.get("/run/alba").text  # they are known now
    assert "By <bdi>place</bdi>" in again
    assert "/slices/" not in again


def test_slices_of_a_very_large_run_are_not_computed(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("multimodal_eval.report.viewer.run_pages.MOST_SLICED", 10)
    assert browser.get("/slices/boreas").status_code == 409
    assert "/slices/" not in browser.get("/run/boreas").text


def entry(value: float | None, stderr: float | None = 0.1) -> Figure:
    low, high = (None, None) if value is None else (value - 0.2, value + 0.2)
    figures = {"value": value, "stderr": stderr, "low": low, "high": high, "method": "m"}
    counts = {"n_scored": 5, "n_total": 5, "unscored": {}, "reasons": [], "warnings": {}}
    return msgspec.convert(figures | counts, Figure)


def overall(value: float, direction: str = "higher") -> Figure:
    fields = {name: getattr(entry(value), name) for name in Figure.__struct_fields__}
    return msgspec.convert(msgspec.to_builtins({**fields, "direction": direction, "signature": "s"}), Figure)


@pytest.mark.parametrize(
    ("value", "stderr", "direction", "shade"),
    [
        (0.55, 0.1, "higher", 0),  # half a standard error
        (0.65, 0.1, "higher", 1),
        (0.75, 0.1, "higher", 2),
        (0.95, 0.1, "higher", 3),
        (0.25, 0.1, "higher", -2),
        (0.25, 0.1, "lower", 2),  # lower is better
        (0.95, 0.1, "lower", -3),
        (0.95, None, "higher", 0),  # without a standard error, nothing is known
        (0.95, 0.0, "higher", 0),
        (None, 0.1, "higher", 0),
        (0.95, 1e-320, "higher", 3),
    ],
)
def test_the_shade_counts_standard_errors(value: float | None, stderr: float | None, direction: str, shade: int):
    slices = {"x": {"m": entry(value, stderr)}}
    shown = heat_map("c", slices, {"x": 5}, {"m": overall(0.5, direction)})
    assert [cell.shade for row in shown.rows for cell in row.cells] == [shade]


def test_a_metric_that_only_a_slice_has_is_shown_without_a_shade():
    shown = heat_map("c", {"x": {"m": entry(0.9), "other": entry(0.1)}}, {"x": 5}, {"m": overall(0.5)})
    assert [(metric.name, metric.overall) for metric in shown.metrics] == [("m", 0.5), ("other", None)]
    assert [cell.shade for cell in shown.rows[0].cells] == [3, 0]


def test_signatures_are_folded(browser: TestClient):
    assert re.search(r"<summary>Signatures</summary>\s*<span class=\"signature\">", browser.get("/run/alba").text)


# the report


def test_the_report_is_rendered_again_and_not_taken_from_the_folder(folder: Path, tmp_path: Path):
    shutil.copytree(folder / "alba", tmp_path / "runs" / "alba")
    (tmp_path / "runs" / "alba" / "report.html").write_text("<script>alert('the report of somebody else')</script>")
    browser = client(tmp_path / "runs")
    assert 'href="/report/alba"' in browser.get("/run/alba").text
    answer = browser.get("/report/alba")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "somebody else" not in answer.text
    assert "scene-" in answer.text


def test_the_policy_of_a_report_allows_its_own_scripts_only(browser: TestClient):
    answer = browser.get("/report/alba")
    (policy,) = answer.headers.get_list("content-security-policy")
    directives = {name: values for name, *values in (part.split() for part in policy.split(";"))}
    assert directives["default-src"] == ["'none'"]
    assert directives["sandbox"] == ["allow-scripts"]  # and not allow-same-origin: the viewer cannot be read
    assert directives["frame-ancestors"] == ["'none'"]
    for kind in ("script-src", "style-src"):
        assert all(source.startswith("'sha256-") for source in directives[kind]), kind
    for header in ("x-content-type-options", "referrer-policy", "x-frame-options", "cross-origin-resource-policy"):
        assert header in answer.headers
    assert browser.get("/run/alba").headers["content-security-policy"] == POLICY


def test_reports_are_kept_until_the_run_changes(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rendered: list[str] = []

    def counted(*arguments: Any, **settings: Any) -> str:
        rendered.append("once more")
        return report_html(*arguments, **settings)

    monkeypatch.setattr(run_pages, "report_html", counted)
    shutil.copytree(folder / "alba", tmp_path / "runs" / "alba")
    browser = client(tmp_path / "runs")
    assert browser.get("/report/alba").text == browser.get("/report/alba").text
    assert len(rendered) == 1
    run = RunFolder(tmp_path / "runs" / "alba")
    run.write_info(msgspec.structs.replace(run.read_info(), finished="2030-01-01T00:00:00+00:00"))
    browser.get("/report/alba")
    assert len(rendered) == 2


def test_links_out_of_the_folder_stop_a_report(folder: Path, tmp_path: Path):
    shutil.copytree(folder / "alba", tmp_path / "runs" / "alba")
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(b"secret")
    extra = tmp_path / "runs" / "alba" / "answers"
    extra.mkdir()
    (extra / "part-00000.parquet").symlink_to(outside)
    answer = client(tmp_path / "runs").get("/report/alba")
    assert answer.status_code == 404
    assert "leads out of the folder" in answer.text


@pytest.mark.parametrize("route", ["report", "histograms", "slices", "spread"])
def test_pages_of_finished_runs_refuse_a_run_in_progress(tmp_path: Path, route: str):
    RunFolder.create(tmp_path / "runs" / "live", run_info())
    answer = client(tmp_path / "runs").get(f"/{route}/live?metric=bleu")
    assert answer.status_code == 409
    assert "is not finished" in answer.text


def test_the_report_of_a_huge_run_is_left_to_the_command(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("multimodal_eval.report.viewer.run_pages.MOST_SAMPLES", 10)
    answer = browser.get("/report/boreas")
    assert answer.status_code == 409
    assert "mmeval report" in answer.text
    assert "/report/boreas" not in browser.get("/run/boreas").text
