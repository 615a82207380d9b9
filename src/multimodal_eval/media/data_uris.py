"""`data:` URIs: the content stands in the address itself.

Reference:
    Masinter (1998). The "data" URL scheme. RFC 2397.
"""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

from multimodal_eval.core.errors import ImageError, shorten


def decode_data_uri(uri: str, max_bytes: int) -> bytes:
    """The content of a data URI, base64 or percent-encoded; its media type is not believed and not read."""
    head, comma, payload = uri.partition(",")
    if not comma:
        raise ImageError(f"{shorten(uri)} is no data URI: it has no comma")
    if len(payload) > 3 * max_bytes:  # a percent-encoded byte takes three characters
        raise ImageError(f"a data URI of more than {max_bytes:,} bytes")
    content = unquote_to_bytes(payload)
    if head.rstrip().lower().endswith(";base64"):
        try:
            content = base64.b64decode(_padded(b"".join(content.split())), validate=True)
        except binascii.Error as error:
            raise ImageError(f"a data URI whose base64 cannot be decoded: {error}") from None
    if len(content) > max_bytes:
        raise ImageError(f"a data URI of more than {max_bytes:,} bytes")
    return content


def _padded(text: bytes) -> bytes:
    """Many programs leave the `=` at the end out."""
    return text + b"=" * (-len(text) % 4)
