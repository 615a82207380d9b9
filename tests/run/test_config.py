"""Invalid settings of a run are refused before anything is scored."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample, evaluate, metric
from multimodal_eval.core.errors import ConfigError
from tests.run.caption_samples import samples


def test_options_for_a_metric_that_does_not_run_are_refused():
    with pytest.raises(ConfigError, match="does not compute"):
        evaluate(samples(), metrics=["cider"], options={"clip_score": {}})


def test_unknown_settings_of_evaluate_are_refused():
    with pytest.raises(ConfigError, match="Did you mean 'limit'"):
        evaluate(samples(), metrics=["cider"], limits=3)


def test_neither_task_nor_metrics():
    with pytest.raises(ConfigError, match="name a task"):
        evaluate(samples())


def test_too_many_slices_are_refused_before_scoring(tmp_path):
    many = [Sample(id=str(i), references=[f"a {i}"], generated_answer="a") for i in range(201)]
    with pytest.raises(ConfigError, match="more than 200"):
        evaluate(many, metrics=["cider"], by=["id"], output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_mistakes_in_settings_are_not_sample_errors():
    with pytest.raises(ConfigError, match="regular expression"):
        evaluate(samples(), metrics=["cider"], error_patterns=["("])
    with pytest.raises(ConfigError, match=r"`tokenizer` of cider must be one of ptb, .*Got 'ptbb' instead"):
        evaluate(samples(), metrics=["cider"], options={"cider": {"df": "coco-val2014", "tokenizer": "ptbb"}})


@pytest.mark.parametrize("name", ["id", "row", "group", "composite_score", "a.b", "a:b", "a/b", ""])
def test_metric_names_that_a_run_cannot_store_are_refused(name):
    with pytest.raises(ConfigError, match="cannot name a metric"):
        metric(name)(lambda sample: 0.5)


def test_a_single_metric_may_be_a_string():
    assert evaluate(samples(), metrics="cider").metrics == ["cider"]


def test_columns_of_fields_are_merged_field_by_field(tmp_path):
    file = tmp_path / "data.jsonl"
    file.write_text('{"qid": "1", "a": "a cat", "b": "a dog", "text": "What?", "references": ["a dog"]}\n')
    columns = {"generated_answer": "b", "question": "text"}
    run = evaluate(file, metrics=["rouge_l"], config={"map": {"id": "qid", "prediction": "a"}}, map=columns)
    assert run.info.config.map == {
        "id": "qid",
        "generated_answer": "b",
        "question": "text",
    }  # not `prediction`
    (sample,) = run.samples()
    assert (sample.id, sample.generated_answer, sample.question) == ("1", "a dog", "What?")
