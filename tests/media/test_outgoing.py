"""Which files are sent as they are, and how the others are converted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval.core.errors import AudioError, ImageError, MediaError
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.outgoing import audio_file, image_file, image_rules, sized, video_file
from multimodal_eval.media.policy import MediaPolicy
from tests.media.image_files import encoded, gradient, png
from tests.media.wav_files import wav

POLICY = MediaPolicy()


def turned(image, kind="JPEG"):
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(image, kind, exif=exif)


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (encoded(gradient(), "JPEG"), "image/jpeg"),
        (encoded(gradient(mode="L"), "JPEG"), "image/jpeg"),
        (encoded(gradient(), "PNG"), "image/png"),
        (encoded(gradient(mode="RGBA"), "PNG"), "image/png"),
        (encoded(gradient(mode="P"), "PNG"), "image/png"),
        (encoded(gradient(), "WEBP"), "image/webp"),
        (encoded(gradient(mode="P"), "GIF"), "image/gif"),
    ],
)
def test_common_files_are_sent_unchanged(content, mime):
    assert image_file(content, POLICY) == (mime, content)
    assert image_file(content, POLICY, max_pixels=48) == (mime, content)  # 8 x 6


@pytest.mark.parametrize("kind", ["BMP", "TIFF"])
def test_other_formats_become_png_without_loss(kind):
    mime, content = image_file(encoded(gradient(), kind), POLICY)
    assert mime == "image/png"
    assert np.array_equal(load_image_any(content), gradient())


def test_an_image_on_its_side_is_turned():
    mime, content = image_file(turned(gradient(80, 60)), POLICY)
    assert mime == "image/jpeg"
    assert load_image_any(content).size == (60, 80)
    assert image_file(content, POLICY) == (mime, content)  # upright now
    mime, content = image_file(turned(gradient(80, 60), "PNG"), POLICY)
    assert (mime, load_image_any(content).size) == ("image/png", (60, 80))


def test_pixels_that_models_misread_are_converted():
    mime, content = image_file(encoded(gradient(mode="CMYK"), "JPEG"), POLICY)
    assert (mime, Image.open(_stream(content)).mode) == ("image/jpeg", "RGB")
    sixteen = png(2, 1, depth=16, rows=b"\0" + b"\0\0\xff\xff")
    mime, content = image_file(sixteen, POLICY)
    assert mime == "image/png"
    assert [load_image_any(content).getpixel((x, 0)) for x in (0, 1)] == [(0, 0, 0), (255, 255, 255)]


def _stream(content):
    import io

    return io.BytesIO(content)


def test_a_large_image_is_resampled_with_lanczos_and_keeps_its_kind():
    large = gradient(80, 60)
    mime, content = image_file(encoded(large), POLICY, max_pixels=40 * 30)
    assert mime == "image/png"
    assert np.array_equal(load_image_any(content), large.resize((40, 30), Image.Resampling.LANCZOS))
    mime, content = image_file(encoded(large, "JPEG"), POLICY, max_pixels=40 * 30)
    assert (mime, load_image_any(content).size) == ("image/jpeg", (40, 30))


def test_transparency_is_over_white_if_the_image_is_converted():
    clear = Image.new("RGBA", (20, 20), (255, 0, 0, 0))
    _, content = image_file(encoded(clear), POLICY, max_pixels=100)
    assert load_image_any(content).getpixel((5, 5)) == (255, 255, 255)


def test_jpeg_has_quality_95_without_chroma_subsampling():
    _, content = image_file(turned(gradient(80, 60)), POLICY)
    image = Image.open(_stream(content))
    same = Image.open(_stream(encoded(gradient(60, 80), "JPEG", quality=95, subsampling=0)))
    assert image.quantization == same.quantization
    assert image.layer == same.layer  # the sampling factors


def test_the_same_image_gives_the_same_bytes():
    content = encoded(gradient(80, 60), "TIFF")
    assert image_file(content, POLICY, 500) == image_file(content, POLICY, 500)


@pytest.mark.parametrize(
    ("size", "limit", "expected"),
    [
        ((80, 60), 4800, (80, 60)),
        ((80, 60), 4799, (79, 59)),  # factor 0.99990: 79.99 x 59.99
        ((80, 60), 1200, (40, 30)),
        ((100, 1), 10, (10, 1)),  # the height cannot be less than 1
        ((1, 100), 10, (1, 10)),
        ((3, 3), 1, (1, 1)),
    ],
)
def test_sizes(size, limit, expected):
    assert sized(size, limit) == expected


@given(st.integers(1, 100_000), st.integers(1, 100_000), st.integers(1, 50_000_000))
def test_a_smaller_size_fits_and_keeps_the_aspect_ratio(width, height, limit):
    narrow, low = sized((width, height), limit)
    assert 1 <= narrow * low <= max(limit, 1)
    assert 1 <= narrow <= width
    assert 1 <= low <= height
    if narrow > 1 and low > 1:  # each side is less than one pixel too short
        assert abs(narrow * height - low * width) <= max(width, height)


def test_images_that_cannot_be_sent():
    first = gradient(mode="P")
    moving = encoded(first, "GIF", save_all=True, append_images=[first.transpose(Image.Transpose.ROTATE_180)])
    for content, reason in ((b"", "empty"), (b"text", "none of the image formats"), (moving, "several frames")):
        with pytest.raises(ImageError, match=reason):
            image_file(content, POLICY)
    with pytest.raises(ImageError, match="over the limit"):
        image_file(encoded(gradient()), MediaPolicy(max_pixels=10))


def test_the_rules_name_the_library():
    assert image_rules(None).startswith("1/pillow-")
    assert image_rules(1000).startswith("1<=1000/pillow-")


def test_audio_is_known_by_its_content():
    speech = wav(b"\0\0" * 10)
    assert audio_file(speech, POLICY) == ("audio/wav", speech)
    for start in (b"ID3\x04", b"\xff\xfb\x90\x64", b"\xff\xf3\x40\xc4"):  # a tag, MPEG-1 and MPEG-2 layer III
        assert audio_file(start + bytes(8), POLICY) == ("audio/mpeg", start + bytes(8))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x1aE\xdf\xa3", "the audio is in the format Matroska. Models are sent WAV or MP3: convert it"),
        (b"OggS" + bytes(8), "the Ogg audio cannot be decoded"),
        (b"fLaC" + bytes(8), "the FLAC audio cannot be decoded"),
        (b"\0\0\0\x18ftypM4A ", "the MP4 audio cannot be decoded"),
        (b"\xff\xf1\x50\x80", "no known audio format"),  # AAC
        (b"", "no known audio format"),
        (7, "audio must be a path, a URL or bytes. Got 7 instead"),
    ],
)
def test_other_audio_is_refused(content, reason):
    with pytest.raises(AudioError, match=reason):
        audio_file(content, POLICY)


@pytest.mark.parametrize(
    ("start", "mime"),
    [
        (b"\0\0\0\x18ftypisom", "video/mp4"),
        (b"\0\0\0\x14ftypqt  ", "video/quicktime"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm", "video/webm"),
        (b"\x1aE\xdf\xa3\xa3B\x86\x81\x01B\x82\x88matroska", "video/x-matroska"),
        (b"RIFF\0\0\0\0AVI LIST", "video/x-msvideo"),
        (b"\0\0\x01\xba\x44", "video/mpeg"),
    ],
)
def test_video_is_known_by_its_content(start, mime):
    assert video_file(start + bytes(8), POLICY) == (mime, start + bytes(8))


def test_other_video_is_refused():
    with pytest.raises(MediaError, match="in none of the video formats MP4"):
        video_file(b"text", POLICY)
    with pytest.raises(MediaError, match=r"a video must be a path, a URL or bytes. Got None instead"):
        video_file(None, POLICY)
    with pytest.raises(MediaError, match="the video has 5 bytes, over the limit of 4"):
        video_file(b"12345", MediaPolicy(max_bytes=4))
