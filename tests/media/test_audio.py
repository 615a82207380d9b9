"""Audio: every kind of WAV written by hand, other formats through the optional package, and refusals."""

from __future__ import annotations

import io
import struct
import sys
import wave
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import AudioError, MediaError
from multimodal_eval.media.audio import load_audio
from multimodal_eval.media.policy import MediaPolicy, using
from tests.media.wav_files import EXTENSIBLE, FLOAT, chunk, pcm16, wav


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (wav(bytes([0, 128, 192, 255]), bits=8), [-1, 0, 0.5, 127 / 128]),
        (wav(pcm16(-32768, 0, 16384, 32767)), [-1, 0, 0.5, 32767 / 32768]),
        # 24 bits, lowest byte first: -2^23, 2^22, -1
        (wav(bytes([0, 0, 0x80, 0, 0, 0x40, 0xFF, 0xFF, 0xFF]), bits=24), [-1, 0.5, -(2**-23)]),
        (wav(struct.pack("<3i", -(2**31), 2**30, 1), bits=32), [-1, 0.5, 2**-31]),
        (wav(struct.pack("<2f", 0.25, -0.75), tag=FLOAT, bits=32), [0.25, -0.75]),
        (wav(struct.pack("<2d", 0.25, -0.75), tag=FLOAT, bits=64), [0.25, -0.75]),
        (wav(struct.pack("<3f", 1.5, -7.0, 0.5), tag=FLOAT, bits=32), [1, -1, 0.5]),  # too loud: clipped
    ],
    ids=["8", "16", "24", "32", "float", "double", "loud"],
)
def test_samples_of_every_width(content, expected):
    audio = load_audio(content)
    assert audio.rate == 16_000
    assert audio.samples.dtype == np.float32
    assert audio.samples.tolist() == pytest.approx(expected, abs=1e-12)


def test_channels_are_averaged():
    # (16384 + 0) / 2 = 8192 and (-16384 + 32766) / 2 = 8191, of 32768
    audio = load_audio(wav(pcm16(16384, 0, -16384, 32766), channels=2, rate=8000))
    assert audio.samples.tolist() == [0.25, 8191 / 32768]
    assert audio.rate == 8000


def test_other_chunks_are_skipped():
    odd = chunk(b"LIST", b"abc")  # a padding byte follows
    assert load_audio(wav(pcm16(16384), before=odd, after=odd)).samples.tolist() == [0.5]


def test_the_extensible_format_names_the_samples_in_its_guid():
    guid = struct.pack("<H", FLOAT) + bytes.fromhex("000000001000800000aa00389b71")
    extended = struct.pack("<HHI", 22, 32, 4) + guid
    content = wav(struct.pack("<f", 0.5), tag=EXTENSIBLE, bits=32, extended=extended)
    assert load_audio(content).samples.tolist() == [0.5]


def test_audio_from_a_pipe_has_an_unknown_length():
    for unknown in (0, 0xFFFFFFFF):
        assert load_audio(wav(pcm16(16384, 0), length=unknown, riff=unknown)).samples.tolist() == [0.5, 0]


@given(st.lists(st.integers(-32768, 32767), min_size=1), st.sampled_from([1, 2, 3]), st.integers(1000, 384_000))
def test_files_of_the_standard_library_are_read(values, channels, rate):
    values = values * channels
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm16(*values))
    audio = load_audio(stream.getvalue())
    expected = np.array(values).reshape(-1, channels).mean(axis=1) / 32768
    assert audio.rate == rate
    assert audio.samples == pytest.approx(expected.astype(np.float32), abs=1e-7)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty: 0 bytes"),
        (b"not audio", "none of the audio formats WAV, FLAC, Ogg, MP3"),
        (wav(b""), "no samples"),
        (wav(b"", after=chunk(b"LIST", b"abcd")), "no samples"),
        (wav(pcm16(1, 2), length=100), "cut off: only 4 bytes"),
        (wav(b"")[:36], "cut off or damaged"),
        (b"RIFF\0\0\0\0WAVE" + chunk(b"data", b"ab"), "does not state its format"),
        (wav(b"ab", tag=6, bits=8), "format 6 with 8 bits"),
        (wav(b"ab", bits=12), "format 1 with 12 bits"),
        (wav(pcm16(1), channels=0), "0 channels"),
        (wav(pcm16(*[1] * 33), channels=33), "33 channels"),
        (wav(pcm16(1), rate=999), "999 samples per second"),
        (wav(pcm16(1), rate=2_000_000_000), "2,000,000,000 samples per second"),
        (wav(struct.pack("<f", float("nan")), tag=FLOAT, bits=32), "not finite numbers"),
        (wav(struct.pack("<d", 1e300), tag=FLOAT, bits=64), "not finite numbers"),
        (wav(bytes(2 * 16_001)), "lasts 1 s, over the limit of 1 s"),
    ],
)
def test_invalid_audio_is_refused(content, message):
    with pytest.raises(AudioError, match="(?s)" + message.replace(".", r"\.")):
        load_audio(content, policy=MediaPolicy(max_audio_seconds=1))


@given(st.binary(max_size=80), st.integers(0, 60))
def test_a_damaged_file_is_either_refused_or_read(noise, cut):
    content = wav(pcm16(1, 2, 3, 4))
    with suppress(AudioError):
        assert len(load_audio(content[:cut] + noise).samples)


def test_files_must_be_inside_the_root(tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    for folder in (tmp_path, root):
        (folder / "a.wav").write_bytes(wav(pcm16(16384)))
    policy = MediaPolicy(root=root)
    assert load_audio("a.wav", policy=policy).samples.tolist() == [0.5]
    assert load_audio(Path("a.wav"), policy=policy).samples.tolist() == [0.5]
    assert load_audio((root / "a.wav").as_uri(), policy=policy).samples.tolist() == [0.5]
    (root / "link.wav").symlink_to(tmp_path / "a.wav")
    for outside in ("../a.wav", str(tmp_path / "a.wav"), "link.wav", (tmp_path / "a.wav").as_uri()):
        with pytest.raises(AudioError, match="is outside the folder"):
            load_audio(outside, policy=policy)
        assert load_audio(outside, policy=MediaPolicy(root=root, allow_outside=True)).rate == 16_000
    with using(policy), pytest.raises(AudioError, match="outside"):
        load_audio("../a.wav")
    assert load_audio(str(tmp_path / "a.wav")).rate == 16_000  # a call from Python


def test_sources_that_are_not_files_are_refused(tmp_path):
    for source, message in (
        (tmp_path / "none.wav", "there is no file"),
        (tmp_path, "not a regular file"),
        ("https://example.org/a.wav", "only be opened from a path"),
        ("data:audio/wav;base64,AAAA", "only be opened from a path"),
        ("file://elsewhere/a.wav", "another machine"),
        (7, "must be a path or bytes. Got 7"),
    ):
        with pytest.raises(AudioError, match=message):
            load_audio(source)
    (tmp_path / "a.wav").write_bytes(wav(pcm16(1)))
    for source in (tmp_path / "a.wav", wav(pcm16(1))):
        with pytest.raises(AudioError, match=r"larger than 8 bytes|over the limit of 8"):
            load_audio(source, policy=MediaPolicy(max_bytes=8))
    assert issubclass(AudioError, MediaError)


def test_other_formats_name_the_package_that_reads_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    for beginning, name in ((b"fLaC", "FLAC"), (b"OggS", "Ogg"), (b"ID3\3", "MP3"), (b"\xff\xfb\x90", "MP3")):
        with pytest.raises(AudioError, match=rf"{name} needs the package 'soundfile'.*\[audio\].* WAV"):
            load_audio(beginning + bytes(40))


@pytest.mark.parametrize("kind", ["FLAC", "OGG", "MP3"])
def test_other_formats_through_the_package(kind):
    soundfile = pytest.importorskip("soundfile")
    wave_ = 0.5 * np.sin(np.arange(16_000) * 2 * np.pi * 440 / 16_000)
    stream = io.BytesIO()
    soundfile.write(stream, np.stack([wave_, wave_ / 2], axis=1), 16_000, format=kind)
    audio = load_audio(stream.getvalue())
    assert audio.rate == 16_000
    # Lossy formats add some frames. The result is a tone of 440 Hz with the mean of both amplitudes.
    spectrum = np.abs(np.fft.rfft(audio.samples[1000:9000]))
    assert spectrum.argmax() == 220
    assert np.abs(audio.samples).max() == pytest.approx(0.375, abs=0.02)
    with pytest.raises(AudioError, match="over the limit of 0 s"):
        load_audio(stream.getvalue(), policy=MediaPolicy(max_audio_seconds=0.4))
    with pytest.raises(AudioError, match=r"cannot be decoded|no samples"):
        load_audio(stream.getvalue()[:40])
