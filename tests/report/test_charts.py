"""Drawings in coordinates: every metric has one, on a scale of its own if it needs one."""

from __future__ import annotations

import re

import pytest

from multimodal_eval import evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.sample import Sample
from multimodal_eval.display.blocks import FigureRow, Figures
from multimodal_eval.display.comparison_verdict import against, leader
from multimodal_eval.display.renderer import rendered
from multimodal_eval.report.distributions import Distribution, histogram
from tests.report.verdict.comparisons import all_pairs, comparison, metric

METRICS = ["rouge_l", "cider_d", "perplexity", "chrf"]  # from 0 to 1, to 10, without an upper limit, to 100


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("charts")
    words = "a red dog runs on the beach near the old green boat".split()
    runs = []
    for name, skipped in {"alba": 1, "boreas": 3}.items():
        samples = [
            Sample(
                str(number),
                references=[" ".join(words[number % 4 :])],
                generated_answer=" ".join(words[number % (4 + skipped) :: skipped]),
                perplexity=20.0 + number * skipped,
            )
            for number in range(12)
        ]
        runs.append(evaluate(samples, metrics=METRICS, output=folder / name, progress=False))
    return runs


def circles(page, section):
    """The places of the dots of each row of the first table in a section."""
    body = re.search(rf'<section aria-labelledby="{section}">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)[1]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [
        [float(place) for place in re.findall(r'<circle cx="([\d.]+)"', row)] for row in rows if "axis" not in row[:16]
    ]


def test_every_metric_of_two_runs_is_drawn_whatever_its_range(scored):
    places = circles(page_of(scored), "numbers")
    assert len(places) == 2 * len(METRICS)
    assert all(len(place) == 1 for place in places)


def test_every_metric_is_in_the_chart_of_differences(scored):
    places = circles(page_of(scored), "comparison")
    assert [len(place) for place in places] == [1] * len(METRICS)


def drawn(*figures):
    """The places of the dots of differences, and that of zero."""
    text = rendered([Figures([FigureRow(each) for each in figures], is_difference=True)], "html")
    rows = re.findall(r"<tr.*?</tr>", text, re.DOTALL)[1:-1]
    places = [re.findall(r'<circle cx="([\d.]+)"', row) for row in rows]
    origin = re.search(r'<line x1="([\d.]+)" y1="0" [^>]*stroke-opacity="0.8"', text)[1]
    return [float(place[0]) if place else None for place in places], float(origin)


def difference(value, low, high, stderr=0.0075, **more):
    return Figure(value, stderr, low, high, "t", n_scored=50, n_total=50, name="m", **more)


def test_a_difference_in_standard_errors():
    # -0.025 / 0.0075 = -3.33 from -5.33 to -1.33: the scale is -6 … 0 in 160 pixels, of which 14 are a margin.
    (place,), origin = drawn(difference(-0.025, -0.040, -0.010))
    assert place == pytest.approx(14 + 132 * (6 - 3.333) / 6, abs=0.1)
    assert origin == 146


def test_right_is_better_if_lower_is_better():
    (place,), origin = drawn(difference(2.0, 1.0, 3.0, 0.5, direction="lower"))
    assert place < origin


def test_a_difference_without_a_standard_error():
    equal, constant = difference(0.0, 0.0, 0.0, 0.0), difference(0.5, 0.5, 0.5, 0.0)
    unknown, known = difference(0.5, None, None, None), difference(0.1, 0.05, 0.15)
    places, origin = drawn(equal, constant, unknown, known)
    assert places[:3] == [origin, None, None]
    assert places[3] > origin


def test_several_runs_are_compared_with_the_best():
    values = {"A": 0.60, "B": 0.69, "C": 0.70}
    compared = metric("m", all_pairs(values, [{"A", "C"}]), values=values)
    assert leader(comparison(compared, runs=values), "m") == "C"
    # C is the second of its pairs, so that their sign is turned: A - C = -0.10, between -0.11 and -0.09.
    first, second = against(compared, "C")
    assert (first.run, second.run) == ("A", "B")
    assert (first.value, first.low, first.high) == pytest.approx((-0.10, -0.11, -0.09))
    assert (first.verdict, second.verdict) == ("worse", "no difference shown")


def test_bars_of_one_run_and_outlines_of_several():
    single = histogram(Distribution([0.0, 0.5, 1.0], False, [[1, 3]], []))
    # Counts up to 3: the scale is 0, 1, 2, 3; the first bar is a third high.
    assert [(bar.x, bar.width) for bar in single.bars] == [(0.2, 49.6), (50.2, 49.6)]
    assert [bar.height for bar in single.bars] == pytest.approx([33.333, 100])
    assert single.bars[0].title == "0 to 0.5: 1 sample"
    # Shares of 25 % and 75% of 4 samples, on a scale up to 80 %.
    two = histogram(Distribution([0.0, 0.5, 1.0], False, [[1, 3], [4, 0]], []))
    assert two.bars == []
    assert [tick.label for tick in two.heights][-1] == "100%"
    assert two.lines[0].outline == "M0,100V75H50V25H100V100"
    assert two.lines[0].cumulated == "M0,100L50,75L100,0"


def test_ticks_of_a_logarithmic_distribution():
    drawn = histogram(Distribution([1.0, 10.0, 100.0, 1000.0], True, [[1, 1, 1]], []))
    assert [(tick.label, tick.at) for tick in drawn.ticks] == [
        ("1", 0),
        ("10", 33.333),
        ("100", 66.667),
        ("1,000", 100),
    ]
