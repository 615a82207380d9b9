"""Media of requests: read under the policy, once per file, in threads."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import hashlib
from dataclasses import replace

import pytest

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import AudioError, ConfigError, ImageError, MediaError, UnavailableError
from multimodal_eval.generate import media_parts
from multimodal_eval.generate.media_parts import MediaParts
from multimodal_eval.generate.turns import Reference
from multimodal_eval.media.policy import MediaPolicy
from tests.media.image_files import encoded, gradient
from tests.media.wav_files import wav

PNG = encoded(gradient(8, 6))
WAV = wav(b"\0\0" * 160)
MP4 = b"\0\0\0\x18ftypmp42" + bytes(16)


def media_of(*references, policy=None, **settings):
    config = GenerationConfig(model="echo:", **settings)
    media = MediaParts(config, policy or MediaPolicy())

    async def read():
        return await asyncio.gather(*(media.part(reference) for reference in references))

    return asyncio.run(read())


def test_an_image_that_models_can_read_is_sent_as_it_is():
    (media,) = media_of(Reference("image", PNG))
    assert (media.kind, media.mime, media.content, media.url) == ("image", "image/png", PNG, None)


def test_a_large_image_is_made_smaller():
    (media,) = media_of(Reference("image", encoded(gradient(80, 60))), max_pixels=1200)
    from multimodal_eval.media.images import load_image_any

    assert load_image_any(media.content).size == (40, 30)


def test_the_digest_is_that_of_what_is_sent():
    large = encoded(gradient(80, 60))
    for media in media_of(
        Reference("image", large),
        Reference("image", PNG),
        Reference("image", encoded(gradient(), "BMP")),
        Reference("audio", WAV),
        Reference("video", MP4),
        max_pixels=1200,
    ):
        assert media.digest == hashlib.sha256(media.content).hexdigest()
        assert media == dataclasses.replace(media, sha256=None)  # it is only kept


def test_detail_is_that_of_the_part_or_of_the_run():
    first, second = media_of(Reference("image", PNG, "low"), Reference("image", PNG), detail="high")
    assert (first.detail, second.detail) == ("low", "high")
    (audio,) = media_of(Reference("audio", WAV), detail="high")
    assert audio.detail is None


def test_audio_and_video_are_sent_as_they_are():
    audio, spoken, video = media_of(
        Reference("audio", WAV),
        Reference("audio", "data:audio/wav;base64," + base64.b64encode(WAV).decode()),
        Reference("video", MP4),
    )
    assert (audio.mime, audio.content) == ("audio/wav", WAV)
    assert spoken == audio
    assert (video.mime, video.content) == ("video/mp4", MP4)


def test_urls_are_passed_on_only_if_asked():
    url = "https://example.org/a.PNG?size=1"
    (media,) = media_of(Reference("image", url), media_as="url")
    assert (media.url, media.content, media.mime) == (url, None, "image/png")
    (unknown,) = media_of(Reference("video", "https://example.org/watch"), media_as="url")
    assert unknown.mime == "video/*"
    with pytest.raises(ImageError, match="is on the network"):
        media_of(Reference("image", url))
    (local,) = media_of(Reference("image", PNG), media_as="url")
    assert local.content == PNG  # there is no URL to pass on


def test_files_outside_the_folder_are_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    policy = MediaPolicy(root=tmp_path / "data")
    for kind, error in (("image", ImageError), ("audio", AudioError), ("video", MediaError)):
        with pytest.raises(error, match="is outside the folder"):
            media_of(Reference(kind, "../secret.png"), policy=policy)


@pytest.fixture
def reads(monkeypatch):
    """The sources that are read from."""
    sources = []
    original = media_parts.image_bytes
    monkeypatch.setattr(
        media_parts, "image_bytes", lambda source, **rest: sources.append(source) or original(source, **rest)
    )
    return sources


@pytest.fixture
def conversions(monkeypatch):
    """The sizes of the images that are converted."""
    sizes = []
    original = media_parts.image_file
    monkeypatch.setattr(
        media_parts, "image_file", lambda content, *rest: sizes.append(len(content)) or original(content, *rest)
    )
    return sizes


def test_a_file_is_read_once_even_by_requests_at_the_same_time(tmp_path, reads):
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    first, *others = media_of(*[Reference("image", str(path))] * 20)
    assert len(reads) == 1
    assert all(other is first for other in others)


def test_files_with_the_same_content_are_converted_once(tmp_path, conversions):
    content = encoded(gradient(80, 60))
    media = MediaParts(GenerationConfig(model="echo:", max_pixels=100), MediaPolicy())
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(content)
    made = [asyncio.run(media.part(Reference("image", str(tmp_path / name)))) for name in ("a.png", "b.png", "a.png")]
    assert len(conversions) == 1
    assert made[0] is made[1] is made[2]


def test_the_kept_media_are_bounded(tmp_path, monkeypatch, reads):
    monkeypatch.setattr(media_parts, "KEPT_BYTES", 3 * len(PNG))
    media = MediaParts(GenerationConfig(model="echo:"), MediaPolicy())
    names = [str(tmp_path / f"{number}.png") for number in range(5)]
    for number in range(5):
        (tmp_path / f"{number}.png").write_bytes(PNG[:-4] + bytes([number] * 4))
    for name in [*names, names[4], names[0]]:
        asyncio.run(media.part(Reference("image", name)))
    assert reads == [*names, names[0]]  # the last ones are kept, the first ones are read again


def test_a_failure_reaches_everyone_who_waits_and_is_tried_again(tmp_path):
    path = tmp_path / "later.png"
    media = MediaParts(GenerationConfig(model="echo:"), MediaPolicy())

    async def read():
        waiting = (media.part(Reference("image", str(path))) for _ in range(3))
        failures = await asyncio.gather(*waiting, return_exceptions=True)
        path.write_bytes(PNG)
        return failures, await media.part(Reference("image", str(path)))

    failures, there = asyncio.run(read())
    assert [type(failure) for failure in failures] == [ImageError] * 3
    assert there.content == PNG


def test_one_who_gives_up_does_not_stop_the_others(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    media = MediaParts(GenerationConfig(model="echo:"), MediaPolicy())

    async def read():
        first, second = (asyncio.create_task(media.part(Reference("image", str(path)))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(read()).content == PNG


def test_frames_need_a_decoder(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UnavailableError, match=r"multimodal-eval\[video\]"):
        MediaParts(GenerationConfig(model="echo:", frames=4), MediaPolicy())


def test_frames_of_a_video():
    pytest.importorskip("av")
    from tests.media.video_files import video

    (media,) = media_of(Reference("video", video(20)), frames=4)
    assert (media.mime, media.content, len(media.frames)) == ("image/jpeg", None, 4)
    (media,) = media_of(Reference("video", video(20)), frames=8, frames_per_second=1.5)  # of two seconds
    assert len(media.frames) == 3
    config = GenerationConfig(model="echo:", frames=8, frames_per_second=1.5)
    assert str(MediaParts(config, MediaPolicy()).settings["frames"]).startswith("1.5/s<=8@middle/av-")
    with pytest.raises(ConfigError, match="`frames_per_second` needs the most images"):
        MediaParts(GenerationConfig(model="echo:", frames_per_second=1), MediaPolicy())
    assert media.sha256 == replace(media, sha256=None).digest  # computed once, in the thread
