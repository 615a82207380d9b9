"""Runs whose scores are weighted sums over strata: values by hand, errors, comparisons and rescoring."""

from __future__ import annotations

import json
from math import sqrt

import numpy as np
import pytest

from multimodal_eval import Sample, Score, evaluate, load_run, metric, rescore
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.config import StrataConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.score import unscored
from tests.cli.command_line import mmeval

# kind, group, value. x: groups g1 (.2, .4), g2 (1), g3 (.6, .6, .9); y: g4 (0, .5), g5 (.75)
ROWS = [
    ("x", "g1", 0.2),
    ("y", "g4", 0.0),
    ("x", "g1", 0.4),
    ("x", "g2", 1.0),
    ("y", "g5", 0.75),
    ("x", "g3", 0.6),
    ("x", "g3", 0.6),
    ("y", "g4", 0.5),
    ("x", "g3", 0.9),
]
WEIGHTS = {"x": 0.3, "y": 0.7}


@pytest.fixture(autouse=True)
def register_metrics():
    """Metrics that parse the answer as a number."""

    @metric("parsed", needs=("generated_answer",), bounds=(0, 1), version="1")
    def parsed(sample: Sample) -> Score:
        answer = str(sample.generated_answer)
        return unscored("error", "marked as broken") if answer == "broken" else Score(float(answer))

    @metric("doubled", needs=("generated_answer",), bounds=(0, 2), version="1")
    def doubled(sample: Sample) -> float:
        return 2 * float(str(sample.generated_answer))


def data(rows=ROWS):
    return [
        {"id": str(index), "group": group, "kind": kind, "generated_answer": str(value)}
        for index, (kind, group, value) in enumerate(rows)
    ]


def strata(weights=WEIGHTS, by="kind"):
    return {"strata": {"by": by, "weights": dict(weights)}}


def scored(rows=ROWS, weights=WEIGHTS, **settings):
    return evaluate(data(rows), config=strata(weights), **({"metrics": "parsed"} | settings))


def test_the_value_and_its_error_by_hand():
    # x: (.3 + 1 + .7) / 3 = 2/3, y: (.25 + .75) / 2 = .5; .3 * 2/3 + .7 * .5 = .55
    # s_x^2 = 37/300, s_y^2 = .125: .09 * 37/900 + .49 * .125 / 2 = .0037 + .030625
    entry = scored()["parsed"]
    assert entry["value"] == pytest.approx(0.55, abs=1e-15)
    assert entry["stderr"] == pytest.approx(sqrt(0.034325), rel=1e-12)
    assert entry["low"] < 0.55 < entry["high"]
    assert entry["method"].endswith("5 clusters in 2 strata")


def test_without_groups_each_sample_is_a_cluster():
    rows = [(kind, None, value) for kind, _, value in ROWS]
    # x: (.2 + .4 + 1 + .6 + .6 + .9) / 6 = 3.7/6, y: 1.25/3
    entry = scored(rows)["parsed"]
    assert entry["value"] == pytest.approx(0.3 * 3.7 / 6 + 0.7 * 1.25 / 3, abs=1e-15)
    assert entry["method"].endswith("9 samples in 2 strata")


def test_every_metric_is_weighted_the_same_way():
    run = evaluate(
        data(),
        config=strata()
        | {
            "tasks": {
                "mine": {
                    "metrics": ["parsed", "doubled"],
                    "weights": {"parsed": 0.5, "doubled": 0.5},
                    "maximum": {"doubled": 2.0},
                }
            }
        },
        task="mine",
    )
    assert run["doubled"]["value"] == pytest.approx(1.1, abs=1e-15)
    assert run.results["composite"]["value"] == pytest.approx(0.55, abs=1e-15)
    assert run.results["composite"]["stderr"] == pytest.approx(sqrt(0.034325), rel=1e-12)


def test_slices_are_means_over_their_groups():
    run = scored(by=["kind", "group"])
    by_kind = run.results["slices"]["kind"]
    assert by_kind["x"]["metrics"]["parsed"]["value"] == pytest.approx(2 / 3, abs=1e-15)
    assert by_kind["y"]["metrics"]["parsed"]["value"] == pytest.approx(0.5, abs=1e-15)
    assert by_kind["x"]["metrics"]["parsed"]["stderr"] == pytest.approx(sqrt(37 / 900), rel=1e-12)
    assert by_kind["x"]["n"] == 6
    single = run.results["slices"]["group"]["g3"]["metrics"]["parsed"]  # one group: no interval
    assert (single["value"], single["stderr"]) == (pytest.approx(0.7), None)


def test_the_signature_contains_the_strata():
    run = scored()
    assert run["parsed"]["signature"] == "parsed|v:1|errors:default@2|strata:0.3*x+0.7*y|by:kind|unit:group"
    assert run.info.config.strata == StrataConfig(by="kind", weights=WEIGHTS)


def test_a_weight_of_0_leaves_a_stratum_out():
    entry = scored(weights={"x": 1, "y": 0})["parsed"]
    assert (entry["value"], entry["n_scored"]) == (pytest.approx(2 / 3, abs=1e-15), 9)


def test_unscored_samples_are_left_out_of_their_groups():
    rows = [*ROWS[:3], ("x", "g2", "broken"), *ROWS[4:]]
    entry = scored(rows)["parsed"]
    # x without g2: (.3 + .7) / 2 = .5
    assert (entry["value"], entry["n_scored"]) == (pytest.approx(0.3 * 0.5 + 0.7 * 0.5, abs=1e-15), 8)


def test_a_stratum_without_scores_gives_no_value_and_a_reason():
    rows = [(kind, group, "broken" if kind == "y" else value) for kind, group, value in ROWS]
    entry = scored(rows)["parsed"]
    assert (entry["value"], entry["stderr"], entry["n_scored"]) == (None, None, 6)
    assert entry["method"] == "no value: no scored sample in the stratum 'y'"
    assert scored(rows, weights={"x": 1, "y": 0})["parsed"]["value"] == pytest.approx(2 / 3, abs=1e-15)


def test_nothing_scored():
    entry = scored([(kind, group, "broken") for kind, group, _ in ROWS], allow_empty=True)["parsed"]
    assert (entry["value"], entry["method"]) == (None, "nothing scored")


# Errors. None of them leaves a folder.


def refused(tmp_path, message, samples=None, **settings):
    with pytest.raises(ConfigError, match=message):
        evaluate(samples or data(), output=tmp_path / "run", **({"metrics": "parsed"} | settings))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("bleu", "bleu is not a mean over samples"),
        ("meteor", "meteor is not a mean over samples"),
        ("f1_strict", "f1_strict is not a mean"),
    ],
)
def test_a_metric_that_is_not_a_mean_is_an_error(tmp_path, meteor_data, metrics, message):
    refused(tmp_path, message, metrics=metrics, config=strata())


def test_variants_of_meteor_that_are_means_are_accepted(meteor_data):
    rows = [row | {"references": ["1"]} for row in data()]
    options = {"meteor": {"variant": "fmean", "synonyms": "none"}}
    run = evaluate(rows, metrics="meteor", options=options, config=strata())
    assert "variant:fmean" in run["meteor"]["signature"]


def test_a_perplexity_over_tokens_is_not_a_mean():
    rows = [row | {"logprobs": [-0.5, -1.0]} for row in data()]
    with pytest.raises(ConfigError, match="perplexity is not a mean over samples"):
        evaluate(rows, metrics="perplexity", options={"perplexity": {"average": "tokens"}}, config=strata())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"x": 1.0}, "kind 'y' has no weight"),
        ({"x": 0.3, "yy": 0.7}, "kind 'y' has no weight. Did you mean 'yy'"),
        ({"x": 0.3, "y": 0.3, "z": 0.4}, "no sample has the kind 'z', but it has a weight"),
        ({"x": 0.3, "y": 0.6}, "WEIGHTS: .*the strata by 'kind'.*must sum to 1. They sum to 0.89"),
        ({"x": 1.3, "y": -0.3}, "WEIGHTS: the weight of 'y'"),
    ],
)
def test_weights_and_values_that_do_not_match(tmp_path, weights, message):
    refused(tmp_path, message, config=strata(weights))


def test_a_value_with_no_weight_and_no_sample_is_fine():
    assert scored(weights=WEIGHTS | {"z": 0})["parsed"]["value"] == pytest.approx(0.55, abs=1e-15)


def test_a_column_that_no_sample_has(tmp_path):
    refused(tmp_path, r"strata: sort '\(none\)' has no weight", config=strata(by="sort"))


def test_a_group_in_two_strata(tmp_path):
    rows = [("y" if number == 2 else kind, group, value) for number, (kind, group, value) in enumerate(ROWS)]
    refused(tmp_path, "strata: the group 'g1' has samples with more than one kind", data(rows), config=strata())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"strata": {"by": "kind", "weight": {}}}, "no setting is named 'weight'. Did you mean 'weights'"),
        ({"strata": {"by": "kind"}}, "weights"),
        ({"strata": {"weights": {"x": 1}}}, "by"),
        ({"strata": {"by": "kind", "weights": {"x": "1"}}}, "`strata.weights.x` must be a number. Got '1' instead."),
    ],
)
def test_settings_that_cannot_be_read(tmp_path, config, message):
    refused(tmp_path, message, config=config)


# Comparing and rescoring.


def better(rows=ROWS, step=0.05):
    return [
        (kind, group, min(1.0, value + step * (1 + number % 3))) for number, (kind, group, value) in enumerate(rows)
    ]


def many(count=30):
    random = np.random.default_rng(3)
    return [
        ("xyy"[number % 3], f"g{number % 3}-{number // 6}", round(float(v), 3))
        for number, v in enumerate(random.random(count))
    ]


def test_a_comparison_of_two_runs_uses_the_strata(tmp_path):
    first, second = many(), better(many())
    a, b = scored(first, output=tmp_path / "a"), scored(second, output=tmp_path / "b")
    (result,) = compare_runs([a, b]).numbers
    assert [system.value for system in result.systems] == [a["parsed"]["value"], b["parsed"]["value"]]
    assert [system.low for system in result.systems] == [a["parsed"]["low"], b["parsed"]["low"]]
    (pair,) = result.pairs
    assert pair.difference == b["parsed"]["value"] - a["parsed"]["value"]
    # By hand: the groups' mean differences within each kind.
    variance = 0.0
    for kind, weight in WEIGHTS.items():
        groups = {}
        for (row_kind, group, before), (_, _, after) in zip(first, second, strict=True):
            if row_kind == kind:
                groups.setdefault(group, []).append(after - before)
        means = [np.mean(values) for values in groups.values()]
        variance += weight**2 * np.var(means, ddof=1) / len(means)
    assert pair.stderr == pytest.approx(sqrt(variance), rel=1e-9)
    assert "within strata" in pair.method
    assert pair.verdict == "better"


def test_runs_with_different_or_no_weights_are_not_compared(tmp_path):
    a = scored(output=tmp_path / "a")
    b = scored(weights={"x": 0.5, "y": 0.5}, output=tmp_path / "b")
    c = evaluate(data(), metrics="parsed", output=tmp_path / "c")
    with pytest.raises(ConfigError, match="parsed cannot be compared, its signatures differ: strata is"):
        compare_runs([a, b])
    for runs in ([a, c], [c, a]):
        with pytest.raises(ConfigError, match="its signatures differ: strata is"):
            compare_runs(runs)


def test_the_order_of_the_samples_does_not_matter(tmp_path):
    rows = data(many())
    reversed_order = evaluate(rows[::-1], metrics="parsed", config=strata())["parsed"]
    in_order = evaluate(rows, metrics="parsed", config=strata())["parsed"]
    assert (reversed_order["value"], reversed_order["method"]) == (in_order["value"], in_order["method"])
    a = evaluate(rows, metrics="parsed", config=strata(), output=tmp_path / "a")
    b = evaluate(data(better(many()))[::-1], metrics="parsed", config=strata(), output=tmp_path / "b")
    (result,) = compare_runs([a, b]).numbers
    assert result.systems[1].value == b["parsed"]["value"]


def test_rescoring_with_different_weights_reuses_the_scores(tmp_path):
    calls = []

    @metric("counted", needs=("generated_answer",), bounds=(0, 1), version="1")
    def counted(sample: Sample) -> float:
        calls.append(sample.id)
        return float(str(sample.generated_answer))

    old = scored(metrics="counted", output=tmp_path / "old")
    assert len(calls) == 9
    new = rescore(old, strata({"x": 0.5, "y": 0.5}), output=tmp_path / "new")
    assert new["counted"]["value"] == pytest.approx((2 / 3 + 0.5) / 2, abs=1e-15)
    assert new["counted"]["signature"] == "counted|v:1|errors:default@2|strata:0.5*x+0.5*y|by:kind|unit:group"
    assert len(calls) == 9  # weights do not change the scores of samples
    by_group = rescore(old, strata({"x": 0.3, "y": 0.7}), output=tmp_path / "same")
    assert by_group["counted"] == old["counted"]


def test_rescoring_adds_strata_to_a_run_without_them(tmp_path):
    old = evaluate(data(), metrics="parsed", output=tmp_path / "old")
    assert old["parsed"]["value"] == pytest.approx(4.95 / 9)
    assert rescore(old, strata())["parsed"]["value"] == pytest.approx(0.55, abs=1e-15)


@pytest.mark.parametrize(
    ("weights", "message"),
    [({"x": 1.0}, "kind 'y' has no weight"), (WEIGHTS | {"y": 0, "z": 0.7}, "no sample has the kind 'z'")],
)
def test_rescoring_refuses_weights_that_do_not_match(tmp_path, weights, message):
    old = scored(output=tmp_path / "old")
    with pytest.raises(ConfigError, match=message):
        rescore(old, strata(weights), output=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_command_takes_strata_from_its_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "id": str(number),
            "group": group,
            "kind": kind,
            "generated_answer": "cat",
            "references": ["cat" if value > 0.5 else "dog"],
        }
        for number, (kind, group, value) in enumerate(ROWS)
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "run.yaml").write_text("metrics: [rouge_l]\nstrata: {by: kind, weights: {x: 0.3, y: 0.7}}\n")
    mmeval("score", "data.jsonl", "--config", "run.yaml", "-o", "run")
    # x: g1 0, g2 1, g3 1: 2/3; y: g4 0, g5 1: 1/2
    assert load_run("run")["rouge_l"]["value"] == pytest.approx(0.3 * 2 / 3 + 0.7 / 2, abs=1e-15)


# The settings of a composite's parts count too.


def composite(folder, **options):
    rows = [
        {
            "id": str(number),
            "references": ["a cat sat on the mat"],
            "generated_answer": "a cat sat" + " down" * (number % 3),
            "perplexity": 2.0,
        }
        for number in range(8)
    ]
    task = {"metrics": ["meteor", "hidden_metric"], "weights": {"meteor": 0.5, "hidden_metric": 0.5}}
    return evaluate(
        rows,
        task="mine",
        tasks={"mine": task},
        options={"meteor": {"variant": "fmean", "synonyms": "none"} | options},
        output=folder,
    )


def test_composites_of_parts_with_different_settings_are_not_compared(tmp_path):
    a, b = composite(tmp_path / "a"), composite(tmp_path / "b", variant="2005")
    assert a.results["composite"]["signature"] == b.results["composite"]["signature"]  # it has only the parts' names
    with pytest.raises(ConfigError, match="meteor cannot be compared, its signatures differ: variant is 'fmean' in a"):
        compare_runs([a, b], metrics=["composite"])
    c = composite(tmp_path / "c")
    (result,) = compare_runs([a, c], metrics=["composite"]).numbers
    assert result.pairs[0].difference == 0


def test_other_metrics_may_have_different_settings(tmp_path):
    a, b = composite(tmp_path / "a"), composite(tmp_path / "b", variant="2005")
    (result,) = compare_runs([a, b], metrics=["hidden_metric"]).numbers
    assert result.pairs[0].difference == 0


def test_a_headline_with_different_settings_is_not_compared(tmp_path):
    def run_with(name, tokenizer):
        rows = [{"id": str(n), "references": ["a cat sat"], "generated_answer": "a cat"} for n in range(8)]
        return evaluate(
            rows,
            task="mine",
            tasks={"mine": {"metrics": ["meteor"], "headline": "meteor"}},
            options={"meteor": {"variant": "fmean", "synonyms": "none", "tokenizer": tokenizer}},
            output=tmp_path / name,
        )

    with pytest.raises(ConfigError, match=r"meteor cannot be compared.*tokenizer is 'unicode' in a and 'ptb' in b"):
        compare_runs([run_with("a", "unicode"), run_with("b", "ptb")], metrics=["composite"])
