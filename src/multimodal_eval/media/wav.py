"""Read WAV files: RIFF chunks with samples as integers of 8 to 32 bits or as floats.

Reference:
    IBM and Microsoft (1991). Multimedia Programming Interface and Data Specifications 1.0, "Waveform Audio File
    Format"; Microsoft (1994). New Multimedia Data Types and Data Techniques, for the extensible format.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import AudioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

_HEADER = re.compile(rb"RIFF....WAVE", re.DOTALL)
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
_UNKNOWN_LENGTHS = (0, 0xFFFFFFFF)  # written by programs that cannot seek back to the header
_KINDS = {(PCM, 8): "u1", (PCM, 16): "<i2", (PCM, 24): "u1", (PCM, 32): "<i4", (FLOAT, 32): "<f4", (FLOAT, 64): "<f8"}


def is_wav(content: bytes) -> bool:
    """Whether the content has the header of a WAV file."""
    return _HEADER.match(content) is not None


def read_wav(content: bytes, refuse: Callable[[int, int, int], None]) -> tuple[Samples, int]:
    """Frames x channels, and the rate. `refuse(rate, channels, frames)` checks the header before anything is decoded.

    An integer of b bits is divided by 2^(b-1). Integers of 8 bits are centred on 128.
    """
    format_, data = _chunks(content)
    tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", format_)
    if tag == EXTENSIBLE and len(format_) >= 26:
        (tag,) = struct.unpack_from("<H", format_, 24)  # the first bytes of the subformat GUID
    if (tag, bits) not in _KINDS:
        raise AudioError(
            f"the WAV audio has format {tag} with {bits} bits. It must be PCM of 8, 16, 24 or 32 bits, or floats "
            "of 32 or 64. Convert it, for example to PCM of 16 bits"
        )
    width = max(1, channels) * bits // 8
    frames = len(data) // width
    refuse(rate, channels, frames)
    return _values(data[: frames * width], tag, bits).reshape(frames, channels), rate


def _chunks(content: bytes) -> tuple[memoryview, memoryview]:
    format_: memoryview | None = None
    for name, chunk, is_whole in _walk(content):
        if name == b"fmt " and len(chunk) >= 16:
            format_ = chunk
        if name == b"data":
            if format_ is None:
                raise AudioError("the WAV audio does not state its format before its samples")
            if not is_whole:
                raise AudioError(f"the WAV audio is cut off: only {len(chunk):,} bytes of its samples are present")
            return format_, chunk
    raise AudioError("the WAV audio is cut off or damaged: it has no samples")


def _walk(content: bytes) -> Iterator[tuple[bytes, memoryview, bool]]:
    """Name and content of each chunk, and whether it is complete."""
    view, place = memoryview(content), 12
    is_stream = struct.unpack_from("<I", content, 4)[0] in _UNKNOWN_LENGTHS
    while place + 8 <= len(content):
        name, length = struct.unpack_from("<4sI", content, place)
        place += 8
        rest = len(content) - place
        if is_stream and name == b"data" and length in _UNKNOWN_LENGTHS:
            length = rest
        yield name, view[place : place + length], length <= rest
        place += length + length % 2  # chunks start at even offsets


def _values(data: memoryview, tag: int, bits: int) -> Samples:
    import numpy as np

    raw = np.frombuffer(data, _KINDS[tag, bits])
    if tag == FLOAT:
        with np.errstate(over="ignore"):  # the caller refuses infinities
            return raw.astype(np.float32)
    if bits == 8:
        return ((raw.astype(np.float32) - 128) / 128).astype(np.float32)
    if bits == 24:  # use them as the upper three bytes of 32 bits
        wide = np.zeros((len(raw) // 3, 4), np.uint8)
        wide[:, 1:] = raw.reshape(-1, 3)
        raw, bits = wide.view("<i4")[:, 0], 32
    return (raw / np.float64(1 << (bits - 1))).astype(np.float32)
