"""Charts in coordinates: every metric is in one, on a scale of its own if it needs one."""

from __future__ import annotations

import pytest

from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.sample import Sample
from multimodal_eval.report.build import content_of
from multimodal_eval.report.charts.dots import against, difference_chart, leader
from multimodal_eval.report.charts.of_report import histogram
from multimodal_eval.report.distributions import Distribution
from multimodal_eval.run.evaluate import evaluate
from tests.report.verdict.comparisons import all_pairs, comparison, metric, pair

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


def test_every_metric_is_in_a_chart_whatever_its_range(scored):
    chart = content_of(scored[:1], ["alba"]).charts.scores
    assert [row.name for row in chart.rows] == METRICS
    assert all(row.dots[0].at is not None for row in chart.rows)
    # rouge_l shares the scale from 0 to 1; each of the others has a panel with a scale that its interval fills.
    assert [[row.name for row in panel.rows] for panel in chart.panels] == [[name] for name in METRICS]
    assert [tick.label for tick in chart.panels[0].ticks] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


def test_every_metric_is_in_the_figure_of_differences(scored):
    compared = compare_runs(scored, rounds=100, allow_partial=True)
    content = content_of(scored, list(compared.runs), comparison=compared)
    assert [row.name for row in content.charts.differences.rows] == METRICS
    assert all(row.dots[0].at is not None for row in content.charts.differences.rows)
    assert len(content.charts.differences.panels) == 1
    assert {row.name for row in content.charts.scores.rows} == set(METRICS)


def test_a_difference_in_standard_deviations():
    # SE 0.0075 over 50 samples: the paired differences have the deviation 0.0075 * sqrt(50) = 0.0530. The difference
    # is -0.025 / 0.0530 = -0.4714, and its interval goes from -0.7542 to -0.1886. The scale is -0.8 … 0.
    chart = difference_chart(comparison(metric("m", [pair(-0.025, -0.040, -0.010)])), "m")
    (panel,) = chart.panels
    assert [tick.label for tick in panel.ticks] == ["-0.8", "-0.6", "-0.4", "-0.2", "0"]
    dot = panel.rows[0].dots[0]
    assert dot.at == pytest.approx(100 * (0.8 - 0.4714) / 0.8, abs=0.01)
    assert (dot.low, dot.high) == pytest.approx((100 * (0.8 - 0.7542) / 0.8, 100 * (0.8 - 0.1886) / 0.8), abs=0.01)
    assert (dot.tone, panel.origin) == ("bad", 100)
    assert panel.rows[0].texts == [["-0.025 [-0.040, -0.010]"], ["0.0020"], ["▼ worse"]]


def test_right_is_better_if_lower_is_better():
    chart = difference_chart(
        comparison(metric("wer", [pair(2.0, 1.0, 3.0, verdict="worse")], direction="lower")), "wer"
    )
    dot = chart.rows[0].dots[0]
    assert dot.low < dot.at < dot.high < chart.panels[0].origin
    assert chart.rows[0].texts[0] == ["+2.0 [+1.0, +3.0]"]  # the text has the sign of the metric


def test_a_difference_without_a_deviation():
    equal = pair(0.0, 0.0, 0.0, p=1.0, stderr=0.0)
    constant = pair(0.5, 0.5, 0.5, stderr=0.0)
    unknown = pair(0.5, p=1.0, stderr=None)
    chart = difference_chart(
        comparison(*(metric(name, [each]) for name, each in {"e": equal, "c": constant, "u": unknown}.items())), "e"
    )
    at = {row.name: row.dots[0].at for row in chart.rows}
    assert at["e"] == chart.panels[0].origin
    assert at["c"] == 100  # as far right as the scale goes
    assert at["u"] is None
    assert chart.rows[2].texts[0] == ["+0.5000"]


def test_several_runs_are_compared_with_the_best():
    values = {"A": 0.60, "B": 0.69, "C": 0.70}
    compared = metric("m", all_pairs(values, [{"A", "C"}]), values=values)
    assert leader(comparison(compared, runs=values), "m") == "C"
    # C is the second of its pairs, so that their sign is turned: A - C = -0.10, between -0.11 and -0.09.
    first, second = against(compared, "C")
    assert (first.run, second.run) == ("A", "B")
    assert (first.value, first.low, first.high) == pytest.approx((-0.10, -0.11, -0.09))
    assert (first.verdict, second.verdict) == ("worse", "no difference shown")
    chart = difference_chart(comparison(compared, runs=values), "m")
    assert [dot.tone for dot in chart.rows[0].dots] == ["series-1", "series-2"]


def test_bars_of_one_run_and_outlines_of_several():
    single = histogram(Distribution([0.0, 0.5, 1.0], False, [[1, 3]], []))
    # Counts up to 3: the scale is 0, 1, 2, 3; the first bar is a third high.
    assert [(bar.x, bar.width) for bar in single.bars] == [(0.2, 49.6), (50.2, 49.6)]
    assert [bar.height for bar in single.bars] == pytest.approx([33.333, 100])
    assert single.bars[0].title == "0 to 0.5: 1 samples"
    # Shares of 25 % and 75 % of 4 samples, on a scale up to 80 %.
    two = histogram(Distribution([0.0, 0.5, 1.0], False, [[1, 3], [4, 0]], []))
    assert two.bars == []
    assert [tick.label for tick in two.heights][-1] == "100 %"
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
