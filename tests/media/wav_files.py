"""WAV files written byte by byte from the format's specification."""

from __future__ import annotations

import struct

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE


def chunk(name: bytes, content: bytes, length: int | None = None) -> bytes:
    stated = len(content) if length is None else length
    return name + struct.pack("<I", stated) + content + b"\0" * (len(content) % 2)


def wav(
    data: bytes,
    *,
    tag: int = PCM,
    bits: int = 16,
    channels: int = 1,
    rate: int = 16_000,
    before: bytes = b"",
    after: bytes = b"",
    length: int | None = None,
    riff: int | None = None,
    extended: bytes = b"",
) -> bytes:
    width = channels * bits // 8
    format_ = struct.pack("<HHIIHH", tag, channels, rate, rate * width, width, bits) + extended
    body = b"WAVE" + before + chunk(b"fmt ", format_) + chunk(b"data", data, length) + after
    return b"RIFF" + struct.pack("<I", len(body) if riff is None else riff) + body


def pcm16(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}h", *values)
