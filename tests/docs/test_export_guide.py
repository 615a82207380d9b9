"""The tables of options in docs/export.md."""

from __future__ import annotations

import re
from pathlib import Path

from multimodal_eval.interop.export.registry import format_options

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")


def test_every_option_is_explained():
    for name in ("latex", "markdown", "mlflow", "wandb", "trackio"):
        assert [
            option for option in format_options(name) if f"`{option}" not in PAGE and f"{option}=" not in PAGE
        ] == []


def test_the_documented_defaults():
    options = format_options("latex")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rows == {
        name: str(options[name].default).lower()
        for name in ("columns", "uncertainty", "percent", "marks", "allow_partial")
    }
    assert (options["alpha"].default, options["rounds"].default, options["seed"].default) == (0.05, 10_000, 0)
