"""What a report says of small runs, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.few_values import slices_of
from multimodal_eval.analysis.numbers import headline
from multimodal_eval.analysis.scored_rows import ScoredRows, scored_rows
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.charts import _labels
from multimodal_eval.report.choice import MOST_SAMPLES, choose
from multimodal_eval.report.content import content_of
from multimodal_eval.report.distributions import BINS, distribution
from multimodal_eval.report.samples import shown_samples
from multimodal_eval.run.evaluate import evaluate


class Entries:
    """As much of a run as choosing needs."""

    def __init__(self, **directions):
        self.entries = {name: SimpleNamespace(direction=way) for name, way in directions.items()}


def rows(**values):
    arrays = {name: np.array(own, dtype=float) for name, own in values.items()}
    size = len(next(iter(arrays.values())))
    run = Entries(**{name: "lower" if name.startswith("low") else "higher" for name in arrays})
    return ScoredRows(run, "run", np.arange(size), arrays)


def test_the_worst_and_the_best_are_those_of_the_main_number():
    own = rows(m=[0.5, 0.1, 0.9, 0.3, np.nan, 0.7, 0.2, 0.6])
    found = {one.kind: one.rows for one in choose([own], "m", per_group=2)}
    assert found == {"worst": [1, 6], "best": [2, 5], "unscored": [4]}


def test_of_a_number_that_should_be_low_the_highest_is_the_worst():
    found = {one.kind: one.rows for one in choose([rows(low=[5.0, 1.0, 9.0, 3.0])], "low")}
    assert (found["worst"], found["best"]) == ([2], [1])


def test_metrics_disagree_where_their_ranks_do():
    # Ranks by a: (0.5, 1.5, … 7.5) / 8; by b the same but that the samples 3 and 4 change places: 1 / 8 apart.
    a = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    b = [10, 20, 30, 50, 40, 60, 70, 80]
    chosen = choose([rows(a=a, b=b)], "a")
    disputed = next(one for one in chosen if one.kind == "disputed")
    assert (disputed.rows, disputed.measure) == ([3, 4], [0.125, 0.125])


def test_a_metric_that_says_the_same_of_all_disputes_nothing():
    chosen = choose([rows(a=[0.1, 0.2, 0.3, 0.4], b=[1.0, 1.0, 1.0, 1.0])], "a")
    assert "disputed" not in {one.kind for one in chosen}


def test_runs_differ_where_their_values_do():
    # Sample 5 is neither best nor worst on average, and the runs are 0.5 apart there; elsewhere they agree.
    one = rows(m=[0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.6, 0.8, 0.9, 1.0])
    two = rows(m=[0.1, 0.2, 0.3, 0.4, 0.5, 0.2, 0.6, 0.8, 0.9, 1.0])
    found = next(own for own in choose([one, two], "m") if own.kind == "differing")
    assert (found.rows, found.measure) == ([5], [pytest.approx(0.5)])


def test_what_is_shown_in_another_group_is_named():
    # The runs are furthest apart on sample 0, which is the worst on average, then on sample 5.
    one = rows(m=[0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.6, 0.8, 0.9, 1.0])
    two = rows(m=[-0.9, 0.2, 0.3, 0.4, 0.5, 0.2, 0.6, 0.8, 0.9, 1.0])
    found = {own.kind: own for own in choose([one, two], "m")}
    assert found["worst"].rows[0] == 0
    assert found["differing"].rows == [5]
    assert found["differing"].elsewhere == [0]


@pytest.mark.parametrize("per_group", [1, 12, 50])
def test_no_sample_twice_and_no_more_than_two_hundred(per_group):
    values = np.random.default_rng(0).random((2, 3, 1_000))
    values[:, :, :300] = np.nan
    runs = [rows(a=own[0], b=own[1], c=own[2]) for own in values]
    chosen = [row for group in choose(runs, "a", per_group) for row in group.rows]
    assert len(chosen) == len(set(chosen)) == min(5 * per_group, MOST_SAMPLES)


def test_a_distribution_counts_every_value_once():
    values = np.array([0.0, 0.049, 0.05, 1.0, np.nan])
    found = distribution([values], (0, 1))
    assert found.edges[:2] == [0.0, 0.05]
    assert len(found.counts[0]) == BINS
    assert (found.counts[0][0], found.counts[0][1], found.counts[0][-1]) == (2, 1, 1)
    assert found.quantiles[0]["median"] == pytest.approx((0.049 + 0.05) / 2)


def test_values_far_apart_get_a_logarithmic_scale_and_none_is_lost():
    values = np.array([1.5, 30.0, 2_000.0, 70_000.1])
    found = distribution([values], (1, None))
    assert found.logarithmic
    assert sum(found.counts[0]) == 4


def test_where_nothing_is_scored_there_is_no_distribution():
    assert distribution([np.array([np.nan])], (0, 1)) is None


def test_a_single_value_has_room_around_it():
    found = distribution([np.array([0.3, 0.3])], (0, 1))
    assert found.edges[0] < 0.3 < found.edges[-1]
    assert sum(found.counts[0]) == 2


def test_slices_of_a_report_are_those_of_a_run_made_with_by(runs, tmp_path):
    good = runs[0]
    (kind,) = [own for own in slices_of(good) if own.column == "kind"]
    config = msgspec.structs.replace(good.info.config, by=["kind"])
    asked = evaluate(list(good.samples()), config=config, output=tmp_path / "asked")
    expected = asked.results["slices"]["kind"]
    assert not kind.asked
    assert kind.counts == {value: own["n"] for value, own in expected.items()}
    for value, own in expected.items():
        for name, entry in own["metrics"].items():
            for key in ("value", "stderr", "low", "high", "n_scored", "n_total"):
                assert getattr(kind.values[value][name], key) == entry[key]
    (again,) = [own for own in slices_of(asked) if own.column == "kind"]
    assert again.asked


def test_a_column_in_which_every_sample_differs_is_no_slice(runs):
    assert "number" not in {own.column for own in slices_of(runs[0])}


def test_samples_that_lack_a_column_are_a_slice(tmp_path):
    records = [
        {"id": str(n), "references": ["a dog"], "generated_answer": "a dog", **({"hue": "red"} if n < 2 else {})}
        for n in range(5)
    ]
    run = evaluate(records, metrics="rouge_l", output=tmp_path / "run")
    (own,) = slices_of(run)
    assert own.counts == {"red": 2, "(none)": 3}


def test_runs_are_paired_by_id_whatever_their_order(tmp_path):
    records = [{"id": str(n), "references": ["a b c d"], "generated_answer": "a b c d"[: 2 * n + 1]} for n in range(4)]
    one = evaluate(records, metrics="rouge_l", output=tmp_path / "one")
    two = evaluate(records[::-1], metrics="rouge_l", output=tmp_path / "two")
    first, second = scored_rows([one, two], ["one", "two"])
    assert np.array_equal(first.values["rouge_l"], second.values["rouge_l"])
    assert second.places.tolist() == [3, 2, 1, 0]


def test_the_whole_content(runs):
    comparison = compare_runs(runs, allow_partial=True, rounds=100)
    content = content_of(runs, ["good", "bad"], comparison=comparison)
    assert (content.main, content.numbers) == ("composite_score", ["rouge_l", "exact_match", "composite_score"])
    assert content.title == "mine: good and bad"
    # The second run failed at s6, which is therefore unscored, and nothing else is.
    unscored = next(group for group in content.groups if group.kind == "unscored")
    assert [sample.id for sample in unscored.samples] == ["s6"]
    answers = unscored.samples[0].answers
    assert (answers[0].error, answers[1].error) == (None, "timed out")
    assert answers[1].scores["rouge_l"].status == "error"
    assert set(content.cards) == {"rouge_l", "exact_match"}
    assert content.charts["forest"].rows[0].label == "rouge_l"


def test_what_is_drawn_does_not_grow_with_the_run(tmp_path):
    def charts(count):
        records = [
            {"id": str(n), "references": ["a b c d e"], "generated_answer": "a b c d e"[: n % 10], "part": f"p{n % 3}"}
            for n in range(count)
        ]
        run = evaluate(records, metrics="rouge_l", output=tmp_path / str(count), by=["part"])
        return msgspec.to_builtins(content_of([run], ["run"]).charts)

    def numbers(value):
        if isinstance(value, dict):
            return sum(map(numbers, value.values()))
        return sum(map(numbers, value)) if isinstance(value, list) else 1

    assert numbers(charts(60)) == numbers(charts(600))


def test_only_the_rows_of_the_chosen_samples_become_objects(tmp_path, monkeypatch):
    records = [{"id": str(n), "references": ["a dog"], "generated_answer": f"a dog {n}"} for n in range(500)]
    run = evaluate(records, metrics="rouge_l", output=tmp_path / "run")
    monkeypatch.setattr(Run, "samples", None)  # would read them all
    scored = scored_rows([run], ["run"])
    chosen = choose(scored, "rouge_l", 3)
    shown = [sample for group in shown_samples(scored, chosen, fetch=False) for sample in group]
    assert [sample.id for sample in shown] == [str(row) for group in chosen for row in group.rows]


def test_references_given_several_times_are_shown_once(tmp_path):
    record = {"id": "1", "references": ["red"] * 3 + ["blue"], "generated_answer": "red"}
    run = evaluate([record], metrics="exact_match", output=tmp_path / "run")
    (group,) = content_of([run], ["run"]).groups
    assert [count for _, count in group.samples[0].references] == [3, 1]


def test_names_of_one_chart_stay_apart_however_long_they_are():
    begin, end = "a value that begins like another one: " * 2, " and ends like it too"
    found = _labels([f"{begin}{number}{end}" for number in range(3)] + ["short", begin + "1", begin + "2"])
    assert len(set(found.values())) == 6
    assert found["short"] == "short"
    assert found[begin + "1"].endswith("1")
    assert found[begin + "2"].endswith("2")
    assert max(map(len, found.values())) <= 44


def test_a_chart_marks_what_should_be_low(tmp_path):
    samples = [
        Sample(str(number), references=["a cat"], generated_answer="a cat sat" if number else "a dog")
        for number in range(4)
    ]
    run = evaluate(samples, metrics=["rouge_l"], output=tmp_path / "run")
    lower = msgspec.structs.replace(run.outcome.metrics["rouge_l"], direction="lower")
    run.outcome = msgspec.structs.replace(run.outcome, metrics={"rouge_l": lower})
    charts = content_of([run], ["run"]).charts
    assert {row.label for row in charts["overview"].rows} == {"rouge_l ↓"}


def test_any_run_of_labels_has_its_confusion_matrix(tmp_path):
    # Gold a, a, b, b; predicted a, b, b, and a failure, which is left out: [[1, 1], [0, 1]]. F1: 2/3 and 2/3.
    gold, said = ["a", "a", "b", "b"], ["a", "b", "b", "[ERROR] timed out"]
    samples = [
        Sample(str(number), expected_answer=own, generated_answer=answer)
        for number, (own, answer) in enumerate(zip(gold, said, strict=True))
    ]
    run = evaluate(samples, metrics=["f1_strict"], output=tmp_path / "run")
    found = content_of([run], ["run"]).runs[0].classification
    assert found.official == "strict"
    assert found.labels == ["a", "b"]
    assert found.scores["strict"].confusion_matrix == [[1, 1], [0, 1]]
    assert found.scores["strict"].macro_f1.value == run.entries["f1_strict"].value == pytest.approx(2 / 3)


def test_a_run_of_very_many_labels_has_no_matrix(tmp_path):
    samples = [Sample(str(number), expected_answer=f"l{number}", generated_answer="l1") for number in range(60)]
    run = evaluate(samples, metrics=["f1_strict"], output=tmp_path / "run")
    assert content_of([run], ["run"]).runs[0].classification is None


def valued(value):
    return SimpleNamespace(value=value)


def test_the_headline_is_the_composite_or_the_first_number_with_a_value():
    assert headline({"a": valued(0.1), "composite_score": valued(0.2)}) == "composite_score"
    assert headline({"a": valued(0.1), "composite_score": valued(None)}) == "a"
    assert headline({"a": valued(None), "b": valued(0.3), "c": valued(0.4)}) == "b"
    assert headline({"a": valued(None), "b": valued(None)}) == "a"
    assert headline({"a": valued(1), "b": valued(2)}, {"a": valued(None), "b": valued(3)}) == "b"
