"""The four types of dialogue, by what is put into it, and what each counts for."""

from __future__ import annotations

import re

TEXT, IMAGE, AUDIO, IMAGE_AUDIO = "Text2Text", "Image2Text", "Audio2Text", "Image-Audio2Text"

# What the contest gives to each type. Weights of one's own: >= 0, and they sum to 1.
WEIGHTS: dict[str, float] = {TEXT: 0.1, IMAGE: 0.2, AUDIO: 0.3, IMAGE_AUDIO: 0.4}

_MODALITIES = {
    ("text", "text"): TEXT,
    ("image", "text"): IMAGE,
    ("audio", "text"): AUDIO,
    ("image", "audio", "text"): IMAGE_AUDIO,
    ("audio", "image", "text"): IMAGE_AUDIO,
}


def type_of(spelling: str) -> str | None:
    """The type that a spelling means: Text2Text, Text+Text, text-to-text …; None for what is none of the four."""
    words = re.split(r"[^a-z]+to[^a-z]+|[^a-z]+", spelling.strip().lower())
    return _MODALITIES.get(tuple(words))
