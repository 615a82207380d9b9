"""docs/publishing.md names every option."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval.interop.export.registry import FORMATS, format_options

PAGE = Path(__file__).parents[2] / "docs" / "publishing.md"


def test_every_option_is_named():
    text = PAGE.read_text(encoding="utf-8")
    for name in ("eee", "hf-eval-results", "csv"):
        assert name in FORMATS
        missing = [option for option in format_options(name) if f"`{option}" not in text and f"{option}=" not in text]
        assert missing == []
