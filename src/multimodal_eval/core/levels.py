"""Levels of measurement of labels."""

from __future__ import annotations

from typing import Literal, get_args

Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = get_args(Level)
