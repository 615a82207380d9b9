"""Parts for multimodal-eval: a metric, a rule, a provider and a benchmark about colours."""

from __future__ import annotations

import re

__version__ = "1.0.0"

# Name -> red, green, blue.
COLOURS = {
    "black": (0, 0, 0),
    "blue": (0, 0, 255),
    "gray": (128, 128, 128),
    "green": (0, 160, 0),
    "red": (255, 0, 0),
    "white": (255, 255, 255),
    "yellow": (255, 255, 0),
}
_NAMES = re.compile(r"\b(?:" + "|".join([*COLOURS, "grey"]) + r")\b")


def colours_in(text: str) -> list[str]:
    """The colours that a text names, in its order. `grey` is `gray`."""
    return ["gray" if name == "grey" else name for name in _NAMES.findall(text.lower())]
