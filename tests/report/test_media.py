"""Small copies of pictures and sounds, and the reasons why there is none."""

from __future__ import annotations

import io
import wave
from base64 import b64decode

import pytest
from PIL import Image

from multimodal_eval.core.config import RunConfig
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.report.media import AUDIO_BYTES, THUMBNAIL, Sounds, media_policy, thumbnail


def _content(uri):
    return b64decode(uri.partition(",")[2])


def _wav(frames):
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(b"\x00\x00" * frames)
    return buffer.getvalue()


def test_a_large_picture_becomes_a_small_one(tmp_path):
    Image.effect_mandelbrot((1200, 600), (-2, -1, 1, 1), 60).convert("RGB").save(tmp_path / "a.png")
    found = thumbnail("a.png", MediaPolicy(tmp_path))
    assert (found.width, found.height, found.name) == (THUMBNAIL, THUMBNAIL // 2, "a.png")
    assert load_image_any(_content(found.uri)).size == (THUMBNAIL, THUMBNAIL // 2)


def test_a_drawing_is_kept_as_it_is(tmp_path):
    picture = Image.new("RGB", (40, 30), "white")
    picture.paste((200, 10, 10), (10, 10, 30, 20))
    picture.save(tmp_path / "a.png")
    found = thumbnail("a.png", MediaPolicy(tmp_path))
    assert found.uri.startswith("data:image/png;base64,")
    assert load_image_any(_content(found.uri)).tobytes() == picture.tobytes()


def test_what_a_file_says_of_its_making_is_left_out(tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "taken at home by Ann"
    picture = Image.effect_noise((64, 64), 90).convert("RGB")
    picture.save(tmp_path / "a.jpg", exif=exif, comment=b"by Ann", icc_profile=b"profile of Ann")
    found = _content(thumbnail("a.jpg", MediaPolicy(tmp_path)).uri)
    assert b"Ann" not in found


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("none.png", "there is no file"),
        ("../out.png", "lies outside the folder"),
        ("http://example.org/a.png", "not fetched for a report"),
        (b"nothing like it", "no PNG, JPEG"),
    ],
)
def test_what_cannot_be_shown_says_why(tmp_path, source, reason):
    found = thumbnail(source, MediaPolicy(tmp_path))
    assert found.uri is None
    assert reason in found.reason


def test_the_policy_is_the_runs():
    config = RunConfig(image_root="/data", allow_outside_images=True, allow_image_urls=True)
    policy = media_policy(config)
    assert (str(policy.root), policy.allow_outside, policy.allow_urls) == ("/data", True, False)
    assert media_policy(config, fetch=True).allow_urls
    assert not media_policy(RunConfig(), fetch=True).allow_urls


def test_a_small_sound_is_carried_whole(tmp_path):
    (tmp_path / "a.wav").write_bytes(_wav(800))
    found = Sounds().sound("a.wav", MediaPolicy(tmp_path))
    assert found.uri.startswith("data:audio/wav;base64,")
    assert _content(found.uri) == _wav(800)


def test_a_large_sound_is_named_only(tmp_path):
    (tmp_path / "a.wav").write_bytes(_wav(AUDIO_BYTES))
    found = Sounds().sound("a.wav", MediaPolicy(tmp_path))
    assert (found.uri, found.name) == (None, "a.wav")
    assert "larger than 200,000 bytes" in found.reason


def test_sounds_together_have_a_limit(tmp_path):
    (tmp_path / "a.wav").write_bytes(_wav(800))
    sounds = Sounds(room=3_000)
    found = [sounds.sound("a.wav", MediaPolicy(tmp_path)).uri is not None for _ in range(3)]
    assert found == [True, False, False]  # 1,644 bytes each


@pytest.mark.parametrize(
    "source", ["data:audio/wav;base64,AAAA", "http://example.org/a.wav", b"no sound", 7, "none.wav", "../a.wav"]
)
def test_what_is_no_sound_says_why(tmp_path, source):
    found = Sounds().sound(source, MediaPolicy(tmp_path))
    assert found.uri is None
    assert found.reason
