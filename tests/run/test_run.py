"""A run end to end: its files, its messages, and independence of the part size."""

from __future__ import annotations

import json

import numpy as np
import pytest

import multimodal_eval
from multimodal_eval import Sample, evaluate, load_run, metric
from multimodal_eval.core.errors import ConfigError, RunFolderError
from tests.edited_runs import stored_json
from tests.parts import set_part_size
from tests.run.caption_samples import METRICS, PLUGIN, samples


def test_the_content_of_the_folder(tmp_path):
    run = evaluate(samples(), metrics=METRICS, plugins=[PLUGIN], output=tmp_path / "run", seed=3)
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert info["state"] == "done"
    assert info["seed"] == 3
    assert info["counts"]["samples"] == 50
    assert set(info["signatures"]) == set(METRICS)
    assert info["versions"]["multimodal_eval"] == multimodal_eval.__version__
    assert stored_json(tmp_path / "run" / "results.json") == run.results
    assert list(run.samples()) == samples()
    table = run.scores()
    assert table.column("id").to_pylist() == [sample.id for sample in samples()]
    assert table.column("cider:status").to_pylist()[0] == "missing_input"
    assert table.column("corpus_precision:stats").to_pylist()[1] == [6.0, 7.0]


def test_the_checksum_of_a_file_is_stored(tmp_path):
    from hashlib import sha256

    data = tmp_path / "data.jsonl"
    data.write_text('{"id": "a", "generated_answer": "x y"}\n{"id": "b", "generated_answer": "x"}\n')
    run = evaluate(data, metrics=["rarity"], plugins=[PLUGIN])
    (source,) = run.info.input
    assert source.sha256 == sha256(data.read_bytes()).hexdigest()


@pytest.mark.parametrize("size", [1, 7, 49, 50, 1000])
def test_parts_of_any_size_give_the_same_results(monkeypatch, size):
    whole = evaluate(samples(), metrics=METRICS, plugins=[PLUGIN], by=["system"])
    set_part_size(monkeypatch, size)
    parts = evaluate(samples(), metrics=METRICS, plugins=[PLUGIN], by=["system"])
    assert len(parts.info.parts) == -(-50 // size)
    assert parts.results == whole.results
    assert parts.scores().equals(whole.scores()) or parts.scores().to_pylist() == whole.scores().to_pylist()


def test_an_aggregate_that_is_not_a_mean(tmp_path):
    run = evaluate(samples(), metrics=["corpus_precision"], plugins=[PLUGIN], by=["system"])
    rows = [row for row in run.scores().to_pylist() if row["corpus_precision"] is not None]
    hits, words = np.array([row["corpus_precision:stats"] for row in rows]).T
    entry = run["corpus_precision"]
    assert entry["value"] == hits.sum() / words.sum()
    assert entry["value"] != np.mean([row["corpus_precision"] for row in rows])
    # Ratio estimator by hand: psi_i = n (h_i - R w_i) / sum w, clustered by g with C / (C - 1).
    psi = len(rows) * (hits - entry["value"] * words) / words.sum()
    groups = [row["group"] for row in rows]
    sums = np.array([psi[[g == name for g in groups]].sum() for name in sorted(set(groups))])
    clusters = len(sums)
    assert entry["stderr"] == pytest.approx(np.sqrt(clusters / (clusters - 1) * (sums**2).sum()) / len(rows))
    of_x = [row for row in rows if int(row["id"][1:]) % 2]
    x_hits, x_words = np.array([row["corpus_precision:stats"] for row in of_x]).sum(axis=0)
    assert run.results["slices"]["system"]["x"]["metrics"]["corpus_precision"]["value"] == x_hits / x_words


def test_slices_aggregate_their_rows():
    run = evaluate(samples(), metrics=["rarity"], plugins=[PLUGIN], by=["system", "group"])
    values = {row["id"]: row["rarity"] for row in run.scores().to_pylist()}
    of_x = [value for key, value in values.items() if int(key[1:]) % 2 and value is not None]
    entry = run.results["slices"]["system"]["x"]
    assert entry["n"] == 25
    assert entry["metrics"]["rarity"]["value"] == pytest.approx(np.mean(of_x), rel=1e-14)
    assert len(run.results["slices"]["group"]) == 25
    with pytest.raises(ConfigError, match="no sample has that column"):
        evaluate(samples(), metrics=["cider"], by=["sytem"])


def test_groups_are_clusters():
    run = evaluate(samples(), metrics=["rarity"], plugins=[PLUGIN])
    assert run["rarity"]["method"] == "95% t interval, 25 clusters"


def test_a_run_without_output_is_removed_with_its_object(tmp_path):
    import gc

    run = evaluate(samples(), metrics=["cider"])
    path = run.path
    saved = run.save(tmp_path / "kept")
    assert path.exists()
    del run
    gc.collect()
    assert not path.exists()
    assert load_run(tmp_path / "kept").results == saved.results
    assert saved.is_kept


def test_data_frames():
    run = evaluate(samples(), metrics=["cider"])
    assert run.to_pandas()["cider"].isna().sum() == 8
    assert run.to_polars()["cider"].null_count() == 8


def test_an_existing_folder_is_never_overwritten(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(RunFolderError, match="already exists"):
        evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_folders_that_cannot_be_read(tmp_path):
    with pytest.raises(RunFolderError, match=r"no run\.json"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunFolderError, match="cannot be read"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text('{"format": 99}')
    with pytest.raises(RunFolderError, match="format 99"):
        load_run(tmp_path)


def stats_metric(name, rows):
    by_id = dict(rows)

    def ratio(scored):
        from multimodal_eval.stats.estimates import function_of_sums

        return function_of_sums(scored, lambda sums: sums[0] / sums[1], lambda sums: np.array([1 / sums[1], 0.0]))

    metric(name, aggregate=ratio)(lambda sample: by_id[sample.id])
    return evaluate([Sample(id=key) for key in by_id], metrics=[name])


def test_statistics_of_unscored_rows_do_not_count():
    from multimodal_eval import Score

    rows = [("a", Score(0.5, stats=(1, 2))), ("b", Score(0.5, stats=(1, 2)))]
    run = stats_metric("m", [*rows, ("c", Score(None, "degenerate", "x", stats=(100, 1)))])
    assert run["m"]["value"] == 0.5


def test_bad_statistics_are_refused():
    from multimodal_eval import Score
    from multimodal_eval.core.errors import InputError

    run = stats_metric("m", [("a", Score(0.5, stats=(1, 2))), ("b", Score(0.5, stats=(float("nan"), 2)))])
    assert run["m"]["unscored"] == {"error": 1}
    with pytest.raises(InputError, match="LENGTH"):
        stats_metric("n", [("a", Score(0.5, stats=(1, 2))), ("b", Score(0.5, stats=(1, 2, 3)))])
    with pytest.raises(InputError, match="LENGTH"):
        stats_metric("o", [("a", Score(0.5, stats=(1, 2))), ("b", Score(0.5))])


def test_a_state_of_plain_values_is_the_same_for_every_worker(tmp_path, monkeypatch):
    """A state is stored as plain values, so a Counter is a `dict` after a resume; it is also a `dict` before."""
    from collections import Counter

    set_part_size(monkeypatch, 7)
    seen = set()

    def count(corpus):
        return Counter(word for sample in corpus for word in (sample.generated_answer or "").split())

    @metric("counting", needs=("generated_answer",), version="1", corpus=count)
    def counting(sample, corpus=None):
        seen.add(type(corpus))
        return 1.0

    evaluate(samples(), metrics=["counting"], workers=1)
    assert seen == {dict}


def test_an_edited_plugin_replaces_its_metrics(tmp_path):
    plugin = tmp_path / "mine.py"
    for value in (1.0, 2.0):
        plugin.write_text(
            f"from multimodal_eval import metric\n@metric('edited')\ndef edited(sample):\n    return {value}\n"
        )
        assert evaluate(samples(), metrics=["edited"], plugins=[str(plugin)])["edited"]["value"] == value


def test_the_most_frequent_status_and_reason_are_first():
    @metric("picky", needs=("generated_answer",), version="1")
    def picky(sample):
        if sample.generated_answer == "a":
            raise ValueError
        raise TypeError

    answers = [None, "b", "a", None, "a", "a", None, None, None, None]
    rows = [{"id": str(number), "generated_answer": text} for number, text in enumerate(answers)]
    entry = evaluate(rows, metrics=["picky"], allow_empty=True).results["metrics"]["picky"]
    assert list(entry["unscored"].items()) == [("missing_input", 6), ("error", 4)]
    reasons = [(reason["reason"].partition(" ")[0].rstrip(":"), reason["count"]) for reason in entry["reasons"]]
    assert reasons == [("no", 6), ("ValueError", 3), ("TypeError", 1)]
