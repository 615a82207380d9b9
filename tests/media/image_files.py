"""Encoded images, valid and invalid, made with Pillow or by hand."""

from __future__ import annotations

import io
import struct
import zlib

from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")


def gradient(width=8, height=6, mode="RGB"):
    """An image whose pixels differ."""
    image = Image.new("RGB", (width, height))
    image.putdata([(x * 255 // width, y * 255 // height, (x + y) % 256) for y in range(height) for x in range(width)])
    return image.convert(mode)


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    return buffer.getvalue()


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, *, depth=8, colour=0, rows=b"", extra=b""):
    """A PNG file written by hand: colour 0 is grey, 2 is RGB."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = png_chunk(b"IHDR", header) + extra + png_chunk(b"IDAT", zlib.compress(rows, 9)) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def png_bomb(side=9000):
    """`side` x `side` pixels of one bit, all black, in a few kilobytes."""
    return png(side, side, depth=1, rows=bytes(side * (1 + (side + 7) // 8)))


def webp_bomb(side=16_000):
    """A header that states far more pixels than the file has."""
    vp8x = b"VP8X" + struct.pack("<I", 10) + bytes(4) + (side - 1).to_bytes(3, "little") * 2
    return b"RIFF" + struct.pack("<I", 4 + len(vp8x)) + b"WEBP" + vp8x


def gif_with_a_larger_frame(side):
    """A GIF with a screen of 1 x 1 and a single frame of `side` x `side`."""
    screen = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0)
    frame = b"," + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x02\x02\x4c\x01\x00"
    return screen + frame + b";"
