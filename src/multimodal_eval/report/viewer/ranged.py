"""Audio in the byte ranges that players request."""

from __future__ import annotations

from starlette.responses import Response

__all__ = ["ranged"]


def ranged(content: bytes, media_type: str, requested: str | None) -> Response:
    """The audio, or the byte range that a player requests."""
    headers = {"accept-ranges": "bytes", "content-disposition": "inline"}
    unit, _, span = (requested or "").partition("=")
    start, dash, end = span.partition("-")
    if unit != "bytes" or not dash or not start.isdecimal() or not (end == "" or end.isdecimal()):
        return Response(content, media_type=media_type, headers=headers)
    first, last = int(start), min(int(end or len(content)), len(content) - 1)
    if first > last:
        return Response(status_code=416, headers={"content-range": f"bytes */{len(content)}"})
    headers["content-range"] = f"bytes {first}-{last}/{len(content)}"
    return Response(content[first : last + 1], 206, media_type=media_type, headers=headers)
