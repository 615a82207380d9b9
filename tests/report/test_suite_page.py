"""A suite as one page, and as a site."""

from __future__ import annotations

import json
import shutil

import pytest

from multimodal_eval.data.runs.suite_folder import SuiteEntry, SuiteModel, SuiteRecord, write_suite
from tests.analysis.suites import RIGHT, small_suite
from tests.cli.command_line import mmeval


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_suite(tmp_path_factory.mktemp("suite"))


def test_a_report_of_a_suite_is_one_file(folder, tmp_path):
    mmeval("report", str(folder), "-o", str(tmp_path / "paper.html"))
    page = (tmp_path / "paper.html").read_text()
    assert "color-mix" in page
    assert "finch is better than wren over 3 tasks" in page
    assert "://" not in page.replace("http://www.w3.org", "")
    assert "<script" not in page


def test_a_folder_of_runs_becomes_a_site(folder, tmp_path):
    plain = shutil.copytree(folder, tmp_path / "plain", ignore=shutil.ignore_patterns("suite.json"))
    mmeval("leaderboard", "--from", str(plain), "--site", str(tmp_path / "site"))
    assert "finch is better than wren over 3 tasks" in (tmp_path / "site" / "index.html").read_text()


def test_the_site_of_a_suite_has_no_path_of_this_machine(folder, tmp_path):
    write_suite(folder, _record())
    site = tmp_path / "site"
    done = mmeval("leaderboard", "--from", str(folder), "--site", str(site), "--title", "All models")
    assert f"site: {site / 'index.html'}" in done.stdout
    assert sorted(path.name for path in site.iterdir()) == [
        "index.html", "leaderboard.csv", "leaderboard.json", "site.json",
    ]  # fmt: skip
    for path in site.iterdir():
        assert str(folder) not in path.read_text()
    assert "All models" in (site / "index.html").read_text()
    content = json.loads((site / "leaderboard.json").read_text())
    assert [row["label"] for row in content["rows"]] == ["Finch", "parrot", "wren"]
    refused = mmeval("leaderboard", "--from", str(folder), "--site", str(site), "--site-samples", code=2)
    assert "--site-samples has no effect on a suite" in refused.stderr


def _record():
    runs = [
        SuiteEntry(path=f"{model}/{task}", model=model, task=task) for model in sorted(RIGHT) for task in RIGHT[model]
    ]
    return SuiteRecord(models=[SuiteModel(name="finch", label="Finch")], runs=runs)
