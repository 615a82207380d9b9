"""Moonshine as a model, with its weights in the package moonshine-voice. It writes down the speech in a WAV file.

mmeval run speech.jsonl --model python:examples/models/speech.py --metrics wer
"""

import io
import wave
from threading import Lock

import numpy as np
from moonshine_voice import ModelArch, get_model_path
from moonshine_voice.transcriber import Transcriber

from multimodal_eval import Request

TRANSCRIBER = Transcriber(str(get_model_path("tiny-en")), ModelArch.TINY)
LOCK = Lock()


def model(request: Request) -> str:
    """The transcript of the audio, which has one channel of 16 bits."""
    content = next(media.content for media in request.media if media.kind == "audio")
    with wave.open(io.BytesIO(content or b"")) as file:
        samples, rate = np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()
    with LOCK:
        transcript = TRANSCRIBER.transcribe_without_streaming((samples / 32768).tolist(), rate)
    return " ".join(line.text for line in transcript.lines)
