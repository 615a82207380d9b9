"""The size of a WebP picture, from its header.

Reference:
    Google. WebP Container Specification (RFC 9649), sections 2.5 to 2.7.
"""

from __future__ import annotations

from multimodal_eval.core.errors import ImageError


def webp_size(content: bytes) -> tuple[int, int]:
    """Width and height as the first chunk says: VP8X (extended), VP8L (lossless) or VP8 (lossy)."""
    kind, payload = content[12:16], content[20:30]
    if kind == b"VP8X" and len(payload) == 10:
        return _number(payload[4:7]) + 1, _number(payload[7:10]) + 1
    if kind == b"VP8L" and len(payload) >= 5 and payload[0] == 0x2F:
        bits = _number(payload[1:5])  # 14 bits each, less 1
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(payload) == 10 and payload[3:6] == b"\x9d\x01\x2a":
        return _number(payload[6:8]) & 0x3FFF, _number(payload[8:10]) & 0x3FFF
    raise ImageError("the WebP picture has no readable header")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")
