"""Frames of videos."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import MediaError
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.outgoing import frame_places, frame_rules, timed_places, video_frames
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


@given(st.integers(1, 3_000), st.integers(1, 300), st.sampled_from([10, 24, 25, 29.97, 30, 60]))
def test_a_constant_rate_gives_the_frames_of_the_count(total, count, rate):
    times = [place / rate for place in range(total + 1)]
    seconds = total / rate
    chosen = timed_places(times, (count + 0.01) / seconds, 1_000)  # so that the product is `count`, rounded
    assert sorted(set(chosen)) == frame_places(total, count)
    assert timed_places(times, 1_000.0, min(count, total)) == frame_places(total, min(count, total))


@pytest.fixture
def film():
    pytest.importorskip("av")
    from tests.media.video_files import video

    return video


@pytest.mark.parametrize("kind", ["mp4", "matroska", "avi"])
def test_frames_are_the_right_ones(film, kind):
    frames = video_frames(film(20, kind=kind), 4, MediaPolicy())
    greys = greys_of(frames)
    # 20 frames in 4 stretches of 5: frames 2, 7, 12 and 17, with the grey values 10 n; the codec is not exact
    assert greys == pytest.approx([20, 70, 120, 170], abs=4.9)


def greys_of(frames):
    return [load_image_any(frame).getpixel((32, 24))[0] for frame in frames]


@pytest.mark.parametrize("kind", ["mp4", "matroska", "avi"])
def test_frames_per_second_with_a_limit(film, kind):
    content = film(20, kind=kind)  # 2 seconds
    # 3/s are 6 stretches of 3.33 frames, with the middles 1.67, 5, 8.33, 11.67, 15, 18.33
    frames = video_frames(content, 8, MediaPolicy(), per_second=3)
    assert greys_of(frames) == pytest.approx([10, 50, 80, 110, 150, 180], abs=4.9)
    assert video_frames(content, 4, MediaPolicy(), per_second=3) == video_frames(content, 4, MediaPolicy())
    counts = [len(video_frames(content, 8, MediaPolicy(), per_second=rate)) for rate in (0.1, 0.7, 0.8, 1.2)]
    assert counts == [1, 1, 2, 2]  # 0.2 (never none), 1.4, 1.6 and 2.4, rounded
    assert len(video_frames(content, 100, MediaPolicy(), per_second=90)) == 20  # each frame once


@pytest.mark.parametrize(("kind", "codec"), [("matroska", "mpeg4"), ("mp4", "libx264")])  # x264: B-frames
def test_frames_per_second_go_by_time(film, kind, codec):
    # Frames 0 to 4 and 8 are shown for a tenth of a second, 5 to 7 for one second: 3.6 seconds. Two per second are 7
    # stretches with the middles 0.26, 0.77, 1.29, 1.8, 2.31, 2.83, 3.34: frames 2, 5, 5, 6, 6, 7, 7.
    content = film(9, kind=kind, codec=codec, begins=[0, 1, 2, 3, 4, 5, 15, 25, 35])
    assert greys_of(video_frames(content, 99, MediaPolicy(), per_second=2)) == pytest.approx([20, 50, 60, 70], abs=4.9)
    by_count = greys_of(video_frames(content, 4, MediaPolicy()))
    assert by_count == pytest.approx([10, 30, 50, 70], abs=4.9)  # of 9 frames: 1.1, 3.4, 5.6, 7.9


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
    assert frame_rules(64, 0.5).startswith("0.5/s<=64@middle/av-")
