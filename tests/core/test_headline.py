"""The headline: one rule for every display."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate, load_run, rescore
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.records import headline_of, leading_metric, shared_headline
from tests.edited_runs import write_json

SAMPLES = [
    Sample("1", generated_answer="a red dog", references=["a red dog runs"], group="x"),
    Sample("2", generated_answer="a cat", references=["a cat sleeps on a chair"], group="y"),
]
WEIGHTS = {"mine": {"metrics": ["rouge_l", "exact_match"], "weights": {"rouge_l": 0.5, "exact_match": 0.5}}}


def test_the_rule():
    assert leading_metric(["a", "composite_score"]) == "composite_score"
    assert leading_metric(["bleu", "cider_d"], presets=["coco"]) == "cider_d"
    assert leading_metric(["bleu", "rouge_l"], presets=["coco"]) == "bleu"  # a coco run that has no cider_d
    assert leading_metric(["b", "a"]) == "b"
    assert leading_metric(["a", "composite_score"], chosen="a") == "a"
    assert leading_metric(["a", "composite_score"], chosen="composite") == "composite_score"
    assert leading_metric([]) is None
    with pytest.raises(UnknownNameError, match="no metric of this run is named 'b'"):
        leading_metric(["a"], chosen="b")


def test_a_metric_without_a_value_leads_only_if_it_was_chosen_or_none_has_one():
    values = {"a": 0.1, "composite_score": None}
    assert leading_metric(["a", "composite_score"], values=values) == "a"
    assert leading_metric(["a", "composite_score"], values=values, chosen="composite") == "composite_score"
    assert leading_metric(["a", "b"], values={"a": None, "b": None}) == "a"


@given(st.lists(st.sampled_from(["a", "b", "cider_d", "composite_score"]), unique=True, min_size=1), st.booleans())
def test_the_headline_is_one_of_the_metrics(names, coco):
    assert leading_metric(names, presets=["coco"] if coco else []) in names


def test_a_run_declares_its_headline(tmp_path):
    run = evaluate(SAMPLES, metrics=["rouge_l", "exact_match"], output=tmp_path / "run")
    assert run.headline == run.info.headline == run.outcome.headline == run.results["headline"] == "rouge_l"
    chosen = evaluate(SAMPLES, metrics=["rouge_l", "exact_match"], headline="exact_match")
    assert chosen.headline == chosen.info.headline == "exact_match"
    composite = evaluate(SAMPLES, task="mine", tasks=WEIGHTS)
    assert composite.headline == "composite_score"
    assert evaluate(SAMPLES, task="mine", tasks=WEIGHTS, headline="rouge_l").headline == "rouge_l"
    # CIDEr-D needs different references per sample; that of `coco` leads although BLEU comes first.
    assert evaluate(SAMPLES, metrics=["coco"]).headline == "cider_d"


def test_a_headline_that_the_run_does_not_compute_is_refused():
    with pytest.raises(ConfigError, match=r"`headline`: this run does not compute 'cider'. It computes rouge_l"):
        evaluate(SAMPLES, metrics=["rouge_l"], headline="cider")
    with pytest.raises(ConfigError, match="`headline`: this run does not compute 'composite'"):
        evaluate(SAMPLES, metrics=["rouge_l"], headline="composite")


def test_a_run_of_an_older_version_gets_the_same_rule(tmp_path):
    run = evaluate(SAMPLES, metrics=["coco"], output=tmp_path / "run")
    for name, record in (("run.json", run.info), ("results.json", run.outcome)):
        content = msgspec.to_builtins(record)
        del content["headline"]
        content.pop("kinds", None)
        write_json(tmp_path / "run" / name, content)
    old = load_run(tmp_path / "run")
    assert (old.info.headline, old.outcome.headline) == (None, None)
    assert old.headline == headline_of(old.info) == "cider_d"
    assert old.kind_of("rouge_l") == "mean"  # run.json lists the means
    assert old.kind_of("bleu") is None


def test_other_metrics_have_their_own_headline(tmp_path):
    run = evaluate(SAMPLES, metrics=["rouge_l", "exact_match"], headline="exact_match", output=tmp_path / "run")
    assert rescore(run, {"seed": 1}).headline == "exact_match"
    assert rescore(run, {"metrics": ["rouge_l"]}).headline == "rouge_l"
    assert rescore(run, {"headline": "rouge_l"}).headline == "rouge_l"


def test_runs_side_by_side():
    first = evaluate(SAMPLES, metrics=["rouge_l", "exact_match"], headline="exact_match")
    second = evaluate(SAMPLES, metrics=["exact_match", "rouge_l"], headline="rouge_l")
    third = evaluate(SAMPLES, metrics=["rouge_l"])
    assert shared_headline([(run.info, run.outcome) for run in (first, second)]) == "exact_match"
    assert shared_headline([(run.info, run.outcome) for run in (first, third)]) == "rouge_l"
    assert shared_headline([(first.info, first.outcome)]) == "exact_match"
