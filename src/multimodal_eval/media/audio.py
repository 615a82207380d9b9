"""Load the audio of a dialogue: checked before decoding, as one channel of float32."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.conversation import Audio
from multimodal_eval.core.errors import AudioError, UnavailableError, shorten
from multimodal_eval.core.optional import require
from multimodal_eval.media.content import path_of_file_url, read_file
from multimodal_eval.media.policy import MediaPolicy, current_policy, fault_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

__all__ = ["load_audio"]


# Read WAV files: RIFF chunks with samples as integers of 8 to 32 bits or as floats.
#
# Reference:
#     IBM and Microsoft (1991). Multimedia Programming Interface and Data Specifications 1.0, "Waveform Audio File
#     Format"; Microsoft (1994). New Multimedia Data Types and Data Techniques, for the extensible format.

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


# First bytes of the formats that the optional package reads. No other content is opened.
_OPTIONAL_FORMATS = ((b"fLaC", "FLAC"), (b"OggS", "Ogg"), (b"ID3", "MP3"))
RATES = (1_000, 384_000)
MAX_CHANNELS = 32


def load_audio(source: Any, *, policy: MediaPolicy | None = None) -> Audio:
    """The audio as one channel (the mean of all channels), float32, clipped to [-1, 1].

    `source` is a path, a `file:` URL or bytes. WAV needs no extra package (PCM of 8, 16, 24 or 32 bits, floats).
    FLAC, Ogg and MP3 need the extra `[audio]`. Raises `AudioError` with the reason if the audio cannot be loaded.
    `policy` defaults to the policy of the context. In a call from Python, that one accepts any path.
    """
    import numpy as np

    rules = policy or current_policy()
    content = _content(source, rules)
    if not content:
        raise AudioError("the audio is empty: 0 bytes")
    if is_wav(content):
        samples, rate = read_wav(content, lambda rate, channels, frames: _refuse(rate, channels, frames, rules))
    else:
        samples, rate = _read_with_soundfile(content, rules)
    if not np.isfinite(samples).all():
        raise AudioError("the audio contains samples that are not finite numbers")
    return Audio(np.clip(samples.mean(axis=1, dtype=np.float64), -1, 1).astype(np.float32), rate)


def _content(source: Any, policy: MediaPolicy) -> bytes:
    if isinstance(source, bytes | bytearray | memoryview):
        if len(source) > policy.max_bytes:
            raise AudioError(f"the audio has {len(source):,} bytes, over the limit of {policy.max_bytes:,}")
        return bytes(source)
    if isinstance(source, PathLike):
        source = source.__fspath__()
    if not isinstance(source, str):
        raise AudioError(f"audio must be a path or bytes. Got {shorten(source)} instead")
    if source.lower().startswith("file:"):
        return read_file(path_of_file_url(source, AudioError), policy, AudioError)
    if "://" in source or source.startswith("data:"):
        raise AudioError(f"{shorten(source)} is a URL, and audio can only be opened from a path")
    return read_file(source, policy, AudioError)


def _refuse(rate: int, channels: int, frames: int, policy: MediaPolicy) -> None:
    """Check the header before anything is decoded."""
    if not RATES[0] <= rate <= RATES[1]:
        raise AudioError(f"the audio has {rate:,} samples per second. It must have {RATES[0]:,} to {RATES[1]:,}")
    if not 1 <= channels <= MAX_CHANNELS:
        raise AudioError(f"the audio has {channels} channels. It must have 1 to {MAX_CHANNELS}")
    if frames < 1:
        raise AudioError("the audio has no samples")
    if frames > policy.max_audio_seconds * rate:
        raise AudioError(f"the audio lasts {frames / rate:.0f} s, over the limit of {policy.max_audio_seconds:.0f} s")


def _read_with_soundfile(content: bytes, policy: MediaPolicy) -> tuple[Samples, int]:
    name = next((name for prefix, name in _OPTIONAL_FORMATS if content.startswith(prefix)), None)
    if name is None and content[0] == 0xFF and len(content) > 1 and content[1] >= 0xE0:  # a frame without an ID3 tag
        name = "MP3"
    if name is None:
        known = ", ".join(["WAV", *(name for _, name in _OPTIONAL_FORMATS)])
        raise AudioError(f"the content is in none of the audio formats {known}")
    try:
        package = require("soundfile", extra="audio", purpose=f"audio as {name}")
    except UnavailableError as missing:
        raise AudioError(f"{missing}, or convert the audio to WAV") from None
    try:
        with package.SoundFile(io.BytesIO(content)) as file:
            _refuse(file.samplerate, file.channels, file.frames, policy)
            max_frames = int(policy.max_audio_seconds * file.samplerate)
            samples = file.read(max_frames + 1, dtype="float32", always_2d=True)
            _refuse(file.samplerate, file.channels, len(samples), policy)  # the header may state too few frames
            return samples, int(file.samplerate)
    except AudioError:
        raise
    except Exception as fault:  # noqa: BLE001 - decoders of damaged files raise anything
        raise AudioError(f"the {name} audio cannot be decoded: {fault_text(fault)}") from None
