"""Build the example of the dialogue contest: python -m tools.build_demo_dialogues

The texts are in tools/demo_dialogues.yaml, the images are drawn by tools/demo_scenes.py, and the spoken questions are
synthesised by espeak-ng, which must be installed (Debian package espeak-ng).
"""

from __future__ import annotations

import io
import json
import subprocess
import wave
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.signal import resample_poly

from tools.demo_scenes import SCENES

TEXTS = Path(__file__).with_name("demo_dialogues.yaml")
FOLDER = Path(__file__).parents[1] / "src" / "multimodal_eval" / "data" / "demo" / "dialogue"
SYSTEMS = ("alba", "boreas")
TYPES = {"t2t": "Text2Text", "i2t": "Image2Text", "a2t": "Audio2Text", "ia2t": "Image-Audio2Text"}
VOICES = {"en": ("en-us", "en-us+f3"), "ru": ("ru", "ru+f3")}  # a male and a female voice, alternating
WORDS_PER_MINUTE = "155"
RATE = 8_000  # as of a telephone, for a small wheel
PEAK = 0.7  # of the 16-bit range
SILENT = 0.01  # of the peak; quieter ends are cut off
MARGIN = RATE // 20  # silence that remains at each end

Turn = dict[str, Any]
Waveform = NDArray[np.float64]


def main() -> None:
    dialogues: dict[str, list[Turn]] = yaml.safe_load(TEXTS.read_text(encoding="utf-8"))
    rmtree(FOLDER / "media", ignore_errors=True)
    (FOLDER / "media").mkdir(parents=True)
    for name, scene in SCENES.items():
        scene().save(FOLDER / _image(name), optimize=True)
    for dialogue, turns in dialogues.items():
        _, language, number = dialogue.split("-")
        voice = VOICES[language][int(number) % 2]
        for recording, words in (item for turn in turns for item in turn.get("hear", {}).items()):
            _save(spoken(words, voice), FOLDER / _recording(recording))
    _write("questions", {dialogue: [_parts(turn) for turn in turns] for dialogue, turns in dialogues.items()})
    _write("gold", {dialogue: _gold(dialogue, turns) for dialogue, turns in dialogues.items()})
    for system in SYSTEMS:
        answers = {dialogue: [turn[system] for turn in turns] for dialogue, turns in dialogues.items()}
        _write(f"submissions/{system}/output", answers)


def _image(name: str) -> str:
    return f"media/{name}.png"


def _recording(name: str) -> str:
    return f"media/ask-{name}.wav"


def _parts(turn: Turn) -> list[dict[str, str]]:
    """The parts that the user shows, says and writes, in the order of the keys of the turn."""
    parts = []
    for kind, value in turn.items():
        if kind == "see":
            parts.append({"type": "image", "content": _image(value)})
        elif kind == "hear":
            parts += [{"type": "audio", "content": _recording(name)} for name in value]
        elif kind == "ask":
            parts.append({"type": "text", "content": value})
    return parts


def _gold(dialogue: str, turns: list[Turn]) -> dict[str, Any]:
    return {"type": TYPES[dialogue.split("-")[0]], "replies": [turn["right"] for turn in turns]}


def _write(name: str, content: dict[str, Any]) -> None:
    path = FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def spoken(words: str, voice: str) -> Waveform:
    """The words as 16 kHz audio in [-1, 1], without silence at the ends."""
    command = ["espeak-ng", "-v", voice, "-s", WORDS_PER_MINUTE, "--stdout", "--stdin"]
    output = subprocess.run(command, input=words.encode(), capture_output=True, check=True).stdout
    with wave.open(io.BytesIO(output)) as file:
        rate = file.getframerate()
        # The header of a stream does not have the length, and states more frames than there are.
        samples = np.frombuffer(file.readframes(len(output)), dtype="<i2").astype(np.float64)
    waveform = resample_poly(samples, RATE, rate)
    waveform *= PEAK / np.abs(waveform).max()
    audible = np.flatnonzero(np.abs(waveform) > SILENT * PEAK)
    trimmed: Waveform = waveform[max(audible[0] - MARGIN, 0) : audible[-1] + MARGIN]
    return trimmed


def _save(waveform: Waveform, path: Path) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.round(waveform * 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    main()
