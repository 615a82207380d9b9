"""The heat map of models x tasks, and the page of two models."""

from __future__ import annotations

import pytest

from tests.analysis.suites import answers, scored, small_suite
from tests.report.viewer.viewed import client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_suite(tmp_path_factory.mktemp("suite"))


def test_the_page_shows_stored_scores_and_asks_for_tests(folder):
    browser = client(folder)
    page = browser.get("/suite").text
    assert 'hx-get="/suite/tested?' in page
    assert "Testing the differences" in page
    assert ">0.833<" in page.replace("\n", "")
    assert 'href="/run/finch/vqa"' in page
    assert 'class="heat-5"' in page
    tested = browser.get("/suite/tested").text
    assert "<strong>0.833 ★</strong>" in tested
    assert "finch is better than wren over 3 tasks" in tested
    again = browser.get("/suite").text  # tests are kept
    assert "hx-get" not in again.split('id="suite"')[1].split(">")[0]
    assert "Models × tasks" in browser.get("/").text


def test_it_is_sorted_by_a_column(folder):
    browser = client(folder)

    def models(address):
        page = browser.get(address).text
        return sorted(("finch", "parrot", "wren"), key=lambda name: page.index(f'value="{name}"'))

    assert models("/suite?sort=chart") == ["parrot", "wren", "finch"]
    assert models("/suite?sort=chart&desc=1") == ["finch", "wren", "parrot"]
    assert browser.get("/suite?sort=nothing").status_code == 400


def test_two_models_over_all_tasks(folder):
    browser = client(folder)
    page = browser.get("/suite/compare?model=parrot&model=wren").text
    assert "wren - parrot" in page
    assert 'href="/compare?run=parrot%2Fvqa&amp;run=wren%2Fvqa"' in page
    assert "+0.333" in page  # 18 - 10 of 24 on chart
    assert browser.get("/suite/compare?model=parrot").status_code == 400


def test_a_changed_run_changes_the_page(tmp_path):
    folder = small_suite(tmp_path)
    browser = client(folder)
    assert "0.833 ★" in browser.get("/suite/tested").text
    scored(folder, "owl", "vqa", answers(24))
    assert "1.000 ★" in browser.get("/suite/tested").text


def test_a_suite_that_names_other_folders_opens_none_of_them(tmp_path):
    folder = small_suite(tmp_path / "inside")
    scored(tmp_path / "outside", "owl", "vqa", answers(24))
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "suite.json").write_text(
        '{"format": 1, "runs": [{"path": "link/owl/vqa", "model": "owl", "task": "vqa"}]}'
    )
    assert "owl" not in client(folder).get("/suite").text
