"""Runs of Weights & Biases in offline mode, read back from its own files. Needs the extra [wandb]."""

from __future__ import annotations

import json
import struct
from time import monotonic, sleep

import pytest

from multimodal_eval import compute
from multimodal_eval.interop.callbacks.log_scores import active_trackers, log_scores
from multimodal_eval.interop.export.registry import export
from multimodal_eval.interop.trackers.content import flat_values, run_values
from tests.cli.command_line import mmeval
from tests.interop.trackers.tracker_runs import answered, tracker

wandb = tracker("wandb")
pytestmark = pytest.mark.filterwarnings("ignore")  # of W&B and its libraries


@pytest.fixture
def run(tmp_path):
    return answered(tmp_path / "first")


def records(folder):
    """The records of a finished run. W&B's own process writes the last ones after `finish` has returned."""
    started = monotonic()
    while not (every := list(written(folder))) or every[-1].WhichOneof("record_type") != "exit":
        assert monotonic() - started < 600, every
        sleep(0.05)
    return every


def written(folder):
    """The records of the only run below the folder: 7 bytes, then LevelDB's log format, blocks of 32 KiB."""
    from wandb.proto import wandb_internal_pb2

    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    content, place, data = file.read_bytes(), 7, b""
    while place + 7 <= len(content):
        if 32768 - place % 32768 < 7:  # no header fits into the rest of the block
            place += 32768 - place % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        data += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or the last piece of one
            if place > len(content):  # not all of it is written yet
                return
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            data = b""
            yield record


def logged_values(folder):
    values = {}
    for record in records(folder):
        for item in record.history.item:
            values[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
    return values


def test_a_run_in_a_folder(run, tmp_path):
    done = mmeval("export", str(run.path), "--to", "wandb", "-o", str(tmp_path / "store"))
    assert "wandb sync" in done.stderr
    values = logged_values(tmp_path / "store")
    assert {name: values[name] for name in run_values(run)} == run_values(run)
    assert values["samples/nrows"] == 8
    assert values["report/_type"] == "html-file"
    (table,) = (tmp_path / "store").rglob("*.table.json")
    content = json.loads(table.read_text())
    assert dict(zip(content["columns"], content["data"][0], strict=True))["generated_answer"] == "yes"
    every = list(records(tmp_path / "store"))
    assert any(record.run.display_name == "first" for record in every)
    names = {entry.path for record in every for entry in record.request.log_artifact.artifact.manifest.contents}
    names |= {entry.path for record in every for entry in record.artifact.manifest.contents}
    assert {"report.html", "samples.parquet"} <= names


def test_the_active_run_gets_scores_and_an_export_leaves_it_active(run, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    scores = compute(predictions=["a dog", "cat"], references=["a dog", "a cat"], metrics=["exact_match"])
    assert "wandb" not in active_trackers()
    active = wandb.init(project="training", dir=str(tmp_path), settings=wandb.Settings(console="off"))
    assert log_scores(scores, step=7, prefix="val_") == ("wandb",)
    export(run, "wandb", tmp_path / "store", samples=False)
    assert wandb.run is active
    active.finish()
    assert "wandb" not in active_trackers()
    values = logged_values(tmp_path)
    assert {name: values.get(name) for name in flat_values(scores, "val_")} == flat_values(scores, "val_")
    assert values["_step"] == 7
