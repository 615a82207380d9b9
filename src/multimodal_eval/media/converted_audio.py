"""Audio in formats that endpoints do not take, as WAV: decoded by PyAV (extra `[video]`)."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from multimodal_eval.core.errors import AudioError, UnavailableError
from multimodal_eval.core.machine import package_version
from multimodal_eval.core.optional import require
from multimodal_eval.media.policy import MediaPolicy, fault_text

__all__ = ["as_wav", "audio_rules", "is_converted"]

SUFFIXES = (".flac", ".ogg", ".oga", ".opus", ".m4a", ".m4b")
_STARTS = (b"fLaC", b"OggS")
_TYPES = ("data:audio/flac", "data:audio/x-flac", "data:audio/ogg", "data:audio/mp4", "data:audio/x-m4a")


def audio_rules() -> str:
    """The rules in a few characters, for a signature, with the version of the decoder."""
    return f"wav16/av-{package_version('av')}"


def is_converted(source: object) -> bool:
    """Whether audio is converted before it is sent, by its name, its media type, or the start of its content."""
    if isinstance(source, bytes):
        return source.startswith(_STARTS) or source[4:8] == b"ftyp"
    text = str(source)
    if text[:5].lower() == "data:":
        return text.lower().startswith(_TYPES)
    return PurePath(urlsplit(text).path).suffix.lower() in SUFFIXES


def as_wav(content: bytes, name: str, policy: MediaPolicy) -> bytes:
    """The audio as WAV with PCM of 16 bits. Raises `AudioError` with the reason if it cannot be decoded."""
    try:
        av = require("av", extra="video", purpose=f"audio as {name}")
    except UnavailableError as missing:
        raise AudioError(f"{missing}, or convert the audio to WAV") from None
    try:
        return _decoded(av, content, policy)
    except AudioError:
        raise
    except Exception as fault:  # noqa: BLE001 - decoders of damaged files raise anything
        raise AudioError(f"the {name} audio cannot be decoded: {fault_text(fault)}") from None


def _decoded(av: Any, content: bytes, policy: MediaPolicy) -> bytes:
    buffer = io.BytesIO()
    with av.open(io.BytesIO(content)) as container, wave.open(buffer, "wb") as file:
        if not container.streams.audio:
            raise AudioError("the file has no audio")
        stream = container.streams.audio[0]
        file.setnchannels(stream.codec_context.channels)
        file.setsampwidth(2)
        file.setframerate(stream.rate)
        most, total = int(policy.max_audio_seconds * stream.rate), 0
        for samples in _samples(av, container, stream):
            total += samples.shape[-1] // stream.codec_context.channels
            if total > most:
                limit = f"{policy.max_audio_seconds:.0f} s"
                raise AudioError(f"the audio lasts more than the limit of {limit}")
            file.writeframes(samples.astype("<i2").tobytes())
        if not total:
            raise AudioError("the audio has no samples")
    return buffer.getvalue()


def _samples(av: Any, container: Any, stream: Any) -> Iterator[Any]:
    """The samples of all channels in turn, as integers of 16 bits."""
    resampler = av.AudioResampler(format="s16", layout=stream.layout, rate=stream.rate)
    for frame in container.decode(stream):
        for resampled in resampler.resample(frame):
            yield resampled.to_ndarray()
    for resampled in resampler.resample(None):
        yield resampled.to_ndarray()
