"""What a notebook shows of a run: values, completion, and one table of samples and scores."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from multimodal_eval import evaluate, load_run
from multimodal_eval.core.errors import UnknownNameError

RECORDS = [
    {"id": "a", "generated_answer": "a dog runs", "references": ["a dog runs"], "language": "en", "bleu": 0.5},
    {"id": "b", "generated_answer": "a cat", "references": ["one cow sits"], "choices": {"A": "x"}, "question": "?"},
    {"id": "c", "generated_answer": "[ERROR] <b>", "references": ["x"], "boxes": [[0, 0, 1, 1]]},
]
METRICS = ["bleu", "exact_match", "vqa_accuracy"]


@pytest.fixture(scope="module")
def run():
    return evaluate(RECORDS, metrics=METRICS)


def test_the_names_of_the_results(run):
    names = ["bleu", "bleu_1", "bleu_2", "bleu_3", "exact_match", "vqa_accuracy", "vqa_accuracy.agreement"]
    assert run.keys() == names
    assert run._ipython_key_completions_() == names
    assert list(run) == names
    assert dict(run) == {name: run[name] for name in names}


def test_parts_by_name(run):
    parts = run["bleu"]["parts"]
    assert run["bleu_1"] == run["bleu.bleu_1"] == parts["bleu_1"]
    assert run["bleu_1"]["value"] > run["bleu"]["value"]
    assert run["bleu_4"] == run["bleu"]  # the metric is BLEU-4
    assert run["agreement"] == run["vqa_accuracy.agreement"] == run["vqa_accuracy"]["parts"]["agreement"]
    assert "bleu_1" in run
    assert "agreement" in run
    assert "cider" not in run
    assert 0 not in run


def test_an_unknown_name_gets_a_suggestion(run):
    with pytest.raises(KeyError) as unknown:
        run["exactmatch"]
    assert isinstance(unknown.value, UnknownNameError)
    assert str(unknown.value).startswith(
        "no result of this run is named 'exactmatch'. Did you mean 'exact_match'? Known: bleu, bleu_1,"
    )


def test_the_text_has_every_value_and_interval(run):
    lines = repr(run).splitlines()
    assert lines[0] == "Run of 3 samples, in a temporary folder; save(PATH) keeps it"
    assert lines[1].split() == ["metric", "value", "95%", "interval", "scored"]
    # One of two scored samples is right, so Wilson's interval is that of 1 in 2.
    assert [line.split() for line in lines if line.startswith("exact_match ")] == [
        ["exact_match", "0.5000", "0.0945", "…", "0.9055", "2", "/", "3"]
    ]
    assert [line.split()[0] for line in lines[2:] if "as wrong" not in line] == run.keys()
    assert max(map(len, lines)) <= 80


def test_the_text_of_a_kept_run_names_its_folder_and_the_notes(tmp_path):
    records = [{key: value for key, value in record.items() if key != "id"} for record in RECORDS[:2]]
    evaluate(records, metrics=["exact_match"], output=tmp_path / "run")
    text = repr(load_run(tmp_path / "run"))
    assert text.startswith(f"Run of 2 samples, in {tmp_path / 'run'}\n")
    assert text.endswith("\n! the samples have no ids: they are numbered from 0, in their order")


def test_a_metric_without_a_value_has_dashes():
    run = evaluate([{"id": "a", "generated_answer": "x"}], metrics=["exact_match", "chair_i"], allow_empty=True)
    assert run["exact_match"]["value"] is None
    lines = [line.split() for line in repr(run).splitlines()]
    assert ["exact_match", "–", "–", "0", "/", "1"] in lines
    assert any(line[:2] == ["chair_i", "↓"] for line in lines)


class Cells(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_html_is_well_formed_and_has_the_same_content(run, tmp_path):
    cells = Cells(run._repr_html_())
    assert cells.open == []
    text = " ".join(cells.texts)
    table, *notes = repr(run).split("\n! ")
    for part in re.findall(r"\d\.\d{4}|\d+ / \d+", table):
        assert part in text
    assert all(note in text for note in notes)
    assert f"{run['bleu_1']['value']:.4f}" in cells.texts
    assert run["bleu"]["signature"] in text
    odd = run.save(tmp_path / "<b>&amp;")
    assert f"run folder: {tmp_path / '<b>&amp;'}" in Cells(odd._repr_html_()).texts


def test_pandas_with_samples(run):
    frame = run.to_pandas(with_samples=True)
    assert list(frame.columns[:3]) == ["row", "id", "group"]
    assert list(frame["generated_answer"]) == [record["generated_answer"] for record in RECORDS]
    assert list(frame["references"]) == [record["references"] for record in RECORDS]
    assert frame["choices"][1] == {"A": "x"}
    assert frame["boxes"][2] == [{"box": (0.0, 0.0, 1.0, 1.0)}]
    assert frame["language"][0] == "en"
    assert frame["metadata.bleu"][0] == 0.5  # the score has the plain name
    scores = run.to_pandas(with_details=True)
    assert frame[list(scores.columns)].equals(scores)
    assert not {"audio", "metadata", "image"} & set(frame.columns)  # nothing has a value


def test_frames_have_ids_answers_and_scores(run):
    answers = [record["generated_answer"] for record in RECORDS]
    for frame in (run.to_pandas(), run.to_polars()):
        assert list(frame.columns)[:2] == ["id", "answer"]
        assert list(frame["answer"]) == answers
        assert not [name for name in frame.columns if ":" in name]
        assert {"bleu", "bleu.bleu_1"} <= set(frame.columns)


def test_polars_with_samples(run):
    frame = run.to_polars(with_samples=True)
    assert frame["references"].to_list() == [record["references"] for record in RECORDS]
    assert frame["language"].to_list() == ["en", None, None]
    scores = run.to_polars(with_details=True)
    assert frame.select(scores.columns).equals(scores)


def test_a_column_named_like_a_field_of_the_sample_is_kept():
    rows = [{"id": "a", "prediction": "x", "metadata": {"prompt": "y"}}]
    run = evaluate(rows, metrics="exact_match", allow_empty=True)
    assert run.to_pandas(with_samples=True)["metadata.prompt"][0] == "y"
