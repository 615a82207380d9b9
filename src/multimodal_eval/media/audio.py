"""Load the audio of a dialogue: checked before decoding, as one channel of float32."""

from __future__ import annotations

import io
from os import PathLike
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.conversation import Audio
from multimodal_eval.core.errors import AudioError, UnavailableError, shorten
from multimodal_eval.core.optional import require
from multimodal_eval.media.faults import fault_text
from multimodal_eval.media.files import path_of_file_url, read_file
from multimodal_eval.media.policy import MediaPolicy, current_policy
from multimodal_eval.media.wav import is_wav, read_wav

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]  # frames x channels

__all__ = ["load_audio"]

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
