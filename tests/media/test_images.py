"""Images from every kind of source, their conversion, and the reasons for refusing one."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import struct
import subprocess
import sys
import warnings
from pathlib import Path
from urllib.parse import quote_from_bytes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from multimodal_eval.core.errors import ImageError
from multimodal_eval.media.images import image_bytes, load_image_any
from multimodal_eval.media.policy import MediaPolicy
from tests.media.image_files import (
    FORMATS,
    encoded,
    gif_with_a_larger_frame,
    gradient,
    png,
    png_bomb,
    png_chunk,
    webp_bomb,
)

PNG = encoded(gradient())


def pixels(image):
    return np.asarray(image).tolist()


# sources


def test_every_kind_of_source_gives_the_same_image(folder):
    path = folder / "in.png"
    sources = [
        str(path),
        path,
        path.as_uri(),
        PNG,
        bytearray(PNG),
        memoryview(PNG),
        gradient(),
        "data:image/png;base64," + base64.b64encode(PNG).decode(),
        "data:;base64," + base64.b64encode(PNG).decode().rstrip("="),
        "data:image/png;base64," + base64.b64encode(PNG).decode().replace("+", "%2B").replace("/", "%2F"),
        "data:image/png," + quote_from_bytes(PNG),
        "DATA:text/plain;BASE64," + base64.encodebytes(PNG).decode(),  # broken into lines; the media type is ignored
    ]
    for source in sources:
        image = load_image_any(source)
        assert (image.mode, pixels(image)) == ("RGB", pixels(gradient()))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_read(kind):
    lossless = {"WEBP": {"lossless": True}}.get(kind, {})
    image = load_image_any(encoded(gradient(), kind, **lossless))
    assert (image.mode, image.size) == ("RGB", (8, 6))
    if kind in ("PNG", "WEBP", "BMP", "TIFF"):
        assert pixels(image) == pixels(gradient())


@pytest.mark.parametrize("kind", ["PPM", "ICO", "PCX", "TGA", "JPEG2000"])
def test_other_formats_are_not_opened(kind):
    with pytest.raises(ImageError, match="none of the image formats PNG, JPEG, WebP, GIF, BMP, TIFF"):
        load_image_any(encoded(gradient(32, 32), kind))


@pytest.mark.parametrize("kind", [*FORMATS, "Pillow"])
def test_content_decodes_without_its_source(kind):
    source = gradient() if kind == "Pillow" else encoded(gradient(), kind)
    assert pixels(load_image_any(image_bytes(source))) == pixels(load_image_any(source))


def test_content_of_a_file_is_the_file(folder):
    assert hashlib.sha256(image_bytes(folder / "in.png")).digest() == hashlib.sha256(PNG).digest()


def test_equal_images_in_memory_have_equal_content():
    image, reopened = gradient(), Image.open(io.BytesIO(PNG))
    assert image_bytes(image) == image_bytes(reopened)
    changed = gradient()
    changed.putpixel((0, 0), (1, 2, 3))
    assert image_bytes(image) != image_bytes(changed)
    assert image_bytes(gradient(6, 8)) != image_bytes(gradient(8, 6))


@pytest.mark.parametrize("source", [None, 3, ["x.png"], np.zeros((2, 2, 3), np.uint8)])
def test_other_types_are_refused(source):
    with pytest.raises(ImageError, match="must be a path, a URL, bytes or a Pillow image"):
        load_image_any(source)


# conversion


def test_transparency_is_over_white():
    image = Image.new("RGBA", (3, 1))
    image.putdata([(10, 20, 30, 255), (10, 20, 30, 0), (0, 0, 0, 128)])
    # Black at alpha 128 over white: (1 - 128/255) * 255 = 127.
    assert pixels(load_image_any(encoded(image))) == [[[10, 20, 30], [255, 255, 255], [127, 127, 127]]]


def test_transparent_greys_palettes_and_key_colours():
    grey = Image.new("LA", (2, 1))
    grey.putdata([(50, 255), (50, 0)])
    assert pixels(load_image_any(encoded(grey))) == [[[50] * 3, [255] * 3]]
    palette = Image.new("P", (2, 1))
    palette.putpalette([9, 8, 7, 1, 2, 3])
    palette.putdata([0, 1])
    assert pixels(load_image_any(encoded(palette))) == [[[9, 8, 7], [1, 2, 3]]]
    for kind in ("PNG", "GIF"):
        assert pixels(load_image_any(encoded(palette, kind, transparency=1))) == [[[9, 8, 7], [255] * 3]]
    assert pixels(load_image_any(encoded(palette, "PNG", transparency=b"\x00\xff"))) == [[[255] * 3, [1, 2, 3]]]
    key = Image.new("RGB", (2, 1))
    key.putdata([(1, 2, 3), (4, 5, 6)])
    assert pixels(load_image_any(encoded(key, "PNG", transparency=(4, 5, 6)))) == [[[1, 2, 3], [255] * 3]]


def test_sixteen_bits_are_scaled_and_not_clipped():
    values = [0, 128, 129, 256, 257, 32_896, 65_535]
    # round(v / 257): 0.498 -> 0, 0.502 -> 1, 0.996 -> 1, 1, 128, 255
    expected = [0, 0, 1, 1, 1, 128, 255]
    rows = b"\0" + struct.pack(">7H", *values)
    for content in (
        png(7, 1, depth=16, rows=rows),
        encoded(Image.fromarray(np.array([values], np.uint16)), "TIFF"),
    ):
        assert pixels(load_image_any(content)) == [[[value] * 3 for value in expected]]
    key = png(7, 1, depth=16, rows=rows, extra=png_chunk(b"tRNS", struct.pack(">H", 257)))
    assert [pixel[0] for pixel in pixels(load_image_any(key))[0]] == [0, 0, 1, 1, 255, 128, 255]


def test_black_and_white_and_cmyk():
    assert pixels(load_image_any(encoded(Image.new("1", (1, 1), 1)))) == [[[255, 255, 255]]]
    inks = Image.new("CMYK", (1, 1), (0, 255, 100, 51))
    # (255 - ink) (255 - 51) / 255: 204, 0, 155 * 0.8 = 124
    assert pixels(load_image_any(encoded(inks, "TIFF"))) == [[[204, 0, 124]]]
    assert np.abs(np.asarray(load_image_any(encoded(inks, "JPEG"))).astype(int) - [204, 0, 124]).max() <= 3


@pytest.mark.parametrize("mode", ["F", "I", "LAB"])
def test_modes_without_a_defined_range_are_refused(mode):
    with pytest.raises(ImageError, match="no well-defined conversion"):
        load_image_any(encoded(Image.new(mode, (2, 2)), "TIFF"))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_image_is_turned_upright(kind, orientation):
    # The NumPy function that turns an image of each orientation upright.
    turn = {
        1: lambda a: a,
        2: np.fliplr,
        3: lambda a: np.rot90(a, 2),
        4: np.flipud,
        5: lambda a: np.swapaxes(a, 0, 1),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: np.rot90(np.swapaxes(a, 0, 1), 2),
        8: np.rot90,
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.repeat(np.repeat(np.array([[0, 90, 180], [60, 150, 240]], np.uint8), 8, 0), 8, 1))
    content = encoded(stored.convert("RGB"), kind, exif=exif)
    turned = np.asarray(load_image_any(content))[..., 0].astype(int)
    expected = turn(np.asarray(stored)).astype(int)
    assert turned.shape == expected.shape
    assert np.abs(turned - expected).max() < 25
    opened = Image.open(io.BytesIO(content))
    assert pixels(load_image_any(opened)) == pixels(load_image_any(content))


def test_damaged_exif_is_ignored():
    content = encoded(gradient(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\x00garbage")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns about damaged EXIF data
        assert load_image_any(content).size == (8, 6)


# refusals


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_several_frames_are_refused(kind):
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "green")]
    content = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    with pytest.raises(ImageError, match=r"has several (frames|pages)"):
        load_image_any(content)


def test_a_tiff_with_a_loop_of_pages_is_read():
    content = bytearray(encoded(gradient(), "TIFF"))
    start = struct.unpack("<I", content[4:8])[0]
    count = struct.unpack("<H", content[start : start + 2])[0]
    content[start + 2 + 12 * count : start + 6 + 12 * count] = struct.pack("<I", start)
    assert load_image_any(bytes(content)).size == (8, 6)  # its only page links to itself


@pytest.mark.parametrize("kind", FORMATS)
def test_half_an_image_is_refused(kind):
    content = encoded(gradient(64, 64), kind)
    with pytest.raises(ImageError, match="cannot be decoded"):
        load_image_any(content[: len(content) // 2])


def test_invalid_sources_are_refused(folder):
    with pytest.raises(ImageError, match="0 bytes"):
        load_image_any(b"")
    with pytest.raises(ImageError, match=r"none of the image formats PNG, JPEG, WebP, GIF, BMP, TIFF$"):
        load_image_any(b"hello")
    with pytest.raises(ImageError, match="there is no file"):
        load_image_any(folder / "missing.png")
    with pytest.raises(ImageError, match="not a regular file"):
        load_image_any(folder)
    with pytest.raises(ImageError, match="cannot be read"):
        load_image_any("a\0b.png")
    with pytest.raises(ImageError, match="cannot be read"):
        load_image_any("x" * 5000)
    with pytest.raises(ImageError, match="no pixels"):
        load_image_any(Image.new("RGB", (0, 3)))
    with pytest.raises(ImageError, match="no comma"):
        load_image_any("data:image/png;base64")
    with pytest.raises(ImageError, match="base64 cannot be decoded"):
        load_image_any("data:;base64,####")
    with pytest.raises(ImageError, match="another machine"):
        load_image_any("file://example.org/x.png")
    with pytest.raises(ImageError, match="is not a file URL"):
        load_image_any("file://[x/y.png")


def test_a_pipe_and_a_device_are_refused_immediately(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", Path("/dev/zero")):
        with pytest.raises(ImageError, match="not a regular file"):
            load_image_any(path)


@pytest.mark.parametrize("url", ["ftp://h/x.png", "s3://bucket/x.png", "javascript://x"])
def test_urls_with_other_schemes_are_refused(url):
    with pytest.raises(ImageError, match="are not opened"):
        load_image_any(url)


def test_urls_are_off_unless_allowed():
    with pytest.raises(ImageError, match="--allow-image-urls"):
        load_image_any("https://example.org/x.png")
    with pytest.raises(ImageError, match=r"127\.0\.0\.1, which is not public"):
        load_image_any("http://127.0.0.1/x.png", policy=MediaPolicy(allow_urls=True))


def test_a_decompression_bomb_is_refused_from_its_header(monkeypatch):
    bomb = png_bomb()
    assert len(bomb) < 11_000
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("pixels are decoded"))
    with pytest.raises(ImageError, match="9000 x 9000 pixels, over the limit of 40,000,000"):
        load_image_any(bomb)
    with pytest.raises(ImageError, match="16000 x 16000 pixels"):
        load_image_any(webp_bomb())


@pytest.mark.parametrize("kind", FORMATS)
def test_the_pixel_limit_applies_to_every_format(kind):
    content = encoded(gradient(20, 10), kind)
    assert load_image_any(content, policy=MediaPolicy(max_pixels=200)).size == (20, 10)
    with pytest.raises(ImageError, match="20 x 10 pixels"):
        load_image_any(content, policy=MediaPolicy(max_pixels=199))
    with pytest.raises(ImageError, match="20 x 10 pixels"):
        load_image_any(gradient(20, 10), policy=MediaPolicy(max_pixels=199))


@pytest.mark.parametrize("limit", [None, 10_000, 89_478_485])
def test_pillows_limit_is_neither_used_nor_changed(monkeypatch, limit):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    for bomb in (png_bomb(), webp_bomb(), gif_with_a_larger_frame(10_000)):
        with pytest.raises(ImageError):
            load_image_any(bomb)
    for kind in FORMATS:  # 14,400 pixels: Pillow would warn at 10,000, and warnings are errors here
        assert load_image_any(encoded(gradient(120, 120), kind)).size == (120, 120)
    assert limit == Image.MAX_IMAGE_PIXELS


def test_the_byte_limit(folder):
    small = MediaPolicy(max_bytes=len(PNG) - 1)
    uri = "data:;base64," + base64.b64encode(PNG).decode()
    for source in (PNG, folder / "in.png", uri, "data:," + quote_from_bytes(b"\xff" * 3 * len(PNG))):
        with pytest.raises(ImageError, match=r"larger than|more than|over the limit"):
            load_image_any(source, policy=small)
    assert load_image_any(PNG, policy=MediaPolicy(max_bytes=len(PNG))).size == (8, 6)


@settings(max_examples=150)
@given(st.sampled_from(FORMATS), st.data())
def test_damaged_images_are_either_decoded_or_refused(kind, data):
    content = bytearray(encoded(gradient(), kind))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=6)):
        content[place] = data.draw(st.integers(0, 255))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow may warn about damaged tags
        try:
            image = load_image_any(bytes(content), policy=MediaPolicy(max_pixels=100_000))
        except ImageError:
            return
    assert image.mode == "RGB"


def test_pillow_is_not_imported_before_an_image_is_opened():
    script = (
        "import sys, multimodal_eval.media.images, multimodal_eval.media.policy\n"
        "assert not {'PIL', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
