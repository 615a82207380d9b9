"""Rescoring computes only new scores, and an interrupted rescore can be resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from multimodal_eval import Sample, evaluate, metric, rescore, resume
from multimodal_eval.core.errors import ConfigError, RunFolderError
from tests.edited_runs import write_json
from tests.parts import set_part_size
from tests.run.caption_samples import samples
from tests.run.stopping_executor import StoppedError


def test_rescoring_computes_only_new_scores(tmp_path):
    calls = []

    @metric("costly", bounds=(0, 1), version="1")
    def costly(sample):
        calls.append(sample.id)
        return 0.25

    @metric("other", bounds=(0, 1), version="1")
    def other(sample):
        return 0.75

    first = evaluate(samples(), task="mine", tasks={"mine": {"weights": {"costly": 1.0}}}, output=tmp_path / "first")
    assert len(calls) == 50
    weights = {"mine": {"metrics": ["costly", "other"], "weights": {"costly": 0.5, "other": 0.5}}}
    second = rescore(first, {"tasks": weights}, output=tmp_path / "second")
    assert len(calls) == 50
    assert first["composite"]["value"] == 0.25
    assert second["composite"]["value"] == 0.5
    assert second.info.rescored_from == str((tmp_path / "first").resolve())
    assert list(second.samples()) == samples()


def test_rescoring_with_another_option_computes_again():
    first = evaluate(samples(), metrics=["cider"])
    second = rescore(first, {"metrics": ["cider"], "options": {"cider": {"df": "coco-val2014"}}})
    same = rescore(first, {"metrics": ["cider"]})
    assert same["cider"] == first["cider"]
    assert second["cider"]["signature"] != first["cider"]["signature"]
    assert second["cider"]["value"] != first["cider"]["value"]


def test_rescoring_keeps_the_error_patterns():
    data = [Sample(id=str(i), references=[f"a {i}"], generated_answer="OOPS" if i == 0 else f"a {i}") for i in range(3)]
    first = evaluate(data, metrics=["cider"], error_patterns=["OOPS"], by=[])
    assert first["cider"]["n_scored"] == 2
    assert first["cider"]["signature"].endswith("|errors:OOPS")
    again = rescore(first, {"by": ["id"]})
    assert again["cider"] == first["cider"]
    other = rescore(first, {"error_patterns": []})
    assert other["cider"]["n_scored"] == 3
    assert other["cider"]["signature"].endswith("|errors:none")


def test_an_interrupted_rescore_resumes_with_the_stored_samples(tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text(
        "".join(json.dumps({"id": str(i), "references": [f"a {i}"], "prediction": "a"}) + "\n" for i in range(30))
    )
    first = evaluate(data, metrics=["cider"], limit=10, output=tmp_path / "first")
    whole = rescore(first, {"by": ["id"]}, output=tmp_path / "whole")
    rescore(first, {"by": ["id"]}, output=tmp_path / "broken")
    info = json.loads((tmp_path / "broken" / "run.json").read_text())
    write_json(tmp_path / "broken" / "run.json", {**info, "state": "reading", "finished": None, "signatures": {}})
    (tmp_path / "broken" / "results.json").unlink()
    (tmp_path / "broken" / "scores" / "part-00000.parquet").unlink()
    data.unlink()
    assert resume(tmp_path / "broken").results == whole.results
    assert len(whole) == 10


EDITED = """
import os
from multimodal_eval import metric
@metric("edited", needs=("generated_answer",))
def edited(sample):
    return 1.0
@metric("gone", needs=("generated_answer",), version="1")
def gone(sample):
    return 2.0
gone.unavailable = lambda: os.environ.get("GONE")
"""


@pytest.fixture
def interrupted_rescore(tmp_path, monkeypatch):
    """An interrupted rescore: the scores of `gone` are reused, those of `edited` are new."""
    set_part_size(monkeypatch, 7)
    plugin = tmp_path / "plugin.py"
    plugin.write_text(EDITED)
    first = evaluate(samples(), metrics=["gone"], plugins=[str(plugin)], output=tmp_path / "first")

    def stop(stage, done, total):
        if stage == "scoring" and done > 20:
            raise StoppedError

    with pytest.raises(StoppedError):
        rescore(first, {"metrics": ["gone", "edited"]}, output=tmp_path / "run", workers=1, progress=stop)
    return tmp_path / "run", plugin


def test_an_interrupted_rescore_refuses_a_changed_metric_and_is_kept(interrupted_rescore):
    folder, plugin = interrupted_rescore
    scored = sorted((folder / "scores").iterdir())
    assert 0 < len(scored) < 8
    plugin.write_text(plugin.read_text().replace("1.0", "3.0"))
    with pytest.raises(RunFolderError, match="was started with plug-ins"):
        resume(folder)
    with pytest.raises(RunFolderError, match="no given file has its content"):
        resume(folder, plugins=[plugin])
    assert sorted((folder / "scores").iterdir()) == scored
    plugin.write_text(plugin.read_text().replace("3.0", "1.0"))
    assert resume(folder)["edited"]["value"] == 1.0


def test_an_interrupted_rescore_needs_no_model_for_reused_scores(interrupted_rescore, monkeypatch):
    folder, plugin = interrupted_rescore
    monkeypatch.setenv("GONE", "no model")
    assert resume(folder, plugins=[plugin])["gone"]["value"] == 2.0


def test_rescoring_refuses_input_settings_and_unknown_columns():
    first = evaluate(samples(), metrics=["cider"])
    with pytest.raises(ConfigError, match="rescoring uses the samples of RUN"):
        rescore(first, {"limit": 3})
    with pytest.raises(ConfigError, match="no sample has that column"):
        rescore(first, {"by": ["nosuch"]})


def test_scores_of_images_in_another_folder_are_computed_again(tmp_path):
    for name, red in (("dark", 7), ("bright", 200)):
        (tmp_path / name).mkdir()
        Image.new("RGB", (1, 1), (red, 0, 0)).save(tmp_path / name / "image.png")
    row = {"id": "1", "image": "image.png", "references": ["a"], "generated_answer": "a"}
    plugin = str(Path(__file__).with_name("brightness.py"))
    settings = {"metrics": ["brightness", "rouge_l"], "image_root": str(tmp_path / "dark")}
    first = evaluate([row], plugins=[plugin], output=tmp_path / "first", **settings)
    assert first["brightness"]["value"] == 7
    again = rescore(first, {"image_root": str(tmp_path / "bright")}, plugins=[plugin])
    assert again["brightness"]["value"] == 200
    assert again["rouge_l"]["value"] == 1
