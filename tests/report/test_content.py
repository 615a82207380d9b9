"""The content of reports on small runs, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from multimodal_eval import evaluate
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.pairing import ScoredRows, scored_rows
from multimodal_eval.analysis.run_slices import slices_of
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.wording import labels as short_labels
from multimodal_eval.report.build import content_of, report_html
from multimodal_eval.report.distributions import BINS, distribution
from multimodal_eval.report.samples import MAX_SAMPLES, choose, shown_samples
from tests.report.tables import table_of


class Entries:
    """A replacement for a run, with only the directions of its metrics."""

    def __init__(self, **directions):
        self.entries = {name: SimpleNamespace(direction=direction) for name, direction in directions.items()}


def rows(**values):
    arrays = {name: np.array(scores, dtype=float) for name, scores in values.items()}
    size = len(next(iter(arrays.values())))
    run = Entries(**{name: "lower" if name.startswith("low") else "higher" for name in arrays})
    return ScoredRows(run, "run", np.arange(size), arrays)


def test_the_main_metric_decides_the_worst_and_the_best():
    scored = rows(m=[0.5, 0.1, 0.9, 0.3, np.nan, 0.7, 0.2, 0.6])
    chosen = {group.kind: group.rows for group in choose([scored], "m", per_group=2)}
    assert chosen == {"worst": [1, 6], "best": [2, 5], "unscored": [4]}


def test_if_lower_is_better_the_highest_is_the_worst():
    chosen = {group.kind: group.rows for group in choose([rows(low=[5.0, 1.0, 9.0, 3.0])], "low")}
    assert (chosen["worst"], chosen["best"]) == ([2], [1])


def test_metrics_disagree_if_their_ranks_differ():
    # Ranks by a: (0.5, 1.5, … 7.5) / 8; by b the same, but samples 3 and 4 are swapped: 1 / 8 apart.
    a = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    b = [10, 20, 30, 50, 40, 60, 70, 80]
    chosen = choose([rows(a=a, b=b)], "a")
    disputed = next(group for group in chosen if group.kind == "disputed")
    assert (disputed.rows, disputed.measure) == ([3, 4], [0.125, 0.125])


def test_a_constant_metric_does_not_disagree():
    chosen = choose([rows(a=[0.1, 0.2, 0.3, 0.4], b=[1.0, 1.0, 1.0, 1.0])], "a")
    assert "disputed" not in {group.kind for group in chosen}


def test_runs_differ_by_their_values():
    # On sample 5 the runs are 0.5 apart, and its mean is neither the best nor the worst. Elsewhere the runs agree.
    first = rows(m=[0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.6, 0.8, 0.9, 1.0])
    second = rows(m=[0.1, 0.2, 0.3, 0.4, 0.5, 0.2, 0.6, 0.8, 0.9, 1.0])
    differing = next(group for group in choose([first, second], "m") if group.kind == "differing")
    assert (differing.rows, differing.measure) == ([5], [pytest.approx(0.5)])


def test_samples_shown_in_another_group_are_named():
    # The runs differ most on sample 0, which also has the lowest mean, then on sample 5.
    first = rows(m=[0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.6, 0.8, 0.9, 1.0])
    second = rows(m=[-0.9, 0.2, 0.3, 0.4, 0.5, 0.2, 0.6, 0.8, 0.9, 1.0])
    chosen = {group.kind: group for group in choose([first, second], "m")}
    assert chosen["worst"].rows[0] == 0
    assert chosen["differing"].rows == [5]
    assert chosen["differing"].elsewhere == [0]


@pytest.mark.parametrize("per_group", [1, 12, 50])
def test_no_sample_is_shown_twice_and_at_most_two_hundred_are_shown(per_group):
    values = np.random.default_rng(0).random((2, 3, 1_000))
    values[:, :, :300] = np.nan
    runs = [rows(a=a, b=b, c=c) for a, b, c in values]
    chosen = [row for group in choose(runs, "a", per_group) for row in group.rows]
    assert len(chosen) == len(set(chosen)) == min(5 * per_group, MAX_SAMPLES)


def test_a_distribution_counts_every_value_once():
    values = np.array([0.0, 0.049, 0.05, 1.0, np.nan])
    bins = distribution([values], (0, 1))
    assert bins.edges[:2] == [0.0, 0.05]
    assert len(bins.counts[0]) == BINS
    assert (bins.counts[0][0], bins.counts[0][1], bins.counts[0][-1]) == (2, 1, 1)
    assert bins.quantiles[0]["median"] == pytest.approx((0.049 + 0.05) / 2)


def test_a_logarithmic_scale_loses_no_value():
    values = np.array([1.5, 30.0, 2_000.0, 70_000.1])
    bins = distribution([values], (1, None))
    assert bins.logarithmic
    assert sum(bins.counts[0]) == 4


def test_a_metric_without_scores_has_no_distribution():
    assert distribution([np.array([np.nan])], (0, 1)) is None


def test_a_single_value_has_a_margin():
    bins = distribution([np.array([0.3, 0.3])], (0, 1))
    assert bins.edges[0] < 0.3 < bins.edges[-1]
    assert sum(bins.counts[0]) == 2


def test_slices_of_a_report_equal_those_of_a_run_with_by(runs, tmp_path):
    good = runs[0]
    (kind,) = [slices for slices in slices_of(good) if slices.column == "kind"]
    config = msgspec.structs.replace(good.info.config, by=["kind"])
    asked = evaluate(list(good.samples()), config=config, output=tmp_path / "asked")
    expected = asked.results["slices"]["kind"]
    assert not kind.asked
    assert kind.counts == {value: slice_["n"] for value, slice_ in expected.items()}
    for value, slice_ in expected.items():
        for name, entry in slice_["metrics"].items():
            for key in ("value", "stderr", "low", "high", "n_scored", "n_total"):
                assert getattr(kind.values[value][name], key) == entry[key]
    (again,) = [slices for slices in slices_of(asked) if slices.column == "kind"]
    assert again.asked


def test_a_column_of_unique_values_is_not_sliced(runs):
    assert "number" not in {slices.column for slices in slices_of(runs[0])}


def test_samples_without_the_column_form_a_slice(tmp_path):
    records = [
        {"id": str(n), "references": ["a dog"], "generated_answer": "a dog", **({"hue": "red"} if n < 2 else {})}
        for n in range(5)
    ]
    run = evaluate(records, metrics="rouge_l", output=tmp_path / "run")
    (slices,) = slices_of(run)
    assert slices.counts == {"red": 2, "(none)": 3}


def test_runs_in_any_order_are_paired_by_id(tmp_path):
    records = [{"id": str(n), "references": ["a b c d"], "generated_answer": "a b c d"[: 2 * n + 1]} for n in range(4)]
    run = evaluate(records, metrics="rouge_l", output=tmp_path / "one")
    reversed_run = evaluate(records[::-1], metrics="rouge_l", output=tmp_path / "two")
    first, second = scored_rows([run, reversed_run], ["one", "two"])
    assert np.array_equal(first.values["rouge_l"], second.values["rouge_l"])
    assert second.row_numbers.tolist() == [3, 2, 1, 0]


def test_the_whole_content(runs):
    comparison = compare_runs(runs, allow_partial=True, rounds=100)
    content = content_of(runs, ["good", "bad"], comparison=comparison)
    assert (content.main, content.metrics) == ("composite_score", ["rouge_l", "exact_match", "composite_score"])
    assert content.title == "mine: good and bad"
    # The second run failed on s6, so only s6 is unscored.
    unscored = next(group for group in content.groups if group.kind == "unscored")
    assert [sample.id for sample in unscored.samples] == ["s6"]
    answers = unscored.samples[0].answers
    assert (answers[0].error, answers[1].error) == (None, "timed out")
    assert answers[1].scores["rouge_l"].status == "error"
    assert set(content.cards) == {"rouge_l", "exact_match"}
    assert [section.id for section in content.results] == ["numbers", "comparison"]
    assert [section.id for section in content.details][:2] == ["why", "warnings"]
    (scores, *_) = content.results[0].blocks
    assert [row.figure.name for row in scores.rows[::2]] == ["rouge_l", "exact_match", "composite_score"]


def test_the_page_does_not_grow_with_the_run(tmp_path):
    def size(count):
        records = [
            {"id": str(n), "references": ["a b c d e"], "generated_answer": "a b c d e"[: n % 10], "part": f"p{n % 3}"}
            for n in range(count)
        ]
        run = evaluate(records, metrics="rouge_l", output=tmp_path / str(count), by=["part"])
        return len(report_html([run], ["run"], version="0", with_samples=False))

    assert abs(size(60) - size(600)) < 1_000


def test_only_the_rows_of_the_chosen_samples_become_objects(tmp_path, monkeypatch):
    records = [{"id": str(n), "references": ["a dog"], "generated_answer": f"a dog {n}"} for n in range(500)]
    run = evaluate(records, metrics="rouge_l", output=tmp_path / "run")
    monkeypatch.setattr(Run, "samples", None)  # would read them all
    scored = scored_rows([run], ["run"])
    chosen = choose(scored, "rouge_l", 3)
    shown = [sample for group in shown_samples(scored, chosen, fetch=False) for sample in group]
    assert [sample.id for sample in shown] == [str(row) for group in chosen for row in group.rows]


def test_repeated_references_are_shown_once(tmp_path):
    record = {"id": "1", "references": ["red"] * 3 + ["blue"], "generated_answer": "red"}
    run = evaluate([record], metrics="exact_match", output=tmp_path / "run")
    (group,) = content_of([run], ["run"]).groups
    assert [count for _, count in group.samples[0].references] == [3, 1]


def test_long_names_get_different_labels():
    begin, end = "a value that begins like another one: " * 2, " and ends like it too"
    labels = short_labels([f"{begin}{number}{end}" for number in range(3)] + ["short", begin + "1", begin + "2"])
    assert len(set(labels.values())) == 6
    assert labels["short"] == "short"
    assert labels[begin + "1"].endswith("1")
    assert labels[begin + "2"].endswith("2")
    assert max(map(len, labels.values())) <= 44


def test_metrics_for_which_lower_is_better_are_marked(tmp_path):
    samples = [
        Sample(str(number), references=["a cat"], generated_answer="a cat sat" if number else "a dog")
        for number in range(4)
    ]
    run = evaluate(samples, metrics=["rouge_l", "wer"], output=tmp_path / "run")
    marked = [row[0] for row in table_of(report_html([run], ["run"], version="0"), section="numbers")[1:]]
    assert marked[:2] == ["ROUGE-L ★", "WER ↓"]


def test_a_run_over_labels_has_a_confusion_matrix(tmp_path):
    # Gold a, a, b, b; predicted a, b, b, and a failure, which is left out: [[1, 1], [0, 1]]. F1: 2/3 and 2/3.
    gold, answers = ["a", "a", "b", "b"], ["a", "b", "b", "[ERROR] timed out"]
    samples = [
        Sample(str(number), expected_answer=label, generated_answer=answer)
        for number, (label, answer) in enumerate(zip(gold, answers, strict=True))
    ]
    run = evaluate(samples, metrics=["f1_strict"], output=tmp_path / "run")
    classification = content_of([run], ["run"]).runs[0].classification
    assert classification.official == "strict"
    assert classification.labels == ["a", "b"]
    assert classification.scores["strict"].confusion_matrix == [[1, 1], [0, 1]]
    assert classification.scores["strict"].macro_f1.value == run.entries["f1_strict"].value == pytest.approx(2 / 3)


def test_a_run_over_too_many_labels_has_no_matrix(tmp_path):
    samples = [Sample(str(number), expected_answer=f"l{number}", generated_answer="l1") for number in range(60)]
    run = evaluate(samples, metrics=["f1_strict"], output=tmp_path / "run")
    assert content_of([run], ["run"]).runs[0].classification is None


def test_a_page_for_participants_has_nothing_of_a_single_sample():
    records = [
        {
            "id": f"sample-{number}",
            "generated_answer": f"The gnu {number}.",
            "references": [f"zebra {number}" if number % 2 else f"gnu {number}"],
            "kind": f"quagga {number % 2}",  # a column with few values becomes slices
            "asked": f"size {number % 2}",
        }
        for number in range(40)
    ]
    rules = {"strict": {"rule": "none@1"}, "loose": {"rule": "squad@1.1"}}  # a crosswalk, which shows examples
    run = evaluate(
        records, metrics=list(rules), variants=dict.fromkeys(rules, "exact_match"), options=rules, by=["asked"]
    )
    secrets = ("zebra", "gnu", "quagga", "sample-3")
    pages = [report_html([run], ["run"], version="0", with_samples=shown) for shown in (True, False)]
    assert all(secret in pages[0] for secret in secrets)
    assert not any(secret in pages[1] for secret in secrets)
    assert 'id="crosswalk"' in pages[0]
    assert "size 1" in pages[1]  # the organiser asked for these slices
