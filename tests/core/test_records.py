"""run.json, results.json and lint.json as types: files are read back unchanged, and older files can be opened."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from multimodal_eval import Sample, evaluate, load_run
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.config import GenerationConfig, RunConfig
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.records import RUN_FORMAT, Results, RunInfo, StoredSignature, read_run_info, to_json
from multimodal_eval.data.runs.checksums import sealed
from multimodal_eval.data.runs.run import UncheckedRunWarning
from tests.edited_runs import rewrite_json, without_checksums
from tests.run_info import run_info

SAMPLES = [
    Sample(str(number), references=[f"a red car {number}", "the car"], generated_answer=f"a red {number}")
    for number in range(6)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    evaluate(SAMPLES, metrics=["bleu", "cider"], output=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(("name", "kind"), [("run.json", RunInfo), ("results.json", Results)])
def test_a_file_that_is_read_and_written_is_unchanged(folder, name, kind):
    content = (folder / name).read_bytes()
    manifest = json.loads(content).get("manifest")
    assert sealed(to_json(msgspec.json.decode(content, type=kind)), manifest) == content


def test_a_folder_of_format_1_can_be_opened(folder, tmp_path):
    """As written by the first version: without `means`, and with all empty fields."""

    def older(info):
        info["format"] = 1
        del info["means"]
        info.setdefault("input_notes", [])

    without_checksums(folder, 1)
    rewrite_json(folder / "run.json", older)
    with pytest.warns(UncheckedRunWarning):
        run = load_run(folder)
    assert run.info.format == 1
    assert run["bleu"]["n_scored"] == 6
    other = evaluate(SAMPLES, metrics=["bleu", "cider"], output=tmp_path / "other")
    assert [number.name for number in compare_runs([run, other], rounds=100).numbers] == ["bleu", "cider"]
    assert run.lint()["n"] == 6


@pytest.mark.parametrize("number", [0, 4, None, "2"])
def test_other_formats_are_refused_by_number(folder, number):
    rewrite_json(folder / "run.json", lambda info: info.update(format=number))
    with pytest.raises(RunFolderError, match=r"run has format|run\.json cannot be read"):
        load_run(folder)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("run.json", lambda info: info.pop("parts") and info.update(parts="many"), r"run\.json .*\$\.parts"),
        ("run.json", lambda info: info["config"].update(limit=-1), r"run\.json .*limit"),
        ("run.json", lambda info: info.pop("config"), r"run\.json .*`config`"),
        ("results.json", lambda results: results.pop("metrics"), r"results\.json .*`metrics`"),
        ("results.json", lambda results: results["metrics"]["bleu"].update(value="x"), r"results\.json .*value"),
    ],
)
def test_a_malformed_file_is_named_with_the_field(folder, file, change, message):
    rewrite_json(folder / file, change)
    with pytest.raises(RunFolderError, match=message):
        load_run(folder)


def test_fields_of_a_newer_version_are_ignored():
    content = json.loads(to_json(run_info())) | {"colour": "red"}
    assert read_run_info(json.dumps(content).encode(), "run").format == RUN_FORMAT


@pytest.mark.parametrize(("df", "counts"), [("corpus@1a2b3c4d", True), ("coco-val2014", False), (None, False)])
def test_a_signature_tells_whether_document_frequencies_come_from_the_run(df, counts):
    settings = {"metric": "cider", "version": "2"} | ({} if df is None else {"df": df})
    assert StoredSignature("cider|…", settings).counts_the_corpus is counts


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"metrics": ["bleu"]}, "score"),
        ({"metrics": ["bleu"], "config": RunConfig(generation=GenerationConfig(model="echo"))}, "run"),
        ({"unavailable": {"bleu": "no"}, "config": RunConfig(generation=GenerationConfig(model="echo"))}, "run"),
        ({"config": RunConfig(generation=GenerationConfig(model="echo"))}, "run"),
        ({"config": RunConfig(generation=GenerationConfig(model="echo")), "rescored_from": "run"}, "score"),
    ],
)
def test_the_command_that_continues_a_run(fields, command):
    assert run_info(**fields).command == command
