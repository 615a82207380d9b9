"""Perplexity: computed by hand, from the data and by a language model, and refused inputs."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Rows, Sample, evaluate
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics.perplexity import compute_perplexity, perplexity
from tests.golden.load import golden
from tests.models.language import tiny_llama
from tests.reference import naive_llama


def scores_of(samples, **options):
    metric = configured(compute_perplexity, options)
    return score_batch(metric, metric.open(None), samples)


def test_values_computed_by_hand():
    # probabilities 1/2, 1/8: their product is 1/16, its square root 1/4
    assert perplexity([log(1 / 2), log(1 / 8)]) == pytest.approx(4)
    assert perplexity([0.0, 0.0]) == 1
    assert perplexity([-log(10)]) == pytest.approx(10)


@given(st.lists(st.floats(-50, 0), min_size=1, max_size=30))
def test_it_is_the_inverse_of_the_geometric_mean(values):
    assert perplexity(values) == pytest.approx(float(np.prod(np.exp(values) ** (1 / len(values)))) ** -1, rel=1e-9)
    assert perplexity(values) >= 1


@pytest.mark.parametrize("values", [[0.5], [-1, float("nan")], [float("inf")]])
def test_the_message_asks_about_a_missing_minus_sign(values):
    with pytest.raises(InputError, match=r"Is the minus sign missing\?"):
        perplexity(values)


def test_no_tokens_and_impossible_tokens_have_no_perplexity():
    with pytest.raises(InputError, match="no tokens"):
        perplexity([])
    for values in ([float("-inf")], [-1e300], [-1000.0]):
        with pytest.raises(InputError, match="infinite"):
            perplexity(values)


def test_values_from_the_data():
    samples = [
        Sample(id="a", perplexity=7.5, logprobs=[-1.0]),
        Sample(id="b", logprobs=[log(1 / 2), log(1 / 8)]),
        Sample(id="c", generated_answer="a dog"),
        Sample(id="d", logprobs=[]),
        Sample(id="e", generated_answer=" ", perplexity=1.0),
    ]
    first, second, third, fourth, fifth = scores_of(samples)
    assert (first.value, first.stats) == (7.5, None)
    assert second.value == pytest.approx(4)
    assert second.parts == {"tokens": 2}
    assert third.status == "missing_input"
    assert "--option perplexity.source=model" in third.reason
    assert (fourth.status, fifth.status) == ("degenerate", "degenerate")
    assert compute_perplexity(samples[1]) == pytest.approx(4)


@pytest.mark.parametrize("value", [0.5, -3.0, 0.0, float("inf"), float("nan")])
def test_an_invalid_perplexity_in_the_data_is_an_error(value):
    (score,) = scores_of([Sample(id="a", perplexity=value)])
    assert (score.value, score.status) == (None, "error")
    assert "Is the minus sign missing?" in score.reason
    (score,) = scores_of([Sample(id="a", logprobs=[-1.0, 2.0])])
    assert "Is the minus sign missing?" in score.reason


def rows_of(scores):
    stats = None if scores[0].stats is None else np.array([score.stats for score in scores])
    return Rows(np.array([score.value for score in scores]), stats)


def test_the_mean_of_samples_and_the_perplexity_of_all_tokens():
    samples = [Sample(id="a", logprobs=[-1.0, -2.0, -3.0]), Sample(id="b", logprobs=[-4.0])]
    mean = compute_perplexity.aggregate(rows_of(scores_of(samples)))
    assert mean.value == pytest.approx((exp(2) + exp(4)) / 2)
    by_tokens = configured(compute_perplexity, {"average": "tokens"})
    corpus = by_tokens.aggregate(rows_of(scores_of(samples, average="tokens")))
    assert corpus.value == pytest.approx(exp(10 / 4))
    assert "average:tokens" in str(signature_of(by_tokens))
    assert "average:samples" in str(signature_of(compute_perplexity))
    (score,) = scores_of([Sample(id="a", perplexity=3.0)], average="tokens")
    assert (score.status, score.reason) == ("missing_input", "no logprobs, which averaging over tokens needs")


@given(st.lists(st.lists(st.floats(-9, -0.01), min_size=1, max_size=5), min_size=3, max_size=8))
def test_influence_is_the_effect_of_a_samples_weight(logprobs):
    metric = configured(compute_perplexity, {"average": "tokens"})
    rows = rows_of(
        scores_of([Sample(id=str(i), logprobs=values) for i, values in enumerate(logprobs)], average="tokens")
    )
    estimate = metric.aggregate(rows)
    step = 1e-6
    for number in range(len(rows)):  # with slightly more weight on one row
        sums = rows.stats.sum(0) + step * len(rows) * (rows.stats[number] - rows.stats.mean(0))
        moved = (exp(sums[0] / sums[1]) - estimate.value) / step
        assert estimate.influence[number] == pytest.approx(moved, rel=1e-2, abs=1e-2 * estimate.value)


# --- with a model ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path):
    tensors, config = tiny_llama.write(tmp_path / "tiny")
    return {"source": "model", "model": str(tmp_path / "tiny")}, tensors, config


def surprise(tensors, config, text):
    return [-value for value in naive_llama.log_probabilities(tensors, config, list(text.encode()))]


def test_a_model_reads_the_answer(tiny):
    options, tensors, config = tiny
    (score,) = scores_of([Sample(id="a", generated_answer="a dog")], **options)
    expected = surprise(tensors, config, "a dog")
    assert score.value == pytest.approx(exp(sum(expected) / 4), rel=1e-3)
    assert score.stats == pytest.approx((sum(expected), 4), rel=1e-3)
    assert score.parts == {"tokens": 4}


def test_an_answer_after_its_prompt(tiny):
    options, tensors, config = tiny
    samples = [
        Sample(id="a", prompt=" Look. ", question="what?\n", generated_answer=" a dog "),
        Sample(id="b", question="what?", generated_answer="a dog"),
        Sample(id="c", prompt=" ", generated_answer="a dog"),
    ]
    both, question, neither = scores_of(samples, context="prompt", **options)
    expected = surprise(tensors, config, "Look. what? a dog")[-6:]  # " a dog" is scored, the rest is only read
    assert both.stats == pytest.approx((sum(expected), 6), rel=1e-3)
    expected = surprise(tensors, config, "what? a dog")[-6:]
    assert question.value == pytest.approx(exp(sum(expected) / 6), rel=1e-3)
    assert (neither.status, neither.value) == ("missing_input", None)


def test_texts_without_a_perplexity_are_unscored(tiny):
    options, _, _ = tiny
    answers = ["", "  \n", "a", "ab", None]
    scores = scores_of([Sample(id=str(i), generated_answer=answer) for i, answer in enumerate(answers)], **options)
    assert [score.status for score in scores] == ["degenerate", "degenerate", "degenerate", "ok", "missing_input"]
    scores = scores_of([Sample(id="a", generated_answer="a")], bos=True, **options)
    assert scores[0].parts == {"tokens": 1}


def test_a_whole_run(tiny, tmp_path):
    options, tensors, config = tiny
    lines = [
        '{"id": "1", "generated_answer": "a dog"}',
        '{"id": "2", "generated_answer": "cats"}',
        '{"id": "3", "generated_answer": " "}',
    ]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    run = evaluate(
        tmp_path / "answers.jsonl", metrics=["perplexity"], options={"perplexity": options}, output=tmp_path / "run"
    )
    expected = surprise(tensors, config, "a dog") + surprise(tensors, config, "cats")
    assert run["perplexity"]["value"] == pytest.approx(exp(sum(expected) / len(expected)), rel=1e-3)
    assert (run["perplexity"]["n_scored"], run["perplexity"]["n_total"]) == (2, 3)


def test_a_run_with_perplexities_and_logprobs_in_the_data(tmp_path):
    lines = ['{"id": "1", "perplexity": 3.0}', '{"id": "2", "logprobs": [-1.0, -1.0]}']
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    run = evaluate(tmp_path / "answers.jsonl", metrics=["perplexity"], output=tmp_path / "run")
    assert run["perplexity"]["value"] == pytest.approx((3 + exp(1)) / 2)


def test_a_missing_model_is_reported_before_a_run():
    assert compute_perplexity.unavailable() is None
    metric = configured(compute_perplexity, {"source": "model"})
    assert "mmeval fetch smollm2-135m" in metric.unavailable()
    assert "model:smollm2-135m@44a656ce|" in str(signature_of(metric))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sorce": "model"}, "Did you mean 'source'"),
        ({"source": "magic"}, "one of given, model"),
        ({"context": "image"}, "one of none, prompt"),
        ({"average": "words"}, "one of default, samples, tokens"),
        ({"window": 1}, "below `window`"),
        ({"stride": 4096}, "below `window`"),
        ({"window": "2048"}, "`window` of perplexity must be a whole number. Got '2048' instead"),
        ({"bos": "yes"}, "must be true or false"),
        ({"model": 3}, "must be a name"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ConfigError, match=message):
        configured(compute_perplexity, options)


@pytest.mark.weights
def test_the_default_model(weights):
    recorded = golden("perplexity.json.gz")["texts"]
    samples = [Sample(id=str(i), generated_answer=entry["text"]) for i, entry in enumerate(recorded[:4])]
    unsupported = [
        Sample(id="ru", generated_answer="Собака бежит по пляжу"),
        Sample(id="de", generated_answer="Der Hund ist auf dem Feld und die Katze"),
    ]
    scores = scores_of(samples + unsupported, source="model")
    for entry, score in zip(recorded, scores[:4], strict=False):
        assert score.value == pytest.approx(exp(entry["loss"]), rel=1e-4)
    for score in scores[4:]:
        assert score.status == "degenerate"
        assert "a language that smollm2-135m" in score.reason
    assert "|model:smollm2-135m@" in str(signature_of(configured(compute_perplexity, {"source": "model"})))


def test_its_interval_is_computed_on_the_logarithm():
    """Two perplexities, 10 and 1000, each of one token: the corpus has 100, since the mean log is 2 ln 10 = ln 100.

    The influence of the logarithm is ±ln 10, s = sqrt 2 ln 10, so its standard error s / sqrt 2 is ln 10; t with one
    degree of freedom is 12.7062.
    """
    samples = [Sample(id=str(n), logprobs=[-log(value)]) for n, value in enumerate((10, 1000))]
    run = evaluate(samples, metrics=["perplexity"], options={"perplexity": {"average": "tokens"}})
    entry = run["perplexity"]
    assert entry["value"] == pytest.approx(100)
    assert entry["low"] == 1  # no perplexity is lower: 100 * exp(-12.7062 * log(10)) is 2e-11
    assert entry["high"] == pytest.approx(100 * exp(12.7062 * log(10)), rel=1e-3)
    assert "of the logarithm" in entry["method"]


def test_a_missing_directory_appears_under_its_name():
    metric = configured(compute_perplexity, {"source": "model", "model": "no/such"})
    assert "model:no/such|" in str(signature_of(metric))
