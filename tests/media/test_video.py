"""Frames of videos."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import MediaError
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.outgoing import frame_places, frame_rules, video_frames
from multimodal_eval.media.policy import MediaPolicy


def test_places_are_the_middles_of_equal_stretches():
    # 10 frames in 4 stretches of 2.5: their middles are at 1.25, 3.75, 6.25 and 8.75
    assert frame_places(10, 4) == [1, 3, 6, 8]
    assert frame_places(10, 1) == [5]
    assert frame_places(3, 8) == [0, 1, 2]


@given(st.integers(1, 10_000), st.integers(1, 500))
def test_places_are_different_frames_in_order(total, count):
    places = frame_places(total, count)
    assert len(places) == min(total, count)
    assert places == sorted(set(places))
    assert places[0] >= 0
    assert places[-1] < total


@pytest.fixture
def film():
    pytest.importorskip("av")
    from tests.media.video_files import video

    return video


@pytest.mark.parametrize("kind", ["mp4", "matroska", "avi"])
def test_frames_are_the_right_ones(film, kind):
    frames = video_frames(film(20, kind=kind), 4, MediaPolicy())
    greys = [load_image_any(frame).getpixel((32, 24))[0] for frame in frames]
    # 20 frames in 4 stretches of 5: frames 2, 7, 12 and 17, with the grey values 10 n; the codec is not exact
    assert greys == pytest.approx([20, 70, 120, 170], abs=4.9)


def test_frames_are_made_smaller(film):
    (frame,) = video_frames(film(3), 1, MediaPolicy(), max_pixels=64 * 48 // 4)
    assert load_image_any(frame).size == (32, 24)


def test_a_short_video_gives_all_its_frames(film):
    assert len(video_frames(film(3), 8, MediaPolicy())) == 3


def test_videos_that_cannot_be_decoded(film):
    content = film(5)
    with pytest.raises(MediaError, match="over the limit of 100"):
        video_frames(content, 2, MediaPolicy(max_pixels=100))
    for damaged in (b"", b"no video", content[:200]):
        with pytest.raises(MediaError, match=r"cannot be decoded|no frames"):
            video_frames(damaged, 2, MediaPolicy())


def test_the_rules_name_the_decoder():
    assert frame_rules(8).startswith("8@middle/av-")
