"""Write small GGUF files (version 3) for tests."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

F32, Q4_1, Q8_0 = 0, 3, 8


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def setting(value: Any) -> bytes:
    """A value, preceded by its type."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    inner = [setting(element) for element in value]
    return struct.pack("<I", 9) + (inner[0][:4] if inner else struct.pack("<I", 4)) + struct.pack(
        "<Q", len(inner)
    ) + b"".join(element[4:] for element in inner)  # fmt: skip


def content(settings: dict[str, Any], tensors: dict[str, tuple[tuple[int, ...], int, bytes]]) -> bytes:
    """The content of a file. `tensors` maps names to (shape with rows before columns, type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings))
    head += b"".join(text(key) + setting(value) for key, value in settings.items())
    body = b""
    for name, (shape, kind, data) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", kind, len(body))
        body += data + b"\0" * (-len(data) % 32)
    return head + b"\0" * (-len(head) % 32) + body


def write(path: Path, settings: dict[str, Any], tensors: dict[str, tuple[tuple[int, ...], int, bytes]]) -> Path:
    path.write_bytes(content(settings, tensors))
    return path
