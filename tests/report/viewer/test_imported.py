"""Imported runs in the viewer: the names of their metrics have a dot."""

from __future__ import annotations

import csv
import io
import re

import pytest

from multimodal_eval import import_log
from tests.data.logs.fixture_logs import LM_EVAL, log_of
from tests.report.viewer.test_pages import page
from tests.report.viewer.viewed import client

STRICT, FLEXIBLE = "lm-eval.exact_match_strict-match", "lm-eval.exact_match_flexible-extract"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    runs = tmp_path_factory.mktemp("imported") / "runs"
    for name in ("a", "b"):
        import_log(log_of(LM_EVAL, "toy_sum"), output=runs / name, progress=False)
    return client(runs)


def exported(browser, query):
    return list(csv.DictReader(io.StringIO(page(browser, f"/export/samples.csv/a?{query}"))))


def test_the_run_and_its_samples(browser):
    assert FLEXIBLE in page(browser, "/run/a")
    text = page(browser, f"/samples/a?sort={FLEXIBLE}&desc=1")
    assert "I think 17" in re.sub("</?mark[^>]*>", "", text)
    assert STRICT in page(browser, "/sample/a?row=1")


def test_samples_are_selected_by_a_recorded_score(browser):
    # Right for the flexible filter, wrong for the strict one: "I think 17" and "It is 5".
    rows = exported(browser, f"min.{FLEXIBLE}=1&max.{STRICT}=0")
    assert [row["id"] for row in rows] == ["1", "5"]


def test_two_imported_runs_are_compared(browser):
    assert FLEXIBLE in page(browser, f"/compare/numbers?run=a&run=b&metric={FLEXIBLE}")
    page(browser, f"/pairs?run=a&run=b&metric={FLEXIBLE}")
