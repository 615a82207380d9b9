"""The runs of the user, which are signed with a key, and what a run is granted that is not."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from multimodal_eval import evaluate
from multimodal_eval.data.runs import grants
from multimodal_eval.data.runs.grants import Consent, is_own
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.hostile.foreign import edited, received
from tests.run.caption_samples import samples


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A run that another process of this user has made."""
    run = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    monkeypatch.setattr(grants, "_made_here", set())
    return run.path


def is_users(folder: Path) -> bool:
    run = RunFolder(folder)
    return is_own(run, run.read_info())


def test_a_moved_or_copied_run_stays_the_users(made, tmp_path, monkeypatch):
    assert is_users(made)
    (tmp_path / "link").symlink_to(made)
    assert is_users(tmp_path / "link")
    shutil.copytree(made, tmp_path / "copy")
    assert is_users(tmp_path / "copy")
    made.rename(tmp_path / "moved")
    assert is_users(tmp_path / "moved")
    shutil.copytree(grants.state_folder(), tmp_path / "home")  # as in a container that has the key
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "home"))
    assert is_users(tmp_path / "moved")


@pytest.mark.parametrize(
    "changes",
    [
        {"created": "2020-01-01T00:00:00+00:00"},
        {"config": {"metrics": ["rouge_l"], "image_root": "/"}},
        {"source": {"data": "/etc/passwd", "predictions": None}},
        {"rescored_from": "/elsewhere"},
        {"plugins": {"/tmp/plugin.py": "0" * 64}},
        {"owner": None},
        {"owner": "1:" + "0" * 64},
        {"owner": "é:é"},
    ],
)
def test_an_edited_run_is_not_the_users(made, changes):
    edited(made, lambda info: info.update(changes))
    assert not is_users(made)


def test_the_number_of_a_run_is_signed(made):
    edited(made, lambda info: info.update(owner="0" + info["owner"]))
    assert not is_users(made)


def test_another_key_does_not_fit(made, tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "other"))
    assert not is_users(made)
    evaluate(samples(5), metrics=["rouge_l"], output=tmp_path / "mine", seed=7)  # makes another key
    monkeypatch.setattr(grants, "_made_here", set())
    assert not is_users(made)
    assert is_users(tmp_path / "mine")


def test_a_key_that_others_can_read_is_not_trusted(made):
    key = grants.state_folder() / "key"
    for mode, is_trusted in ((0o644, False), (0o640, False), (0o600, True)):
        key.chmod(mode)
        assert is_users(made) == is_trusted
    key.write_bytes(b"short")
    assert not is_users(made)


def test_runs_in_the_list_of_earlier_versions_are_the_users(made, tmp_path):
    """That list has the place of a run with a digest of its settings."""
    edited(made, lambda info: info.update(owner=None))
    info, address = RunFolder(made).read_info(), os.path.realpath(made)
    settings = (address, info.created, info.config, info.source, info.rescored_from, info.plugins)
    digest = sha256(msgspec.json.encode(settings, order="deterministic")).hexdigest()
    name = sha256(address.encode()).hexdigest()
    file = grants.state_folder() / "runs" / name[:2] / f"{name[2:34]}.json"
    file.parent.mkdir(parents=True)
    file.touch(0o600)
    file.write_bytes(msgspec.json.encode({"address": address, "digest": digest}))
    assert is_users(made)
    file.chmod(0o666)
    assert not is_users(made)
    file.chmod(0o600)
    made.rename(tmp_path / "moved")
    assert not is_users(tmp_path / "moved")


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_the_key_is_private_whatever_the_umask_is(tmp_path, monkeypatch, mask):
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "new" / "state"))
    before = os.umask(mask)
    try:
        run = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    finally:
        os.umask(before)
    monkeypatch.setattr(grants, "_made_here", set())
    assert is_own(run.folder, run.info)
    files = [tmp_path / "new/state", *(tmp_path / "new/state").rglob("*")]
    assert [path.name for path in files] == ["state", "key"]
    assert not any(path.stat().st_mode & 0o077 for path in files)


def test_processes_that_make_the_key_at_the_same_time_get_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "state"))
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: grants._new_key(), range(8)))
    assert len(set(keys)) == 1
    assert len(keys[0] or b"") == grants.KEY_BYTES


def test_a_run_does_not_need_a_key(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "file"))  # not a folder
    run = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    assert run.info.owner is None
    assert len(run) == 4


def test_what_is_granted(tmp_path):
    run = evaluate(samples(4), metrics=["rouge_l"], output=tmp_path / "made")
    assert Consent(run.folder, run.info).config == run.info.config
    asked = {"image_root": "/", "allow_outside_images": True, "allow_image_urls": True, "media_roots": ["/"]}
    foreign = Run(edited(received(run.path, tmp_path / "sent"), lambda info: info["config"].update(asked)))
    for roots in ([], [str(tmp_path)]):
        config = Consent(foreign.folder, foreign.info, media_roots=roots).config
        assert (config.image_root, config.media_roots) == (str(tmp_path / "sent"), roots)
        assert (config.allow_outside_images, config.allow_image_urls) == (False, False)
