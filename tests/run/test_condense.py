"""The state that a run keeps lacks what no score needs, and nothing else changes by that."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample, evaluate, rescore
from multimodal_eval.core.metric import FunctionMetric
from multimodal_eval.run import plan as planning
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from tests.golden.load import golden

METRICS = ["cider", "cider_d"]


@pytest.fixture(scope="module")
def captioned():
    """Four hundred captions with five references each, odd ones included."""
    captions = golden("captions.json.gz")
    pairs = zip(captions["candidates"], captions["references"], strict=True)
    return [Sample(id=str(n), generated_answer=text, references=texts) for n, (text, texts) in enumerate(pairs)]


def files(run):
    return {file.name: file.read_bytes() for file in (run.path / "scores").iterdir()}


def test_values_and_signatures_are_those_of_the_whole_table(captioned, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "PART_SIZE", 100)
    less = evaluate(captioned, metrics=METRICS, output=tmp_path / "less")
    with monkeypatch.context() as patch:
        patch.setattr(FunctionMetric, "condense", lambda self, state: state)
        whole = evaluate(captioned, metrics=METRICS, output=tmp_path / "whole")
    assert len(less.info["parts"]) > 2
    assert files(less) == files(whole)
    assert less.results == whole.results
    assert less.info["signatures"] == whole.info["signatures"]
    for name in METRICS:
        kept, all_of_it = (DocumentFrequencies.load(run.folder.state_path(name)) for run in (less, whole))
        assert all_of_it.condensed() == kept
        assert 0 < len(kept) < len(all_of_it) / 2


def test_a_stored_state_weighs_another_run_as_before(captioned, tmp_path, monkeypatch):
    less = evaluate(captioned, metrics=["cider"])
    state = less.folder.state_path("cider")
    again = evaluate(captioned, metrics=["cider"], options={"cider": {"df": str(state)}})
    assert again.scores().column("cider").equals(less.scores().column("cider"))
    digest = less["cider"]["signature"].rpartition("@")[2]
    assert again["cider"]["signature"].endswith(f"df:cider.bin@{digest}")


def test_a_run_of_an_earlier_version_is_still_reused(captioned, monkeypatch):
    """Its state is the whole table; the signature, and with it every score, stays the same."""
    with monkeypatch.context() as patch:
        patch.setattr(FunctionMetric, "condense", lambda self, state: state)
        earlier = evaluate(captioned[:50], metrics=["cider"])

    def computed(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr("multimodal_eval.run.part.score_batch", computed)
    assert rescore(earlier, {"seed": 5}).scores().equals(earlier.scores())
