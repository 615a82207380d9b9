"""Averages that are not the mean over samples: values, influence values, and how metrics use them."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from multimodal_eval import Rows, Sample, evaluate
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.evaluation.averages import Average, average_of, estimate_by
from multimodal_eval.stats.intervals import standard_error
from tests.golden.load import golden


def rows_of(text, values, records, weights=None):
    average = average_of(text, "m")
    samples = [Sample(id=str(number), metadata=record) for number, record in enumerate(records)]
    stats = [
        (*average.stats(sample), *(() if weights is None else (weights[number],)))
        for number, sample in enumerate(samples)
    ]
    return average, Rows(np.array(values, float), np.array(stats, float))


def estimate(text, values, records, weights=None):
    average, rows = rows_of(text, values, records, weights)
    return estimate_by(average, average.groupings, rows)


ROWS = [{"a": "x", "b": 1}, {"a": "x", "b": 1}, {"a": "x", "b": 2}, {"a": "y", "b": 1}, {"a": "y", "b": 1}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("micro", 3 / 5),
        ("macro(a)", (2 / 3 + 1 / 2) / 2),
        ("macro(a, b)", ((1 / 2 + 1) / 2 + 1 / 2) / 2),
        ("macro(b)", (2 / 4 + 1) / 2),
        ("all-correct(a)", 0),
        ("all-correct(a, b)", 1 / 3),
        ("mean(micro, all-correct(a, b))", (3 / 5 + 1 / 3) / 2),
        (" mean( one = macro( a ) , two=micro ) ", ((2 / 3 + 1 / 2) / 2 + 3 / 5) / 2),
    ],
)
def test_value_worked_out_by_hand(text, value):
    assert estimate(text, [1, 0, 1, 1, 0], ROWS).value == pytest.approx(value, abs=1e-15)


def test_samples_without_a_value_are_left_out():
    records = [{"a": "x"}, {"a": "x"}, {"a": None}, {}]
    assert estimate("all-correct(a)", [1, 1, 0, 0], records).value == 1
    assert estimate("macro(a)", [1, 0, 0, 0], records).value == 1 / 2
    with pytest.raises(ConfigError, match="no scored sample has a value in a"):
        estimate("macro(a)", [1, 0], [{}, {}])


@pytest.mark.parametrize("text", ["all-correct(a)", "macro(a)"])
def test_samples_that_are_left_out_do_not_change_the_standard_error(text):
    values, records = [1, 1, 0, 1, 1, 0], [{"a": name} for name in "xxyyzz"]
    result, alone = estimate(text, [*values, 0, 1], [*records, {}, {}]), estimate(text, values, records)
    expected = standard_error(alone.influence, corrected=alone.corrected)
    assert standard_error(result.influence, corrected=result.corrected) == pytest.approx(expected)


def test_weights_count_within_a_group():
    # Page 1: (1 * 0.5 + 9 * 0.1) / 10; page 2: 1. All pages: (0.5 + 0.9 + 2) / 12.
    pages = [{"page": 1}, {"page": 1}, {"page": 2}]
    assert estimate("macro(page)", [0.5, 0.1, 1], pages, [1, 9, 2]).value == pytest.approx((0.14 + 1) / 2)
    assert estimate("micro", [0.5, 0.1, 1], pages, [1, 9, 2]).value == pytest.approx(3.4 / 12)


def test_the_standard_error_of_a_macro_mean():
    # Independent groups: the variance of a mean of two means is (s_x^2 / 3 + s_y^2 / 2) / 4.
    values = np.array([1, 0, 1, 1, 0.25])
    expected = sqrt((np.var(values[:3], ddof=1) / 3 + np.var(values[3:], ddof=1) / 2) / 4)
    result = estimate("macro(a)", values, ROWS)
    assert standard_error(result.influence, corrected=result.corrected) == pytest.approx(expected)
    micro = estimate("micro", values, ROWS)
    expected = np.std(values, ddof=1) / sqrt(5)
    assert standard_error(micro.influence, corrected=micro.corrected) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["macro(a)", "macro(a, b)", "all-correct(g)", "mean(p=micro, q=all-correct(g), macro(a))"]
)
def test_the_standard_error_covers_the_spread_of_resampled_data(text):
    """Groups of samples are drawn again within the values of a and b, 400 times; the formula is within 10 %."""
    random = np.random.default_rng(5)
    cells = [("x", 1, 40), ("x", 2, 25), ("y", 1, 60)]
    shares, draws = {("x", 1): 0.8, ("x", 2): 0.3, ("y", 1): 0.6}, []
    for _ in range(400):
        values, records = [], []
        for a, b, count in cells:
            for number in range(count):
                hits = (random.random() < shares[a, b]) & (random.random(2) < 0.9)
                values += hits.astype(float).tolist()
                records += [{"a": a, "b": b, "g": f"{a}{b}{number}"}] * 2
        draws.append((values, records))
    results = [estimate(text, *draw) for draw in draws]
    clusters = np.repeat(np.arange(len(draws[0][0]) // 2), 2)
    formula = np.mean([standard_error(result.influence, clusters, corrected=False) for result in results])
    assert formula == pytest.approx(np.std([result.value for result in results]), rel=0.1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("median", "there is no average 'median'"),
        ("macro", "needs parentheses"),
        ("macro()", "a name is missing"),
        ("macro(a", "closing parenthesis"),
        ("micro, macro(a)", "follows a complete average"),
        ("mean(a=)", "a name is missing"),
        ("", "a name is missing"),
    ],
)
def test_a_wrong_average_is_refused(text, message):
    with pytest.raises(ConfigError, match=r"`m\.average`: .*" + message):
        average_of(text, "m")


def test_an_average_is_part_of_a_run():
    samples = [
        Sample(id=str(number), generated_answer=answer, expected_answer="A", choices=["x", "y"], metadata=record)
        for number, (answer, record) in enumerate(zip("ABAAB", ROWS, strict=True))
    ]
    options = {"multiple_choice": {"average": "mean(subtasks=macro(a), groups=all-correct(a, b))"}}
    run = evaluate(samples, metrics=["multiple_choice"], options=options)
    entry = run["multiple_choice"]
    assert entry["value"] == pytest.approx(((2 / 3 + 1 / 2) / 2 + 1 / 3) / 2)
    assert {part: figure["value"] for part, figure in entry["parts"].items()} == {
        "subtasks": pytest.approx((2 / 3 + 1 / 2) / 2),
        "groups": pytest.approx(1 / 3),
    }
    assert "|average:mean(subtasks=macro(a), groups=all-correct(a, b))" in entry["signature"]
    assert 0 <= entry["low"] < entry["value"] < entry["high"] <= 1
    assert all(0 <= part["low"] <= part["high"] <= 1 for part in entry["parts"].values())
    macro = evaluate(samples, metrics=["multiple_choice"], options={"multiple_choice": {"average": "macro(a)"}})
    assert macro["multiple_choice"]["parts"]["micro"]["value"] == 3 / 5


@pytest.mark.parametrize(("metric", "option"), [("multiple_choice", "rotations"), ("yes_no", "pairs")])
def test_two_groupings_are_refused(metric, option):
    with pytest.raises(ConfigError, match=option):
        evaluate([Sample(id="1")], metrics=[metric], options={metric: {option: "group", "average": "macro(a)"}})


def test_megabench_is_a_macro_mean_over_tasks():
    published = {"Gemini-2.0-1206": 0.5807732780066456, "SI/Grok-2-vision-1212": 0.42872301832144094}
    for model, overall in published.items():
        rows = [row for row in golden("published_answers.json.gz")["megabench"] if row[0] == model]
        result = estimate("macro(task)", [score for *_, score in rows], [{"task": task} for _, task, _ in rows])
        assert result.value == pytest.approx(overall, abs=1e-12)


def test_an_average_of_one_kind_has_its_groupings():
    assert Average("macro", ("a", "b")).groupings == (("a",), ("a", "b"))
    assert average_of("mean(macro(a), all-correct(a))", "m").groupings == (("a",),)


def test_without_a_scored_sample_in_any_group_there_is_no_value_but_a_finished_run():
    """The only sample with a figure has a failed answer: the mean over figures has no value, and the run says why."""
    samples = [
        Sample(id="1", generated_answer="yes", expected_answer="yes", metadata={"place": "here"}),
        Sample(id="2", generated_answer=None, error="no image", expected_answer="no", metadata={"figure": "f"}),
    ]
    average = "mean(places=all-correct(place), figures=all-correct(figure))"
    entry = evaluate(samples, metrics=["yes_no"], options={"yes_no": {"average": average}})["yes_no"]
    assert entry["value"] is None
    assert "no scored sample has a value in figure" in entry["method"]
    assert (entry["n_scored"], entry["parts"]["places"]["value"], entry["parts"]["figures"]["value"]) == (1, 1, None)
