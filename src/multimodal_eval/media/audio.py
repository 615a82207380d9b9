"""Sounds from wherever a dialogue names them, checked before they are decoded, as one channel of float32."""

from __future__ import annotations

import io
from os import PathLike
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.conversation import Audio
from multimodal_eval.core.errors import AudioError, UnavailableError, shorten
from multimodal_eval.core.optional import require
from multimodal_eval.media.files import path_of_file_url, read_file
from multimodal_eval.media.policy import MediaPolicy, current_policy
from multimodal_eval.media.wav import is_wav, read_wav

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]  # frames x channels

# How files begin that the optional package reads. Anything else is not opened at all.
_OTHERS = ((b"fLaC", "FLAC"), (b"OggS", "Ogg"), (b"ID3", "MP3"))
RATES = (1_000, 384_000)
MOST_CHANNELS = 32


def load_audio(source: Any, *, policy: MediaPolicy | None = None) -> Audio:
    """The sound as one channel (the mean of all), float32 from -1 to 1; what is louder is cut off there.

    `source` is a path, a `file:` URL or bytes. WAV is read as it is (PCM of 8, 16, 24 or 32 bits, floats); FLAC, Ogg
    and MP3 through the extra `[audio]`. Raises `AudioError` with the reason where there is no such sound.
    `policy` defaults to the context's, which in a call from Python takes any path.
    """
    import numpy as np

    rules = policy or current_policy()
    content = _content(source, rules)
    if not content:
        raise AudioError("the sound is empty: 0 bytes")
    if is_wav(content):
        samples, rate = read_wav(content, lambda rate, channels, frames: _refuse(rate, channels, frames, rules))
    else:
        samples, rate = _others(content, rules)
    if not np.isfinite(samples).all():
        raise AudioError("the sound holds samples that are no finite numbers")
    return Audio(np.clip(samples.mean(axis=1, dtype=np.float64), -1, 1).astype(np.float32), rate)


def _content(source: Any, policy: MediaPolicy) -> bytes:
    if isinstance(source, bytes | bytearray | memoryview):
        if len(source) > policy.max_bytes:
            raise AudioError(f"a sound of {len(source):,} bytes, over the limit of {policy.max_bytes:,}")
        return bytes(source)
    if isinstance(source, PathLike):
        source = source.__fspath__()
    if not isinstance(source, str):
        raise AudioError(f"a sound must be a path or bytes. Got {shorten(source)} instead")
    if source.lower().startswith("file:"):
        return read_file(path_of_file_url(source, AudioError), policy, AudioError)
    if "://" in source or source.startswith("data:"):
        raise AudioError(f"{shorten(source)} is an address, and sounds are opened by their paths only")
    return read_file(source, policy, AudioError)


def _refuse(rate: int, channels: int, frames: int, policy: MediaPolicy) -> None:
    """What a header says, before anything is decoded."""
    if not RATES[0] <= rate <= RATES[1]:
        raise AudioError(f"the sound has {rate:,} samples a second; between {RATES[0]:,} and {RATES[1]:,} are taken")
    if not 1 <= channels <= MOST_CHANNELS:
        raise AudioError(f"the sound has {channels} channels; 1 to {MOST_CHANNELS} are taken")
    if frames < 1:
        raise AudioError("the sound has no samples")
    if frames > policy.max_audio_seconds * rate:
        raise AudioError(f"the sound lasts {frames / rate:.0f} s, over the limit of {policy.max_audio_seconds:.0f} s")


def _others(content: bytes, policy: MediaPolicy) -> tuple[Samples, int]:
    name = next((name for beginning, name in _OTHERS if content.startswith(beginning)), None)
    if name is None and content[0] == 0xFF and len(content) > 1 and content[1] >= 0xE0:  # a frame without a title
        name = "MP3"
    if name is None:
        known = ", ".join(["WAV", *(name for _, name in _OTHERS)])
        raise AudioError(f"the content is no {known} sound. It begins with {shorten(content[:16])}")
    try:
        package = require("soundfile", extra="audio", purpose=f"a sound as {name}")
    except UnavailableError as missing:
        raise AudioError(f"{missing}, or convert the sound to WAV") from None
    try:
        with package.SoundFile(io.BytesIO(content)) as file:
            _refuse(file.samplerate, file.channels, file.frames, policy)
            most = int(policy.max_audio_seconds * file.samplerate)
            samples = file.read(most + 1, dtype="float32", always_2d=True)
            _refuse(file.samplerate, file.channels, len(samples), policy)  # a header may say too little
            return samples, int(file.samplerate)
    except AudioError:
        raise
    except Exception as fault:  # noqa: BLE001 - decoders of damaged files raise anything
        raise AudioError(f"the {name} sound cannot be decoded: {type(fault).__name__}: {fault}") from None
