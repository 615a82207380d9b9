"""Several pieces of bytes in one file, of which any can be read alone."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from itertools import accumulate

_SIZE = hashlib.sha256().digest_size


def packed(pieces: Sequence[bytes]) -> bytes:
    """The content of a file: the offsets of the pieces and the end, then the pieces."""
    head = struct.pack(f"<{len(pieces) + 1}Q", *accumulate(map(len, pieces), initial=8 * (len(pieces) + 1)))
    return b"".join([head, *pieces])


def piece_of(number: int, read_range: Callable[[int, int], bytes]) -> bytes | None:
    """One piece, None if the file is too short; `read_range(start, stop)` reads from the file."""
    head = read_range(8 * number, 8 * (number + 2))
    if len(head) < 16:
        return None
    start, stop = struct.unpack("<2Q", head)
    return read_range(start, stop) if stop > start else b""


def with_checksum(piece: bytes) -> bytes:
    """A piece that a resumed run needs, with its sha256."""
    return hashlib.sha256(piece).digest() + piece


def without_checksum(piece: bytes | None) -> bytes | None:
    """The piece again; None if there is none or it is damaged: then it is computed again."""
    if piece is None or hashlib.sha256(piece[_SIZE:]).digest() != piece[:_SIZE]:
        return None
    return piece[_SIZE:]
