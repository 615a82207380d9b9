"""The stored state of a run omits entries that no score uses, without changing any score."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval._native import Captions
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from tests.golden.load import golden
from tests.parts import set_part_size

METRICS = ["cider", "cider_d"]


@pytest.fixture(scope="module")
def captioned():
    """Four hundred captions with five references each, including unusual ones."""
    captions = golden("captions.json.gz")
    pairs = zip(captions["candidates"], captions["references"], strict=True)
    return [Sample(id=str(n), generated_answer=text, references=texts) for n, (text, texts) in enumerate(pairs)]


def test_values_equal_those_of_the_full_table(captioned, tmp_path, monkeypatch):
    set_part_size(monkeypatch, 10)
    run = evaluate(captioned, metrics=METRICS, output=tmp_path / "run")
    assert len(run.info.parts) > 8  # so that there are several buckets
    whole = DocumentFrequencies.of(sample.references for sample in captioned)
    texts = [sample.generated_answer for sample in captioned], [sample.references for sample in captioned]
    captions = Captions(*texts, "ptb")
    for name in METRICS:
        assert run.scores().column(name).to_pylist() == getattr(captions, name)(whole.table).tolist()
        stored = DocumentFrequencies.load(run.path / "state" / f"{name}.bin")
        assert stored == whole.condensed()
        assert 0 < len(stored) < len(whole) / 2
    assert not (run.path / "scratch").exists()


def test_metrics_with_the_same_table_count_it_once(captioned, monkeypatch):
    counted = []
    original = DocumentFrequencies.of_column

    def counting(cls, references, tokenizer="ptb", first_rows=None):
        counted.append(tokenizer)
        return original(references, tokenizer, first_rows)

    monkeypatch.setattr(DocumentFrequencies, "of_column", classmethod(counting))
    run = evaluate(captioned, metrics=METRICS)
    assert counted == ["ptb"]
    evaluate(captioned, metrics=METRICS, options={"cider": {"tokenizer": "unicode"}})
    assert sorted(counted) == ["ptb", "ptb", "unicode"]
    assert run.info.signatures["cider"].settings["df"] == run.info.signatures["cider_d"].settings["df"]


def test_a_stored_state_can_be_used_in_another_run(captioned):
    first = evaluate(captioned, metrics=["cider"])
    state = first.path / "state" / "cider.bin"
    again = evaluate(captioned, metrics=["cider"], options={"cider": {"df": str(state)}})
    assert again.scores().column("cider").equals(first.scores().column("cider"))
    digest = str(first.info.signatures["cider"].settings["df"]).rpartition("@")[2]
    assert again["cider"]["signature"].endswith(f"df:cider.bin@{digest}|errors:default@2")
