"""Paths that lead out of a folder, by their names or by links, and files that are too large."""

from __future__ import annotations

import os

import pytest

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.system_files import NamingFile, leading_out, links_out, read_text


@pytest.fixture
def folder(tmp_path):
    """A folder `run` beside one whose name starts with the same letters."""
    for name in ("run/data", "run-other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "run/data/a.txt").write_text("a")
    (tmp_path / "run-other/b.txt").write_text("b")
    return tmp_path / "run"


@pytest.mark.parametrize("name", ["data/a.txt", "data/../data", ".", "absent", "data/.."])
def test_a_path_that_stays_inside(folder, name):
    assert leading_out(folder, name) is None


@pytest.mark.parametrize("name", ["..", "../run-other/b.txt", "data/../../run-other", os.sep])
def test_a_path_that_leads_out(folder, name):
    assert leading_out(folder, name) is not None


def test_a_link_to_a_folder_beside_it_leads_out(folder):
    (folder / "link").symlink_to(folder.parent / "run-other")
    (folder / "data/inner").symlink_to(folder / "data/a.txt")
    assert leading_out(folder, "link/b.txt") == folder / "link"
    assert leading_out(folder, "data/inner") is None
    assert list(links_out(folder, ["data", "link"])) == [folder / "link"]


def test_links_below_a_folder_are_found(folder):
    (folder / "data/deep").mkdir()
    (folder / "data/deep/out").symlink_to(folder.parent)
    assert list(links_out(folder, ["data"])) == [folder / "data/deep/out"]


def test_what_a_task_names_must_be_in_its_folder(folder):
    task = NamingFile(folder / "task.yaml", "the task")
    assert task.inside("prompt", "data/a.txt", "Copy it") == folder / "data/a.txt"
    assert task.inside_with_content("data", "data/*.txt", "Copy it") == folder / "data/*.txt"
    with pytest.raises(
        ConfigError, match=r"task.yaml: `prompt` must be in the folder of the task. Got '\.\./run-other"
    ):
        task.inside("prompt", "../run-other/b.txt", "Copy it")
    allowed = NamingFile(folder / "task.yaml", "the task", allow_outside=True)
    assert allowed.inside("prompt", "../run-other/b.txt", "Copy it").read_text() == "b"


def test_a_text_has_at_most_the_allowed_bytes(folder):
    path = folder / "text.md"
    path.write_bytes("é\r\nx\ry".encode())  # 7 bytes
    assert read_text(path, "the prompt", 7) == "é\nx\ny"
    with pytest.raises(ConfigError, match="is larger than 6 bytes"):
        read_text(path, "the prompt", 6)
