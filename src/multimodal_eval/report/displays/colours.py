"""Colours of displays. A notebook does not tell its theme, so each colour is readable on white and on nearly black.

Texts keep the colour of the notebook. Colours mark drawings and signs, never alone: a word says the same.
tests/report/displays/test_displays.py checks the contrasts.
"""

from __future__ import annotations

__all__ = ["BACKGROUNDS", "COLOURS", "LINE", "RAISED", "colour"]

COLOURS = {
    "good": "#12897d",
    "bad": "#d2581f",
    "warning": "#a8760f",
    "unknown": "#7b8591",
    "series-1": "#2f7fd0",
    "series-2": "#d2581f",
    "series-3": "#12897d",
    "series-4": "#b0569b",
    "series-5": "#8f7620",
    "series-6": "#7b8591",
}
LINE = "rgba(128,128,128,0.35)"
RAISED = "rgba(128,128,128,0.09)"
# JupyterLab, VS Code, GitHub and the site, light and dark.
BACKGROUNDS = ("#ffffff", "#f8f9fb", "#111111", "#1e1e1e", "#0d1117", "#131416")


def colour(tone: str) -> str:
    """The colour of a tone or of a run."""
    return COLOURS.get(tone, COLOURS["unknown"])
