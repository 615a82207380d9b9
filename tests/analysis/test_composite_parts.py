"""The parts of a composite as they enter it, and groups of one sample."""

from __future__ import annotations

import math

import pytest

from multimodal_eval import Sample, evaluate, metric
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.composite import composite_parts
from multimodal_eval.core.metric import configured
from multimodal_eval.core.scoring import kind_of
from multimodal_eval.evaluation.metrics_registry import resolve

LENGTHS = (1, 3, 8)


@pytest.fixture
def run(tmp_path):
    @metric("words", needs=("generated_answer",), bounds=(0, None))
    def words(sample):
        return float(len(sample.generated_answer.split()))

    def scored(tasks=None, samples=None, **settings):
        mine = {
            "metrics": ["words", "exact_match"],
            "weights": {"words": 0.75, "exact_match": 0.25},
            "maximum": {"words": 4},
        }
        samples = samples or [
            Sample(str(n), generated_answer=" ".join(["dog"] * n), references=["dog"]) for n in LENGTHS
        ]
        return evaluate(samples, task="mine", tasks={"mine": {**mine, **(tasks or {})}}, **settings)

    return scored


def test_parts_enter_normalised(run):
    # Words 1, 3, 8, divided by 4 and at most 1: 0.25, 0.75, 1, with the mean 2/3. Only "dog" matches exactly: 1/3.
    # Composites: 0.75 * 0.25 + 0.25, 0.75 * 0.75, 0.75 * 1, with the mean 0.75 * 2/3 + 0.25 / 3 = 7/12.
    composite = composite_parts(run())
    assert composite.explanation == "composite_score is the mean of the composites of 3 samples"
    assert composite.value == pytest.approx(7 / 12)
    words, exact = composite.parts
    assert (words.enters_as, words.weight) == ("min(words / 4, 1)", 0.75)
    assert (words.mean, words.contribution) == pytest.approx((2 / 3, 0.5))
    assert (exact.enters_as, exact.mean, exact.contribution) == (
        "exact_match",
        pytest.approx(1 / 3),
        pytest.approx(1 / 12),
    )
    # The mean of the raw values, 4 words, would be more than the maximum.
    assert run().entries["words"].value == 4


@pytest.mark.parametrize("on_missing", ["error", "zero", "renormalise"])
def test_contributions_add_up(run, on_missing):
    samples = [
        Sample("1", generated_answer="dog", references=["dog"]),
        Sample("2", generated_answer="dog dog"),  # no exact_match
        Sample("3", generated_answer="a dog", references=["dog"]),
    ]
    scored = run({"on_missing": on_missing}, samples)
    composite = composite_parts(scored)
    assert composite.samples == scored.outcome.composite.n_scored == (2 if on_missing == "error" else 3)
    assert math.fsum(part.contribution for part in composite.parts) == pytest.approx(scored.outcome.composite.value)


def test_a_composite_that_is_a_metric_has_no_parts(run):
    assert composite_parts(run({"weights": None, "headline": "exact_match"})) is None
    assert (
        composite_parts(evaluate([Sample("1", generated_answer="a", references=["a"])], metrics=["exact_match"]))
        is None
    )


def test_kinds_of_scores(run):
    scored = run()
    assert {name: scored.kind_of(name) for name in scored.entries} == dict.fromkeys(scored.entries, "mean")
    samples = [
        Sample(str(n), generated_answer="a dog", references=["a dog"], expected_answer="a dog") for n in range(3)
    ]
    corpus = evaluate(samples, metrics=["bleu", "rouge_l", "f1_strict"])
    assert [corpus.kind_of(name) for name in corpus.entries] == ["corpus", "mean", "corpus"]
    assert corpus.kind_of("bleu.bleu_1") == "corpus"
    assert corpus.results["kinds"]["bleu.bleu_1"] == "corpus"


def test_the_kind_of_a_perplexity_is_that_of_its_average():
    perplexity = resolve("perplexity")
    assert kind_of(configured(perplexity, {"average": "samples"})) == "mean"
    assert kind_of(configured(perplexity, {"average": "tokens"})) == "corpus"
    assert kind_of(configured(perplexity, {"average": "tokens"}), "tokens") == "mean"


def grouped(groups):
    return [
        Sample(str(n), generated_answer="a dog " * (n % 3), references=["a dog a dog"], group=group)
        for n, group in enumerate(groups)
    ]


@pytest.mark.parametrize("groups", [range(12), [*range(11), None], [None] * 12])
def test_groups_of_one_sample_are_no_groups(groups, tmp_path):
    groups = [None if group is None else f"g{group}" for group in groups]
    alone = evaluate(grouped([None] * 12), metrics=["rouge_l", "bleu"], output=tmp_path / "a")
    run = evaluate(grouped(groups), metrics=["rouge_l", "bleu"], output=tmp_path / "b")
    assert run.results == alone.results
    comparison = compare_runs([run, evaluate(grouped(groups), metrics=["rouge_l"], output=tmp_path / "c")])
    assert [number.clusters for number in comparison.numbers] == [None]


def test_real_groups_are_groups():
    pairs = evaluate(grouped([f"g{n // 2}" for n in range(12)]), metrics=["rouge_l"])
    assert "6 clusters" in pairs.entries["rouge_l"].method
