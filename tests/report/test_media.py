"""Embedded images and audio, and the reasons why some are left out."""

from __future__ import annotations

import io
import wave
from base64 import b64decode

import pytest
from PIL import Image

from multimodal_eval import evaluate
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.report.media import AUDIO_BYTES, THUMBNAIL, AudioEmbedder, media_policy, thumbnail


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


def test_a_large_image_is_scaled_down(tmp_path):
    Image.effect_mandelbrot((1200, 600), (-2, -1, 1, 1), 60).convert("RGB").save(tmp_path / "a.png")
    small = thumbnail("a.png", MediaPolicy(tmp_path))
    assert (small.width, small.height, small.name) == (THUMBNAIL, THUMBNAIL // 2, "a.png")
    assert load_image_any(_content(small.uri)).size == (THUMBNAIL, THUMBNAIL // 2)


def test_a_drawing_keeps_its_pixels(tmp_path):
    image = Image.new("RGB", (40, 30), "white")
    image.paste((200, 10, 10), (10, 10, 30, 20))
    image.save(tmp_path / "a.png")
    copy = thumbnail("a.png", MediaPolicy(tmp_path))
    assert copy.uri.startswith("data:image/png;base64,")
    assert load_image_any(_content(copy.uri)).tobytes() == image.tobytes()


def test_image_metadata_is_removed(tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "taken at home by Ann"
    image = Image.effect_noise((64, 64), 90).convert("RGB")
    image.save(tmp_path / "a.jpg", exif=exif, comment=b"by Ann", icc_profile=b"profile of Ann")
    copy = _content(thumbnail("a.jpg", MediaPolicy(tmp_path)).uri)
    assert b"Ann" not in copy


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("none.png", "there is no file"),
        ("../out.png", "is outside the folder"),
        ("http://example.org/a.png", "not fetched for a report"),
        (b"nothing like it", "image formats PNG, JPEG"),
    ],
)
def test_an_image_that_cannot_be_shown_has_a_reason(tmp_path, source, reason):
    image = thumbnail(source, MediaPolicy(tmp_path))
    assert image.uri is None
    assert reason in image.reason


def test_the_policy_comes_from_a_run_of_the_user(tmp_path):
    asked = {"image_root": str(tmp_path), "allow_outside_images": True, "allow_image_urls": True}
    sample = {"references": ["a dog"], "generated_answer": "a dog"}
    run = evaluate([sample], metrics=["rouge_l"], output=tmp_path / "run", **asked)
    policy = media_policy(run.folder, run.info)
    assert (policy.root, policy.allow_outside, policy.allow_urls) == (tmp_path, True, False)
    assert media_policy(run.folder, run.info, fetch=True).allow_urls
    shut = evaluate([sample], metrics=["rouge_l"], output=tmp_path / "shut", image_root=str(tmp_path))
    assert not media_policy(shut.folder, shut.info, fetch=True).allow_urls


def test_a_small_audio_file_is_embedded(tmp_path):
    (tmp_path / "a.wav").write_bytes(_wav(800))
    audio = AudioEmbedder().embed("a.wav", MediaPolicy(tmp_path))
    assert audio.uri.startswith("data:audio/wav;base64,")
    assert _content(audio.uri) == _wav(800)


def test_a_large_audio_file_is_only_named(tmp_path):
    (tmp_path / "a.wav").write_bytes(_wav(AUDIO_BYTES))
    audio = AudioEmbedder().embed("a.wav", MediaPolicy(tmp_path))
    assert (audio.uri, audio.name) == (None, "a.wav")
    assert "larger than 200,000 bytes" in audio.reason


def test_the_total_size_of_audio_is_limited(tmp_path):
    (tmp_path / "a.wav").write_bytes(_wav(800))
    embedder = AudioEmbedder(bytes_left=3_000)
    embedded = [embedder.embed("a.wav", MediaPolicy(tmp_path)).uri is not None for _ in range(3)]
    assert embedded == [True, False, False]  # 1,644 bytes each


@pytest.mark.parametrize(
    "source", ["data:audio/wav;base64,AAAA", "http://example.org/a.wav", b"not audio", 7, "none.wav", "../a.wav"]
)
def test_invalid_audio_has_a_reason(tmp_path, source):
    audio = AudioEmbedder().embed(source, MediaPolicy(tmp_path))
    assert audio.uri is None
    assert audio.reason
