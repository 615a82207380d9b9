"""The batches of a single part run in threads if there are more cores than parts."""

from __future__ import annotations

from threading import Barrier

from multimodal_eval import Score, evaluate, metric
from tests.parts import set_limit
from tests.run.caption_samples import samples


def test_two_batches_run_at_the_same_time():
    meeting = Barrier(2, timeout=600)

    def scores(batch):
        if meeting is not None:
            meeting.wait()  # fails unless both batches are in progress
        return [Score(float(len(sample.id))) for sample in batch]

    @metric("id_length", batch=scores, version="1")
    def id_length(sample):
        return float(len(sample.id))

    data = samples(2 * 1024)  # two batches
    threaded = evaluate(data, metrics=["id_length"], workers=2)
    meeting = None
    assert evaluate(data, metrics=["id_length"], workers=1).scores().equals(threaded.scores())
    assert threaded.scores().column("id_length").to_pylist() == [float(len(sample.id)) for sample in data]


def test_captions_have_the_same_scores(monkeypatch):
    set_limit(monkeypatch, "batch", 7)
    data, metrics = samples(60), ["bleu", "cider_d", "rouge_l"]
    alone, threaded = (evaluate(data, metrics=metrics, workers=workers) for workers in (1, 5))
    assert threaded.scores().equals(alone.scores())
    assert threaded.results == alone.results
