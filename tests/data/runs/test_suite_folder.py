"""suite.json: what it names, and what is refused."""

from __future__ import annotations

import json

import pytest

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.runs.suite_folder import (
    SuiteEntry,
    SuiteModel,
    SuiteRecord,
    SuiteTask,
    find_runs,
    folder_name,
    merged,
    read_suite,
    write_suite,
)
from tests.analysis.suites import small_suite

RECORD = SuiteRecord(
    models=[SuiteModel(name="acme/parrot", label="Parrot"), SuiteModel(name="p2", of="acme/parrot")],
    tasks=[SuiteTask(name="vqa", headline="vqa_accuracy", recipe="vqa-v2")],
    runs=[SuiteEntry(path="acme_parrot/vqa", model="acme/parrot", task="vqa")],
)


def test_it_is_read_as_it_was_written(tmp_path):
    write_suite(tmp_path, RECORD)
    assert read_suite(tmp_path) == RECORD


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": 2}, "has format 2"),
        ({"runs": [{"path": "../x", "model": "a", "task": "b"}]}, "not a folder below it"),
        ({"runs": [{"path": "/x", "model": "a", "task": "b"}]}, "not a folder below it"),
        ({"runs": [{"path": "x", "model": "a"}]}, "task"),
        ({"models": [{"name": "a"}, {"name": "a"}]}, "names the model 'a' twice"),
        ({"tasks": [{"name": "a", "metric": "x"}]}, "unknown field `metric`"),
        ([], "is not a suite"),
    ],
)
def test_other_content_is_refused(tmp_path, content, message):
    (tmp_path / "suite.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=message):
        read_suite(tmp_path)


def test_a_later_suite_replaces_what_it_names():
    changed = merged(RECORD, SuiteRecord(models=[SuiteModel(name="p2"), SuiteModel(name="p3")]))
    assert [(model.name, model.of) for model in changed.models] == [
        ("acme/parrot", None), ("p2", None), ("p3", None),
    ]  # fmt: skip
    assert changed.runs == RECORD.runs


@pytest.mark.parametrize(
    ("name", "folder"), [("acme/parrot 7B", "acme_parrot_7B"), ("../x", "x"), ("toy|0", "toy_0"), ("模型", "模型")]
)
def test_names_become_folders(name, folder):
    assert folder_name(name) == folder


def test_names_without_letters_and_long_names_are_told_apart():
    assert folder_name("..") != folder_name("///")
    assert len(folder_name("a" * 500)) < 100


def test_runs_that_a_suite_does_not_name_belong_to_it(tmp_path):
    """Its file says what the folders cannot, and may be about some of them, or about none."""
    small_suite(tmp_path)
    everything = [run.place for run in find_runs([tmp_path]).runs]
    write_suite(tmp_path, SuiteRecord(tasks=[SuiteTask(name="vqa", label="VQA v2")]))
    runs = find_runs([tmp_path])
    assert [run.place for run in runs.runs] == everything
    assert runs.record.tasks[0].label == "VQA v2"
    write_suite(tmp_path, SuiteRecord(runs=[SuiteEntry(path="wren/vqa", model="Wren", task="VQA v2")]))
    first, *others = find_runs([tmp_path]).runs
    assert (first.place, first.model, first.task) == (("wren/vqa",), "Wren", "VQA v2")
    assert [run.place for run in others] == [place for place in everything if place != ("wren", "vqa")]
