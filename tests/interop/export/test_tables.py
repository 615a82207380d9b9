"""CSV and Parquet of one or several runs."""

from __future__ import annotations

import json

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.interop.export.registry import export
from tests.interop.export.runs import SAMPLES, make_run
from tests.run.labelled_samples import judged_samples


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    return [make_run(folder / "first"), make_run(folder / "second", SAMPLES[:1])]


def test_parquet_has_samples_and_scores_of_all_runs(runs, tmp_path):
    export(runs, "parquet", tmp_path / "new" / "all.parquet")
    rows = pq.read_table(tmp_path / "new" / "all.parquet").to_pylist()
    assert [row["run"] for row in rows] == ["first"] * 8 + ["second"]
    assert [row["id"] for row in rows] == [*(sample["id"] for sample in SAMPLES), "plain"]
    assert [row["wer"] for row in rows[:8]] == runs[0].scores().column("wer").to_pylist()
    assert [row["bleu:stats"] for row in rows[:8]] == runs[0].scores().column("bleu:stats").to_pylist()
    assert rows[1]["wer:status"] == "error"
    assert rows[0]["references"] == ["a dog", "dog"]
    assert "audio" not in rows[0]  # a column without a value


def test_csv_has_the_same_as_text(runs, tmp_path):
    path = tmp_path / "all.csv"
    exported = export(runs, "csv", path)
    assert exported.paths == (path,)
    assert exported.notes == ()
    table = pc.read_csv(path, parse_options=pc.ParseOptions(newlines_in_values=True))
    rows = table.to_pylist()
    assert [row["wer"] for row in rows[:8]] == runs[0].scores().column("wer").to_pylist()
    assert rows[0]["references"] == '["a dog","dog"]'
    assert "bleu:stats" not in table.column_names
    # The last sample has no answer, which a CSV file cannot distinguish from a blank one.
    again = evaluate(path, metrics=["wer"], skip_lint=True, map={"id": "row"}, limit=7)
    assert (again["wer"]["value"], again["wer"]["n_scored"]) == (runs[0]["wer"]["value"], 6)


def test_bytes_are_in_parquet_and_named_for_csv(tmp_path):
    sample = {**SAMPLES[0], "image": b"\x89PNG"}
    run = evaluate([sample], output=tmp_path / "run", metrics=["rouge_l"], skip_lint=True)
    export(run, "parquet", tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").column("image_bytes").to_pylist() == [b"\x89PNG"]
    assert "are left out" in export(run, "csv", tmp_path / "a.csv").notes[0]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_one_row_per_metric(runs, tmp_path, kind):
    path = tmp_path / f"metrics.{kind}"
    export(runs, kind, path, rows="metrics", metrics=["bleu", "exact_match"])
    table = pq.read_table(path) if kind == "parquet" else pc.read_csv(path)
    rows = table.to_pylist()
    names = ["bleu", "bleu.bleu_1", "bleu.bleu_2", "bleu.bleu_3", "exact_match"]
    pairs = [(run, name) for run in ("first", "second") for name in names]
    assert [(row["run"], row["metric"]) for row in rows] == pairs
    for field in ("value", "low", "high", "stderr"):
        assert rows[1][field] == runs[0]["bleu_1"][field]
    assert (rows[4]["scored"], rows[4]["total"], rows[4]["kind"]) == (6, 8, "mean")


def test_the_value_of_a_metric_is_the_one_that_labels_correct(tmp_path):
    run = evaluate(judged_samples(), metrics=["exact_match"], human={"exact_match": "rating"}, skip_lint=True)
    export(run, "parquet", tmp_path / "metrics.parquet", rows="metrics")
    corrected, raw = pq.read_table(tmp_path / "metrics.parquet").to_pylist()
    entry = run.entries["exact_match"]
    assert (corrected["metric"], corrected["value"], corrected["low"]) == (
        "exact_match",
        entry.calibrated.value,
        entry.calibrated.low,
    )
    assert corrected["note"] == f"60 human labels: {entry.calibrated.signature}"
    assert (raw["metric"], raw["value"], raw["scored"]) == ("exact_match.uncorrected", entry.value, 200)


def test_an_unknown_metric_leaves_no_file(runs, tmp_path):
    with pytest.raises(UnknownNameError, match=r"no metric of this run is named 'werr'. Did you mean 'wer'"):
        export(runs, "csv", tmp_path / "a.csv", metrics=["werr"])
    assert list(tmp_path.iterdir()) == []


def test_jsonl_has_the_same_without_missing_values(runs, tmp_path):
    export(runs, "jsonl", tmp_path / "all.jsonl")
    export(runs, "parquet", tmp_path / "all.parquet")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_bytes().split(b"\n") if line]
    rows = pq.read_table(tmp_path / "all.parquet").to_pylist()
    assert len(lines) == len(rows) > 0
    for line, row in zip(lines, rows, strict=True):
        assert line == {name: value for name, value in row.items() if value is not None and ":stats" not in name}
    export(runs, "jsonl", tmp_path / "metrics.jsonl", rows="metrics")
    assert '"metric":"' in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8")
