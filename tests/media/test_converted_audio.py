"""FLAC, Ogg and M4A become WAV before they are sent, and the signature of the answers says how."""

from __future__ import annotations

import io
import json
import math
import wave

import av
import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from multimodal_eval import load_run
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import AudioError
from multimodal_eval.media.outgoing import audio_file
from multimodal_eval.media.policy import MediaPolicy

RATE = 48_000
TONE = np.array([round(20_000 * math.sin(2 * math.pi * 440 * n / RATE)) for n in range(RATE // 2)], "<i2")
KINDS = {"flac": ("flac", "flac", "s16"), "ogg": ("ogg", "libopus", "s16"), "m4a": ("ipod", "aac", "fltp")}


def encoded(kind):
    container, codec, form = KINDS[kind]
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container) as file:
        stream = file.add_stream(codec, rate=RATE, layout="mono", format=form)
        frame = av.AudioFrame.from_ndarray(TONE.reshape(1, -1), format="s16", layout="mono")
        frame.rate = RATE
        resampler = av.AudioResampler(format=form, layout="mono", rate=RATE, frame_size=stream.frame_size or 0)
        for part in [*resampler.resample(frame), *resampler.resample(None), None]:
            file.mux(stream.encode(part))
    return buffer.getvalue()


def samples_of(content):
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)


def test_samples_survive_the_conversion():
    mime, lossless = audio_file(encoded("flac"), MediaPolicy())
    assert mime == "audio/wav"
    assert samples_of(lossless).tolist() == TONE.tolist()  # FLAC loses nothing
    for kind in ("ogg", "m4a"):  # Opus and AAC shift and change samples a little
        heard = samples_of(audio_file(encoded(kind), MediaPolicy())[1])
        assert abs(len(heard) - len(TONE)) < 3_000
        spectrum = np.abs(np.fft.rfft(heard[6_000:18_000]))
        assert np.argmax(spectrum) * RATE / 12_000 == 440
        assert np.sqrt(np.mean(heard[6_000:18_000] ** 2)) == pytest.approx(20_000 / math.sqrt(2), rel=0.05)


def test_the_limit_of_the_policy_holds_for_decoded_audio():
    with pytest.raises(AudioError, match="more than the limit of 0 s"):
        audio_file(encoded("ogg"), msgspec.structs.replace(MediaPolicy(), max_audio_seconds=0.1))


def test_the_rule_is_in_the_signature_of_runs_with_such_audio(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tone.flac").write_bytes(encoded("flac"))
    (tmp_path / "tone.wav").write_bytes(audio_file(encoded("flac"), MediaPolicy())[1])
    signatures = {}
    for kind in ("flac", "wav"):
        row = {"id": "1", "audio": f"tone.{kind}", "question": "What is it?", "references": ["a tone"]}
        (tmp_path / "data.jsonl").write_text(json.dumps(row), "utf-8")
        command = ["run", "data.jsonl", "--model", "echo", "--metrics", "exact_match", "-o", kind, "--no-report"]
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, result.output
        signatures[kind] = load_run(kind).info.generation.signature
    assert f"audio:wav16/av-{av.__version__}" in signatures["flac"]
    assert "audio:" not in signatures["wav"]
