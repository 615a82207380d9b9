"""Scatter plots: positions and cells against numpy, correlations against scipy, and what the brush selects."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from starlette.testclient import TestClient

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from multimodal_eval.report.viewer.drawings import COLUMNS, MOST_POINTS, ROWS, SIDE, scatter_plot
from tests.report.viewer.mixed import mixed_runs
from tests.report.viewer.test_pages import page
from tests.report.viewer.viewed import client

BOTH = "run=alba&run=boreas"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("scattered") / "runs"
    mixed_runs(runs)
    return runs


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


def rows(browser: TestClient, run: str) -> Any:
    return json.loads(page(browser, f"/export/samples.json/{run}"))


def dots(text: str) -> list[tuple[int, int]]:
    path = re.search(r'class="dots" d="([^"]+)"', text)
    assert path is not None
    return [(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h0", path[1])]


def test_two_metrics_of_a_run_are_drawn_with_their_correlation(browser: TestClient):
    scored = [row for row in rows(browser, "alba") if row["rouge_l"] is not None and row["cider_d"] is not None]
    x, y = (np.array([row[name] for row in scored]) for name in ("rouge_l", "cider_d"))
    text = page(browser, "/scatter/alba?x=rouge_l&y=cider_d")
    assert f">{len(scored)}</span> samples" in text
    pearson, spearman = re.findall(r"(?:Pearson|Spearman) <span class=\"figures\">(-?[\d.]+)", text)
    assert float(pearson) == pytest.approx(stats.pearsonr(x, y).statistic, abs=0.0005)
    assert float(spearman) == pytest.approx(stats.spearmanr(x, y).statistic, abs=0.0005)
    shown = dots(text)
    assert len(shown) == len(scored)
    # The lowest and the highest value are 2% of the range inside the axis: 0.02 / 1.04 of its length.
    ends = [round(SIDE * 0.02 / 1.04), round(SIDE * 1.02 / 1.04)]
    assert [min(column for column, _ in shown), max(column for column, _ in shown)] == ends
    at = int(np.argmax(y))
    assert shown[at][1] == ends[0]  # the highest is at the top
    assert "diagonal" not in text


def test_the_same_metric_of_two_runs_has_a_diagonal(browser: TestClient):
    first, second = ({row["id"]: row["rouge_l"] for row in rows(browser, run)} for run in ("alba", "boreas"))
    both = [(first[name], second[name]) for name in first if first[name] is not None and second[name] is not None]
    text = page(browser, f"/scatter?{BOTH}&x=rouge_l&y=rouge_l")
    assert f">{len(both)}</span> samples scored in both runs" in text
    assert 'class="diagonal"' in text
    axes = re.search(r'data-x-low="([^"]+)" data-x-high="([^"]+)" data-y-low="([^"]+)" data-y-high="([^"]+)"', text)
    assert axes is not None
    assert axes[1] == axes[3]
    assert axes[2] == axes[4]
    shown = dots(text)
    assert sorted(column < SIDE - row for column, row in shown).count(True) == sum(b > a + 1e-6 for a, b in both)


def test_different_metrics_of_two_runs_have_no_diagonal(browser: TestClient):
    text = page(browser, f"/scatter?{BOTH}&x=bleu&y=rouge_l")
    assert "diagonal" not in text
    assert 'name="y" value="rouge_l"' in text


LIMITS = [
    ("x0=0.5", (0.5, None, None, None)),
    ("x0=0.2&x1=0.7", (0.2, 0.7, None, None)),
    ("x1=0.7&x0=0.2", (0.2, 0.7, None, None)),
    ("x0=0.7&x1=0.2", (0.2, 0.7, None, None)),  # in the wrong order
    ("y0=0.5&x1=0.9", (None, 0.9, 0.5, None)),
    ("x0=0.4&x1=0.9&y0=0.1&y1=2.5", (0.4, 0.9, 0.1, 2.5)),
]


def inside(value: float | None, low: float | None, high: float | None) -> bool:
    if low is None and high is None:
        return True
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


@pytest.mark.parametrize(("query", "limits"), LIMITS, ids=[query for query, _ in LIMITS])
def test_the_brush_selects_the_samples_in_its_rectangle(browser: TestClient, query: str, limits):
    x0, x1, y0, y1 = limits
    expected = {
        row["id"] for row in rows(browser, "alba") if inside(row["rouge_l"], x0, x1) and inside(row["cider_d"], y0, y1)
    }
    text = page(browser, f"/scatter/alba?x=rouge_l&y=cider_d&{query}")
    assert f"{len(expected)} sample" in re.findall(r"data-status>([^<]+)<", text)[0]
    shown = re.findall(r'<h3 class="pair-id"><a href="[^"]*"><bdi>([^<]+)</bdi>', text)
    assert set(shown) <= expected
    assert len(shown) == min(len(expected), 12)
    link = re.search(r'href="(/samples/alba\?[^"]+)"', text)
    assert link is not None
    assert f"{len(expected)} of 120 samples match" in page(browser, link[1].replace("&amp;", "&"))


def test_the_brush_selects_pairs_and_opens_them(browser: TestClient):
    first, second = ({row["id"]: row for row in rows(browser, run)} for run in ("alba", "boreas"))
    expected = {
        name
        for name in first
        if inside(first[name]["rouge_l"], 0.5, None) and inside(second[name]["cider_d"], None, 1.5)
    }
    text = page(browser, f"/scatter?{BOTH}&x=rouge_l&y=cider_d&x0=0.5&y1=1.5")
    assert f"{len(expected)} samples in the rectangle" in text
    link = re.search(r'href="(/pairs\?[^"]+)"', text)
    assert link is not None
    opened = link[1].replace("&amp;", "&")
    assert "min.a.rouge_l=0.5" in opened
    assert "max.b.cider_d=1.5" in opened
    address = opened.replace("/pairs?", "/pairs.json?")
    assert {row["id"] for row in json.loads(page(browser, address))} == expected


def test_a_plot_keeps_the_filters_of_the_samples(browser: TestClient):
    english = [row for row in rows(browser, "alba") if int(row["row"]) % 5 == 0 and row["bleu"] is not None]
    text = page(browser, "/scatter/alba?x=bleu&y=rouge_l&meta.language=en&y0=0.3")
    assert len(dots(text)) == len(english)
    link = re.search(r'href="(/samples/alba\?[^"]+)"', text)
    assert link is not None
    assert "meta.language=en" in link[1]
    assert text.count('type="hidden" name="meta.language" value="en"') == 2  # both forms
    paired = page(browser, f"/scatter?{BOTH}&x=bleu&y=bleu&outcome=first")
    losses = json.loads(page(browser, f"/pairs.json?{BOTH}&number=bleu&outcome=first"))
    assert len(dots(paired)) == len(losses)


def test_a_range_of_a_shown_metric_is_the_brush_only(browser: TestClient):
    """A link from the samples with `min.bleu` shows all points, since the brush replaces the range."""
    assert len(dots(page(browser, "/scatter/alba?x=bleu&y=rouge_l&min.bleu=0.5"))) > 100
    assert len(dots(page(browser, "/scatter/alba?x=bleu&y=rouge_l&min.cider_d=1"))) < 100


@pytest.mark.parametrize("query", ["x=none", "y=none", "x0=a", "y1=inf", "x1=nan", "min.none=1", "x=bleu&x=rouge_l"])
def test_invalid_parameters_are_refused(browser: TestClient, query: str):
    assert browser.get(f"/scatter/alba?{query}").status_code == 400
    if "min." not in query:
        assert browser.get(f"/scatter?{BOTH}&{query}").status_code == 400


def test_other_runs_lead_to_a_choice_or_are_not_found(browser: TestClient):
    assert browser.get("/scatter/nobody").status_code == 404
    assert browser.get("/scatter?run=alba&run=nobody").status_code == 404
    choice = browser.get("/scatter?run=alba")
    assert choice.status_code == 200
    assert 'action="/scatter"' in choice.text


def test_runs_without_common_samples_are_explained(tmp_path: Path):
    for name, start in (("a", 0), ("b", 100)):
        texts = [Sample(str(start + n), references=["a cat"], generated_answer="a cat") for n in range(4)]
        evaluate(texts, metrics=["rouge_l"], output=tmp_path / "runs" / name)
    browser = client(tmp_path / "runs")
    assert "No sample is scored in both runs" in page(browser, "/scatter?run=a&run=b")
    single = page(browser, "/scatter/a")  # one metric against itself, all values equal
    assert f'Pearson <span class="figures">{chr(8211)}</span>' in single


def test_few_points_are_drawn_and_many_are_counted():
    generator = np.random.default_rng(0)
    x, y = generator.beta(2, 5, (2, MOST_POINTS + 1))
    few = scatter_plot(x[:-1], y[:-1], same_scale=False)
    assert few is not None
    assert few.points.count("M") == MOST_POINTS
    assert few.levels == []
    many = scatter_plot(x, y, same_scale=False)
    assert many is not None
    assert many.points == ""
    # The cells of all shades together are those of numpy's histogram.
    counts, _, _ = np.histogram2d(x, y, (COLUMNS, ROWS), ((many.x.low, many.x.high), (many.y.low, many.y.high)))
    filled = set()
    for level in many.levels:
        for column, row, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", level.path):
            for place in range(int(column), int(column) + int(width)):
                cell = place, int(row)
                assert cell not in filled
                filled.add(cell)
                assert level.least <= counts[place, ROWS - 1 - int(row)] <= level.most
    assert filled == {(int(column), ROWS - 1 - int(row)) for column, row in zip(*np.nonzero(counts), strict=True)}
    shades = [(level.least, level.most) for level in many.levels]
    assert shades == sorted(shades)
    assert all(before[1] < after[0] for before, after in pairwise(shades))


def test_no_points_are_no_plot():
    assert scatter_plot(np.array([]), np.array([]), same_scale=True) is None


def test_a_run_and_its_samples_lead_to_the_plot(browser: TestClient):
    assert 'href="/scatter/alba"' in page(browser, "/run/alba")
    assert 'href="/compare?run=alba"' in page(browser, "/run/alba")
    text = page(browser, "/samples/alba?q=red&sort=bleu&offset=0")
    link = re.search(r'href="(/scatter/alba\?[^"]+)"', text)
    assert link is not None
    red = [row for row in rows(browser, "alba") if "red" in (row["generated_answer"] or "") and row["bleu"] is not None]
    assert len(dots(page(browser, link[1].replace("&amp;", "&")))) == len(red)
