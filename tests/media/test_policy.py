"""Where images may be opened from: the root folder, links, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from multimodal_eval.core.errors import ImageError
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.policy import MediaPolicy, current_policy, using
from tests.media.image_files import encoded, gradient

# the folder


def test_paths_start_at_the_root_and_must_stay_in_it(folder):
    policy = MediaPolicy(root=folder)
    for inside in ("in.png", "deep/../in.png", str(folder / "in.png"), (folder / "in.png").as_uri()):
        assert load_image_any(inside, policy=policy).size == (8, 6)
    (folder / "link.png").symlink_to(folder.parent / "outside.png")
    (folder / "way").symlink_to(folder.parent)
    (folder / "here.png").symlink_to(folder / "in.png")
    assert load_image_any("here.png", policy=policy).size == (8, 6)
    outside = [
        "../outside.png",
        "deep/../../outside.png",
        "link.png",
        "way/outside.png",
        str(folder.parent / "outside.png"),
        (folder.parent / "outside.png").as_uri(),
        f"file:{folder}/%2e%2e/outside.png",
        "../missing.png",  # the message does not reveal whether it exists
        "/etc/passwd",
    ]
    for path in outside:
        with pytest.raises(ImageError, match=r"is outside the folder.*--allow-outside-images"):
            load_image_any(path, policy=policy)
    for path in outside[:7]:
        assert load_image_any(path, policy=MediaPolicy(root=folder, allow_outside=True)).size == (8, 6)


def test_a_folder_with_the_root_as_name_prefix_is_outside(folder):
    sibling = folder.parent / "data-more"
    sibling.mkdir()
    (sibling / "x.png").write_bytes(encoded(gradient()))
    with pytest.raises(ImageError, match="is outside"):
        load_image_any("../data-more/x.png", policy=MediaPolicy(root=folder))


def test_a_root_can_be_a_link(folder):
    (folder.parent / "alias").symlink_to(folder)
    assert load_image_any("in.png", policy=MediaPolicy(root=folder.parent / "alias")).size == (8, 6)


def test_a_link_to_itself_is_refused(folder):
    (folder / "loop.png").symlink_to(folder / "loop.png")
    for policy in (MediaPolicy(root=folder), MediaPolicy()):
        with pytest.raises(ImageError, match="cannot be read"):
            load_image_any(str(folder / "loop.png"), policy=policy)


def test_without_a_root_any_path_is_accepted(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert load_image_any("../outside.png").size == (8, 6)


def test_a_policy_applies_inside_its_block(folder):
    before = current_policy()
    with using(MediaPolicy(root=folder)) as policy:
        assert current_policy() is policy
        assert load_image_any("in.png").size == (8, 6)
        with pytest.raises(ImageError, match="outside"):
            load_image_any("../outside.png")
    assert current_policy() is before == MediaPolicy()


def test_threads_get_the_policy_as_an_argument(folder):
    with using(MediaPolicy(root=folder)) as policy, ThreadPoolExecutor(2) as pool:
        sizes = list(pool.map(lambda name: load_image_any(name, policy=policy).size, ["in.png"] * 8))
    assert sizes == [(8, 6)] * 8


def test_the_documented_limits_match_the_code():
    text = (Path(__file__).parents[2] / "docs" / "images.md").read_text(encoding="utf-8")
    policy = MediaPolicy()
    assert f"over {policy.max_pixels // 1_000_000} megapixels" in text
    assert f"at most {policy.max_bytes >> 20} MiB and {policy.max_seconds:g} seconds" in text
