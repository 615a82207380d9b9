"""Comparison and sensitivity of runs: pairing, errors, and consistency with the runs."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

from multimodal_eval import Sample, evaluate, metric
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.composite import sensitivity
from multimodal_eval.core.errors import ConfigError, InputError, UnknownNameError
from tests.edited_runs import accept_changes

WORDS = "a the dog cat runs sits red blue on in beach street two big small".split()


def samples(seed, quality, count=60, **fields):
    """Answers that keep each reference word with probability `quality`; references are the same for all seeds."""
    references, chooser = random.Random(7), random.Random(seed)
    rows = []
    for index in range(count):
        reference = [references.choice(WORDS) for _ in range(8)]
        answer = [word if chooser.random() < quality else chooser.choice(WORDS) for word in reference]
        rows.append(
            {"id": f"s{index}", "references": [" ".join(reference)], "generated_answer": " ".join(answer)} | fields
        )
    return rows


@pytest.fixture
def make(tmp_path):
    def make_run(name, data, **settings):
        return evaluate(data, output=tmp_path / name, **({"metrics": ["rouge_l", "bleu"]} | settings))

    return make_run


def test_the_difference_equals_that_of_the_runs(make):
    a, b = make("a", samples(1, 0.5)), make("b", samples(2, 0.8))
    comparison = compare_runs([a, b])
    assert comparison.runs == ("a", "b")
    for result in comparison.numbers:
        (pair,) = result.pairs
        assert [system.value for system in result.systems] == [a[result.name]["value"], b[result.name]["value"]]
        assert [system.low for system in result.systems] == [a[result.name]["low"], b[result.name]["low"]]
        assert pair.difference == pytest.approx(b[result.name]["value"] - a[result.name]["value"])
        assert pair.low < pair.difference < pair.high
        assert pair.wins + pair.ties + pair.losses == 60
        assert pair.verdict == "better"
        assert [system.rank for system in result.systems] == [2, 1]
    backwards = compare_runs([b, a]).numbers[0].pairs[0]
    assert backwards.difference == -comparison.numbers[0].pairs[0].difference
    assert (backwards.verdict, backwards.wins) == ("worse", comparison.numbers[0].pairs[0].losses)


COMPOSITE = {"task": "captions", "tasks": {"captions": {"metrics": ["rouge_l"], "weights": {"rouge_l": 1.0}}}}


@pytest.mark.parametrize(
    ("settings", "name"), [({"metrics": ["exact_match"]}, "exact_match"), (COMPOSITE, "composite")]
)
def test_the_interval_of_a_difference_ends_where_a_difference_can(make, settings, name):
    # Both scores are in [0, 1]. The t interval of the differences 1, 1, 0 would end at 2/3 + 4.303 / 3 = 2.1.
    good = [{"id": key, "references": ["red"], "generated_answer": "red"} for key in "abc"]
    bad = [{**sample, "generated_answer": "blue"} for sample in good[:2]]
    a, b = make("a", [*bad, good[2]], **settings), make("b", good, **settings)
    (pair,) = compare_runs([a, b], metrics=[name]).numbers[0].pairs
    # The score test of 2 gains in 3 samples: z = 2 / sqrt(2), p = .157.
    assert (pair.difference, pair.p_value) == (pytest.approx(2 / 3), pytest.approx(0.1573, abs=1e-4))
    assert -1 < pair.low < 0 < pair.high < 1


def test_a_smaller_value_can_be_better(make):
    @metric("words", needs=("generated_answer",), direction="lower", version="1")
    def words(sample: Sample) -> float:
        return float(len((sample.generated_answer or "").split()))

    short = [row | {"generated_answer": "a dog"} for row in samples(1, 1.0)]
    a, b = make("a", samples(1, 0.5), metrics=["words"]), make("b", short, metrics=["words"])
    (result,) = compare_runs([a, b]).numbers
    assert result.pairs[0].difference == -6
    assert (result.pairs[0].verdict, result.pairs[0].wins) == ("better", 60)


def test_the_order_of_the_samples_does_not_matter(make):
    a, b = make("a", samples(1, 0.5)), make("b", samples(2, 0.6))
    shuffled = samples(2, 0.6)
    random.Random(3).shuffle(shuffled)
    c = make("c", shuffled)
    first, second = (compare_runs([a, other]).numbers[1].pairs[0] for other in (b, c))
    assert (first.difference, first.p_value, first.stderr) == (second.difference, second.p_value, second.stderr)


def test_ids_that_are_not_in_all_runs_are_an_error(make):
    a, b = make("a", samples(1, 0.5)), make("b", samples(1, 0.5)[2:])
    with pytest.raises(InputError, match="the sample is not in the run b") as refused:
        compare_runs([a, b])
    assert [problem.id for problem in refused.value.problems] == ["s0", "s1"]


def test_unscored_pairs_are_left_out_and_counted(make):
    broken = samples(2, 0.8)
    broken[0]["generated_answer"] = "[ERROR] no answer"
    a, b = make("a", samples(1, 0.5)), make("b", broken)
    with pytest.raises(ConfigError, match=r"1 of 60 samples is unscored in at least one run, more than 1%"):
        compare_runs([a, b])
    result = compare_runs([a, b], allow_partial=True, metrics=["bleu"]).numbers[0]
    assert (result.samples, result.left_out) == (59, 1)
    alone = make("alone", samples(1, 0.5)[1:])
    assert result.systems[0].value == pytest.approx(alone["bleu"]["value"])  # the corpus score of the 59


def test_one_unscored_pair_among_many_is_not_an_error(make):
    broken = samples(2, 0.8, count=200)
    broken[0]["generated_answer"] = "[ERROR] no answer"
    comparison = compare_runs([make("a", samples(1, 0.5, count=200)), make("b", broken)])
    assert {result.left_out for result in comparison.numbers} == {1}


def test_different_signatures_are_an_error_that_names_the_difference(make):
    a = make("a", samples(1, 0.5))
    b = make("b", samples(2, 0.5), options={"rouge_l": {"tokenizer": "whitespace"}})
    with pytest.raises(ConfigError, match="tokenizer is 'ptb' in a and 'whitespace' in b"):
        compare_runs([a, b])
    assert [result.name for result in compare_runs([a, b], metrics=["bleu"]).numbers] == ["bleu"]


def test_different_references_for_the_same_id_are_an_error(make):
    other = samples(2, 0.5)
    other[3]["references"] = ["zebra " + other[3]["references"][0]]
    with pytest.raises(
        ConfigError, match=r"1 sample with different questions, references or annotations in b than in a: 's3'"
    ):
        compare_runs([make("a", samples(1, 0.5)), make("b", other)])


def test_different_choices_for_the_same_id_are_an_error(make):
    other = samples(2, 0.5, choices=["a", "b"])
    other[3]["choices"] = ["b", "a"]
    a = make("a", samples(1, 0.5, choices=["a", "b"]))
    with pytest.raises(ConfigError, match=r"1 sample with different questions.* in b than in a: 's3'"):
        compare_runs([a, make("b", other)])


def test_an_older_run_folder_without_newer_columns_can_be_compared(make):
    old = make("old", samples(1, 0.5))
    part = old.folder.part("samples", 0)
    pq.write_table(pq.read_table(part).drop_columns(["choices"]), part)
    accept_changes(old.path)
    assert compare_runs([old, make("b", samples(2, 0.5, choices=["a", "b"]))]).numbers


def test_a_metric_without_scores_is_an_error_and_fails_the_baseline(make):
    a = make("a", samples(1, 0.5))
    b = make("b", [row | {"generated_answer": None} for row in samples(1, 0.5)], metrics=["rouge_l"], allow_empty=True)
    c = make("c", samples(1, 0.5), metrics=["rouge_l"])
    with pytest.raises(ConfigError, match="rouge_l has no scored sample in the run b"):
        compare_runs([a, b], metrics=["rouge_l"])
    comparison = compare_runs([a, c])
    assert comparison.left_out == ("bleu",)
    assert comparison.worse_than_baseline() == ["bleu is not scored in all runs"]


def test_groups_are_the_units(make):
    grouped = [row | {"group": str(index // 10)} for index, row in enumerate(samples(1, 0.5))]
    other = [row | {"group": str(index // 10)} for index, row in enumerate(samples(2, 0.55))]
    result = compare_runs([make("a", grouped), make("b", other)]).numbers[0]
    assert result.clusters == 6
    assert result.pairs[0].method == "95% interval by randomization, 6 clusters"
    moved = [row | {"group": "x"} for row in other]
    with pytest.raises(ConfigError, match="different groups"):
        compare_runs([make("c", grouped), make("d", moved)])


def test_several_runs_are_ranked_with_ties(make):
    runs = [make("low", samples(1, 0.2)), make("high", samples(2, 0.9)), make("same", samples(3, 0.9))]
    result = compare_runs(runs, metrics=["rouge_l"]).numbers[0]
    assert [system.rank for system in result.systems] == [3, 1, 1]
    assert len(result.pairs) == 3
    assert [system.ranks for system in result.systems] == [(3, 3), (1, 2), (1, 2)]
    for pair in result.pairs:  # p and the interval hold for all pairs
        assert (pair.p_value < 0.05) == (not pair.low <= 0 <= pair.high)
    (alone,) = compare_runs(runs[1:], metrics=["rouge_l"]).numbers[0].pairs
    assert result.pairs[2].p_value > alone.p_value
    assert result.pairs[2].high - result.pairs[2].low > alone.high - alone.low
    against = compare_runs(runs, metrics=["rouge_l"], baseline="high").numbers[0]
    assert [(pair.first, pair.second) for pair in against.pairs] == [("high", "low"), ("high", "same")]
    assert [system.rank for system in against.systems] == [None, None, None]


def test_parts_and_unknown_names(make):
    runs = [make("a", samples(1, 0.5)), make("b", samples(2, 0.6))]
    assert (
        compare_runs(runs, metrics=["bleu.bleu_1"]).numbers[0].systems[0].value
        == runs[0]["bleu"]["parts"]["bleu_1"]["value"]
    )
    with pytest.raises(UnknownNameError, match="rouge"):
        compare_runs(runs, metrics=["rouge"])
    with pytest.raises(UnknownNameError, match="bleu_9"):
        compare_runs(runs, metrics=["bleu.bleu_9"])
    with pytest.raises(UnknownNameError, match="nobody"):
        compare_runs(runs, baseline="nobody")
    with pytest.raises(ConfigError, match="at least two"):
        compare_runs(runs[:1])
    with pytest.raises(ConfigError, match="with itself"):
        compare_runs([runs[0], runs[0]])


def test_samples_needed_for_an_effect(make):
    runs = [make("a", samples(1, 0.5)), make("b", samples(2, 0.6))]
    pair = compare_runs(runs, metrics=["rouge_l"], effect=0.01).numbers[0].pairs[0]
    # 60 samples detect `detectable`; an effect of .01 needs (detectable / .01)^2 times as many
    assert pair.needed == int(np.ceil(60 * (pair.detectable / 0.01) ** 2))


def test_p_values_do_not_depend_on_the_threads(make):
    runs = [make("a", samples(1, 0.5)), make("b", samples(2, 0.55))]
    serial, parallel = (compare_runs(runs, seed=5, threads=threads).to_dict() for threads in (1, 4))
    assert json.dumps(serial) == json.dumps(parallel)


# Sensitivity.

TASK = {"mine": {"metrics": ["rouge_l", "cider"], "weights": {"rouge_l": 0.75, "cider": 0.25}}}


def test_the_composite_equals_that_of_the_run(make):
    run = make("a", samples(1, 0.6), metrics=None, task="mine", tasks=TASK)
    result = sensitivity([run])
    (composite,) = result.runs
    assert composite.value == pytest.approx(run["composite"]["value"])
    assert composite.low < composite.value < composite.high
    assert sum(part.effective for part in composite.parts) == pytest.approx(1)
    assert composite.parts[0].without == pytest.approx(run["cider"]["value"])
    assert composite.ranks == ()
    assert result.flips == ()


@pytest.mark.parametrize("on_missing", ["error", "zero", "renormalise"])
def test_missing_parts_count_as_in_the_run(make, on_missing):
    @metric("half", needs=("generated_answer",), bounds=(0, 1), version="1")
    def half(sample: Sample) -> float | None:
        return None if int(sample.id[1:]) % 3 == 0 else 0.5

    weights = {"rouge_l": 0.5, "half": 0.5}
    settings = {"metrics": None, "task": "mine", "tasks": {"mine": {"weights": weights, "on_missing": on_missing}}}
    runs = [make(name, samples(seed, 0.6), **settings) for name, seed in (("a", 1), ("b", 2))]
    alone = sensitivity(runs[:1])
    assert alone.runs[0].value == pytest.approx(runs[0]["composite"]["value"])
    assert alone.samples == runs[0]["composite"]["n_scored"]
    if on_missing == "error":
        with pytest.raises(ConfigError, match="20 of 60 samples are unscored"):
            sensitivity(runs)
    both = sensitivity(runs, allow_partial=True)
    assert [result.value for result in both.runs] == pytest.approx([run["composite"]["value"] for run in runs])
    assert both.left_out == (20 if on_missing == "error" else 0)


def test_the_ranking_under_random_weights(make):
    settings = {"metrics": None, "task": "mine", "tasks": TASK}
    runs = [make(name, samples(seed, quality), **settings) for name, seed, quality in (("a", 1, 0.3), ("b", 2, 0.9))]
    result = sensitivity(runs)
    assert result.flips == (("a", "b", 0.0),)
    assert [run.ranks for run in result.runs] == [(0.0, 1.0), (1.0, 0.0)]


def test_runs_without_a_weighted_composite_are_refused(make):
    with pytest.raises(ConfigError, match="has no composite"):
        sensitivity([make("a", samples(1, 0.6))])
    other = {"mine": TASK["mine"] | {"weights": {"rouge_l": 0.5, "cider": 0.5}}}
    runs = [
        make(name, samples(1, 0.6), metrics=None, task="mine", tasks=task) for name, task in (("b", TASK), ("c", other))
    ]
    with pytest.raises(ConfigError, match="weights"):
        sensitivity(runs)


def column_metric(name):
    @metric(name, bounds=(0, 1))
    def compute(sample):
        return sample.metadata[name]

    return compute


def test_the_sample_that_carries_a_difference_is_named(make):
    part = column_metric("carried")
    first = np.linspace(0.2, 0.4, 20)
    second = first + 0.002
    second[7] += 0.5
    runs = [
        make(name, _rows({"carried": values}), metrics=[part.name]) for name, values in (("a", first), ("b", second))
    ]
    carrier = compare_runs(runs).numbers[0].pairs[0].carried_by
    # 20 * .002 + .5 = .54, of which the sample has .502; the other 19 differ by .002
    assert (carrier.sample, carrier.share) == ("s7", pytest.approx(0.502 / 0.54))
    assert carrier.without == pytest.approx(0.002)


def _rows(columns):
    keys = list(columns)
    return [
        {
            "id": f"s{index}",
            "references": ["a"],
            "generated_answer": "a",
            "metadata": dict(zip(keys, values, strict=True)),
        }
        for index, values in enumerate(zip(*columns.values(), strict=True))
    ]


def test_other_metrics_are_corrected_for_their_number_and_so_is_the_gate(make):
    chooser = np.random.default_rng(12)
    names = [f"m{number}" for number in range(6)]
    for name in names:
        column_metric(name)
    first = {name: chooser.uniform(0.4, 0.6, 40) for name in names}
    shifts = dict.fromkeys(names, 0.0) | {"m0": -0.018, "m3": -0.018}
    second = {name: first[name] + chooser.normal(shifts[name], 0.05, 40) for name in names}
    runs = [make(name, _rows(columns), metrics=names) for name, columns in (("a", first), ("b", second))]
    comparison = compare_runs(runs)
    pairs = {each.name: each.pairs[0] for each in comparison.numbers}
    assert comparison.headline == "m0"
    assert pairs["m0"].p_metrics == pairs["m0"].p_value
    others = [pairs[name].p_value for name in names[1:]]
    assert pairs["m3"].p_metrics == pytest.approx(min(1, 5 * pairs["m3"].p_value))
    assert min(others) == pairs["m3"].p_value
    assert 0.01 < pairs["m3"].p_value < 0.05  # beyond chance alone, but not as one of five
    assert pairs["m3"].verdict == "no difference shown"
    assert "after Holm's correction for the 5 metrics other than the headline" in comparison.test
    # The gate corrects for all six.
    assert all(6 * pair.p_value > 0.05 for pair in pairs.values())
    assert comparison.worse_than_baseline() == []
    (alone,) = compare_runs(runs, metrics=["m3"]).worse_than_baseline()
    assert alone.startswith("b is worse than a in m3")


@pytest.mark.parametrize(
    ("shift", "margin", "shown"), [(0.0, 0.05, "equivalent"), (0.05, 0.02, "not inferior"), (0.0, 0.001, "not shown")]
)
def test_a_margin(make, shift, margin, shown):
    part = column_metric("with_margin")
    chooser = np.random.default_rng(4)
    first = chooser.uniform(0.3, 0.6, 60)
    second = first + chooser.normal(shift, 0.05, 60)
    runs = [
        make(name, _rows({"with_margin": values}), metrics=[part.name])
        for name, values in (("a", first), ("b", second))
    ]
    (pair,) = compare_runs(runs, margin=margin).numbers[0].pairs
    assert pair.margin == shown
    assert compare_runs(runs).numbers[0].pairs[0].margin is None


def test_composites_of_different_parts_are_not_compared(make):
    # b lacks the part "left" on the 40 samples where a fails it: its composites would be higher without being better.
    right = np.full(100, 0.5)
    left = np.where(np.arange(100) < 40, 0.1, 0.6)
    names = ["composed_left", "composed_right"]
    for name in names:
        column_metric(name)
    weights = dict.fromkeys(names, 0.5)
    settings = {"metrics": None, "task": "mine", "tasks": {"mine": {"weights": weights, "on_missing": "renormalise"}}}
    chooser = np.random.default_rng(3)
    a = make("a", _rows({"composed_left": left, "composed_right": right}), **settings)
    missing = [None if index < 40 else value for index, value in enumerate(left + chooser.normal(0, 0.01, 100))]
    b = make("b", _rows({"composed_left": missing, "composed_right": right}), **settings)
    with pytest.raises(ConfigError, match="40 of 100 samples"):
        compare_runs([a, b], metrics=["composite"])
    (both,) = compare_runs([a, b], metrics=["composite"], allow_partial=True).numbers
    assert (both.samples, both.left_out, both.parts) == (60, 40, tuple(names))
    assert abs(both.pairs[0].difference) < 0.01


def test_runs_are_called_as_the_call_says(make):
    runs = [make("x", samples(1, 0.5)), make("y", samples(2, 0.8))]
    compared = compare_runs(runs, names=["small", "large"], metrics=["rouge_l"], baseline="large")
    assert compared.runs == ("small", "large")
    assert [(pair.first, pair.second) for pair in compared.numbers[0].pairs] == [("large", "small")]
    for names in (["small"], ["small", "small"], ["small", ""], "ab"):
        with pytest.raises(ConfigError, match="`names` must have 2 different names"):
            compare_runs(runs, names=names)
