"""JPEG files decoded straight into memory: Pillow's pixels to the last bit, Pillow's reasons, or nothing."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval.core.errors import ImageError
from multimodal_eval.media import images
from multimodal_eval.media.images import decoded_into, is_same_as_pillow, load_image_any, usual_jpeg
from multimodal_eval.media.policy import MediaPolicy
from tests.media.image_files import encoded, gradient, png_bomb

simplejpeg = pytest.importorskip("simplejpeg", reason="the extra [torch] is not installed")

POLICY = MediaPolicy(max_pixels=200_000)
MEMORY = np.zeros(4 << 18, np.uint8)


def always(width, height):
    return True


def outcome(content, policy=POLICY, is_wanted=always):
    """The pixels, the reason, or None if Pillow decodes the file."""
    MEMORY[:] = 77
    try:
        pixels = decoded_into(MEMORY, content, policy, is_wanted)
    except ImageError as fault:
        return str(fault)
    return None if pixels is None else pixels[..., :3].copy()


def of_pillow(content, policy=POLICY):
    try:
        return np.asarray(load_image_any(content, policy=policy))
    except ImageError as fault:
        return str(fault)


def check(content):
    """Whatever is not left to Pillow equals Pillow's result. Returns whether it was decoded."""
    ours, expected = outcome(content), of_pillow(content)
    if ours is None:
        return False
    if isinstance(ours, str):
        assert ours == expected
        return False
    assert not isinstance(expected, str), expected
    np.testing.assert_array_equal(ours, expected)
    return True


def photo(width, height, seed=0):
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (7, 9, 3)).astype(np.uint8)).resize((width, height), 3)
    grain = rng.integers(-20, 20, (height, width, 3))
    return Image.fromarray(np.clip(np.asarray(coarse).astype(np.int16) + grain, 0, 255).astype(np.uint8))


SIZES = [(1, 1), (7, 9), (8, 8), (16, 16), (17, 15), (33, 64), (100, 3), (3, 100), (255, 129), (320, 240)]
usual = st.fixed_dictionaries(
    {
        "quality": st.integers(1, 100),
        "subsampling": st.sampled_from([0, 1, 2, "4:1:1"]),
        "progressive": st.booleans(),
        "optimize": st.booleans(),
        "restart_marker_blocks": st.sampled_from([0, 1, 5]),
    }
)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
@pytest.mark.parametrize("subsampling", [0, 1, 2, "4:1:1"])
def test_usual_files_are_decoded(size, progressive, subsampling):
    content = encoded(photo(*size), "JPEG", progressive=progressive, subsampling=subsampling, quality=90)
    assert check(content)


@pytest.mark.property
@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 1 << 30), usual)
def test_pixels_are_those_of_pillow(width, height, seed, options):
    assert check(encoded(photo(width, height, seed), "JPEG", **options))


@pytest.mark.property
@given(st.data(), st.integers(1, 60), st.integers(1, 60), usual)
def test_damaged_files_have_the_outcome_of_pillow(data, width, height, options):
    content = bytearray(encoded(photo(width, height), "JPEG", **options))
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(3, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(4, len(content))) :]
    check(bytes(content) + data.draw(st.binary(max_size=20)))


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(photo(31, 17), "JPEG", exif=exif)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_files_to_turn_are_left_to_pillow(orientation):
    assert outcome(turned(orientation)) is None
    assert check(turned(1))


@pytest.mark.parametrize(
    "content",
    [
        encoded(photo(40, 30).convert("L"), "JPEG"),
        encoded(photo(40, 30).convert("CMYK"), "JPEG"),
        encoded(photo(40, 30), "JPEG")[:-2],  # without the mark of the end
        encoded(photo(40, 30), "JPEG")[:-200],
        encoded(photo(40, 30), "JPEG").replace(b"\xff\xda", b"\xff\xda\0", 1),
        encoded(gradient(), "PNG"),
        b"",
        b"\xff\xd8",
    ],
    ids=["grey", "CMYK", "no end", "cut off", "damaged", "PNG", "empty", "short"],
)
def test_other_files_are_left_to_pillow(content):
    assert outcome(content) is None


def with_size(content, width, height):
    """The file with another size in its header."""
    place = content.index(b"\xff\xc0") + 5
    return content[:place] + struct.pack(">HH", height, width) + content[place + 4 :]


def test_the_header_is_checked_before_anything_is_decoded(monkeypatch):
    def decode(*_arguments, **_options):
        raise AssertionError("it was decoded")

    monkeypatch.setattr(images, "_decoder", lambda: decode)
    bomb = with_size(encoded(photo(16, 16), "JPEG"), 60_000, 60_000)
    assert outcome(bomb) == of_pillow(bomb)
    assert "over the limit of 200,000" in outcome(bomb)
    assert outcome(b"\xff\xd8\xff" + bytes(50)) == of_pillow(b"\xff\xd8\xff" + bytes(50))
    assert outcome(png_bomb()) is None
    assert outcome(encoded(photo(16, 16), "JPEG"), is_wanted=lambda *size: size != (16, 16)) is None


def test_a_file_whose_sizes_differ_is_left_to_pillow():
    """Two headers of a frame: Pillow may believe another one than the decoder. Memory after the image is kept."""
    content = encoded(photo(16, 16), "JPEG")
    place = content.index(b"\xff\xc0")
    frame = content[place : place + 2 + int.from_bytes(content[place + 2 : place + 4], "big")]
    for width, height in ((8, 8), (64, 64), (16, 17)):
        second = with_size(frame, width, height)
        for both in (frame + second, second + frame):
            check(content.replace(frame, both, 1))
            assert (MEMORY[64 * 64 * 4 :] == 77).all()


def test_an_image_that_does_not_fit_into_the_memory_is_left_to_pillow():
    content = encoded(photo(40, 30), "JPEG")
    memory = np.full(40 * 30 * 4 + 9, 5, np.uint8)
    assert decoded_into(memory[: 40 * 30 * 4 - 1], content, POLICY, always) is None
    assert (memory == 5).all()
    pixels = decoded_into(memory[: 40 * 30 * 4], content, POLICY, always)
    assert np.shares_memory(pixels, memory)
    assert (memory[40 * 30 * 4 :] == 5).all()


def test_another_library_is_not_used(monkeypatch):
    assert is_same_as_pillow(simplejpeg.decode_jpeg)
    assert not is_same_as_pillow(lambda content, kind: simplejpeg.decode_jpeg(content, kind, fastupsample=True))
    assert not is_same_as_pillow(lambda content: None)
    monkeypatch.setattr(images, "is_same_as_pillow", lambda _: False)
    images._decoder.cache_clear()
    try:
        assert outcome(encoded(photo(16, 16), "JPEG")) is None
    finally:
        images._decoder.cache_clear()


PHOTO = photo(48, 40)


def is_usual(content, is_wanted=always):
    return usual_jpeg(content, POLICY, is_wanted) is not None


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_a_gpu_may_decode_usual_files(subsampling):
    content = encoded(PHOTO, "JPEG", subsampling=subsampling)
    assert usual_jpeg(content, POLICY, always) == content
    assert is_usual(content, lambda width, height: (width, height) == (48, 40))
    assert not is_usual(content, lambda width, height: False)


def test_a_gpu_gets_no_file_that_it_would_read_in_another_way():
    content = encoded(PHOTO, "JPEG")
    turned = Image.Exif()
    turned[0x0112] = 6
    rgb = content.replace(b"\xff\xdb", b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0\xff\xdb", 1)  # APP14: colours are RGB
    with Image.open(io.BytesIO(rgb)) as image:
        assert image.info["adobe_transform"] == 0
    others = {
        "half a file": content[: len(content) // 2],
        "no end": content[:-2],
        "progressive": encoded(PHOTO, "JPEG", progressive=True),
        "grey": encoded(PHOTO.convert("L"), "JPEG"),
        "CMYK": encoded(PHOTO.convert("CMYK"), "JPEG"),
        "turned": encoded(PHOTO, "JPEG", exif=turned),
        "4:1:1": content.replace(b"\1\x22\0", b"\1\x41\0", 1),
        "RGB": rgb,
        "PNG": encoded(PHOTO),
        "nothing": b"",
    }
    assert [name for name, file in others.items() if is_usual(file)] == []
    with pytest.raises(ImageError, match="over the limit"):
        usual_jpeg(encoded(Image.new("RGB", (500, 500)), "JPEG"), POLICY, always)
