"""What trackers get, and errors before anything is sent. None of them needs to be installed."""

from __future__ import annotations

import os
import sys
from math import nan

import pyarrow.parquet as pq
import pytest

from multimodal_eval import ScoreValue
from multimodal_eval.core.errors import MultimodalEvalError, UnavailableError
from multimodal_eval.core.options import defaults_of
from multimodal_eval.interop.export.registry import export
from multimodal_eval.interop.trackers.content import OPTIONS, environment, flat_values, run_values, tracked_runs
from tests.interop.trackers.tracker_runs import answered


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return answered(tmp_path_factory.mktemp("runs") / "first")


def options(**changes):
    return {**defaults_of(OPTIONS), **changes}


def test_every_score_has_its_interval_and_coverage(run):
    values = run_values(run)
    entry = run["exact_match"]
    # 7 of 8 samples are scored, 6 of them are right
    assert values["exact_match"] == 6 / 7
    assert values["exact_match_coverage"] == 7 / 8
    assert (values["exact_match_low"], values["exact_match_high"]) == (entry["low"], entry["high"])
    assert values["exact_match_stderr"] == entry["stderr"]
    assert values["wer.substitutions"] == run["wer.substitutions"]["value"]
    assert "wer.substitutions_coverage" not in values


def test_only_some_metrics(run):
    assert {name.split("_")[0] for name in run_values(run, ["wer"])} == {"wer", "wer.substitutions"} | {
        f"wer.{part}" for part in run.entries["wer"].parts
    }
    assert set(run_values(run, ["wer.deletions"])) == {
        f"wer.deletions{end}" for end in ("", "_low", "_high", "_stderr")
    }


def test_what_is_not_scored_is_not_a_number():
    score = ScoreValue("nan")
    score.n_scored, score.n_total = 0, 5
    assert flat_values({"cider": score, "loss": 0.5, "other": nan}, "val_") == {
        "val_cider_coverage": 0.0,
        "val_loss": 0.5,
    }


def test_the_content(run):
    (content,) = tracked_runs([run], options(table_rows=3))
    assert content.name == "first"
    assert content.settings["samples"] == 8
    assert content.settings["signature.exact_match"] == run.info.signatures["exact_match"].text
    assert [path.name for path in content.files] == ["samples.parquet"]  # this run has no report
    rows = [dict(zip(content.columns, row, strict=True)) for row in content.rows]
    assert [row["id"] for row in rows] == ["0", "1", "2"]
    assert rows[0]["references"] == '["yes"]'
    assert rows[0]["exact_match"] == 1.0


def test_the_files_of_a_run(run, tmp_path):
    copy = run.save(tmp_path / "copy")
    (copy.path / "report.html").write_text("<p>a report</p>")
    for content in tracked_runs([copy], options()):
        assert content.report is not None
        assert content.report.read_text() == "<p>a report</p>"
        table = pq.read_table(content.files[1])
        assert table.column("id").to_pylist() == [str(i) for i in range(8)]
        assert table.column("exact_match").to_pylist() == [1.0] * 6 + [0.0, None]
    (content,) = tracked_runs([copy], options(report=False, samples=False))
    assert not content.files
    assert not content.rows


def test_names_of_several_runs(run, tmp_path):
    copy = run.save(tmp_path / "second")
    assert [content.name for content in tracked_runs([run, copy], options())] == ["first", "second"]
    assert [content.name for content in tracked_runs([run, copy], options(name="x"))] == ["x-first", "x-second"]
    assert [content.name for content in tracked_runs([run], options(name="x"))] == ["x"]


def test_an_unknown_metric_is_refused_before_anything_is_sent(run):
    with pytest.raises(MultimodalEvalError, match="Did you mean 'exact_match'"):
        next(tracked_runs([run], options(metrics=["exact_macth"])))
    with pytest.raises(MultimodalEvalError, match=r"wer\.nothing"):
        next(tracked_runs([run], options(metrics=["wer.nothing"])))


@pytest.mark.parametrize("name", ["mlflow", "wandb", "trackio"])
def test_a_missing_package_names_the_extra(run, name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnavailableError, match=rf"multimodal-eval\[{name}\]"):
        export(run, name, tmp_path / "out")


def test_the_environment_is_restored(monkeypatch):
    monkeypatch.setenv("MMEVAL_TEST_A", "before")
    monkeypatch.delenv("MMEVAL_TEST_B", raising=False)
    with environment({"MMEVAL_TEST_A": None, "MMEVAL_TEST_B": "x"}):
        assert "MMEVAL_TEST_A" not in os.environ
        assert os.environ["MMEVAL_TEST_B"] == "x"
    assert os.environ["MMEVAL_TEST_A"] == "before"
    assert "MMEVAL_TEST_B" not in os.environ
