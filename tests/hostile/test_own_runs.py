"""The list of runs that the user has made on this machine, and what a run is granted that is not in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from multimodal_eval import evaluate
from multimodal_eval.data.runs import grants
from multimodal_eval.data.runs.grants import granted, is_own
from multimodal_eval.data.runs.run import Run
from tests.hostile.foreign import edited, received
from tests.run.caption_samples import samples


def test_a_moved_copied_or_edited_run_is_not_the_users(tmp_path, monkeypatch):
    made = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    monkeypatch.setattr(grants, "_made_here", set())  # as in another process

    def is_users(folder: Path) -> bool:
        run = Run(folder)
        return is_own(run.folder, run.info)

    assert is_users(tmp_path / "made")
    (tmp_path / "link").symlink_to(tmp_path / "made")
    assert is_users(tmp_path / "link")  # the same folder
    assert not is_users(received(tmp_path / "made", tmp_path / "copy"))
    edited(tmp_path / "made", lambda info: info["config"].update(image_root="/"))
    assert not is_users(tmp_path / "made")
    edited(tmp_path / "made", lambda info: info["config"].update(image_root=made.info.config.image_root))
    assert is_users(tmp_path / "made")
    edited(tmp_path / "made", lambda info: info.update(created="2020-01-01T00:00:00+00:00"))
    assert not is_users(tmp_path / "made")


def test_a_list_that_others_can_write_is_not_trusted(tmp_path, monkeypatch):
    run = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    monkeypatch.setattr(grants, "_made_here", set())
    (entry,) = grants.state_folder().rglob("*.json")
    entry.chmod(0o666)
    assert not is_own(run.folder, run.info)
    entry.chmod(0o600)
    entry.write_text("{")
    assert not is_own(run.folder, run.info)


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_the_list_is_private_whatever_the_umask_is(tmp_path, monkeypatch, mask):
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "new" / "state"))
    before = os.umask(mask)
    try:
        run = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    finally:
        os.umask(before)
    monkeypatch.setattr(grants, "_made_here", set())
    assert is_own(run.folder, run.info)
    assert not any(
        path.stat().st_mode & 0o077 for path in [tmp_path / "new/state", *(tmp_path / "new/state").rglob("*")]
    )


def test_the_list_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(grants, "PER_SHARD", 3)
    run = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    (entry,) = grants.state_folder().rglob("*.json")
    for number in range(9):
        (entry.parent / f"old-{number}.json").write_text("{}")
        os.utime(entry.parent / f"old-{number}.json", (number, number))
    grants.remember(run.folder, run.info)
    assert sorted(file.name for file in entry.parent.iterdir()) == sorted([entry.name, "old-7.json", "old-8.json"])


def test_a_run_does_not_need_the_list(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "file"))  # not a folder
    assert len(evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")) == 4


def test_what_is_granted(tmp_path):
    run = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    assert granted(run.folder, run.info) == run.info.config
    asked = {"image_root": "/", "allow_outside_images": True, "allow_image_urls": True, "media_roots": ["/"]}
    foreign = Run(edited(received(run.path, tmp_path / "sent"), lambda info: info["config"].update(asked)))
    for roots in ([], [str(tmp_path)]):
        config = granted(foreign.folder, foreign.info, roots)
        assert (config.image_root, config.media_roots) == (str(tmp_path / "sent"), roots)
        assert (config.allow_outside_images, config.allow_image_urls) == (False, False)
