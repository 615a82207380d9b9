"""The metric cards: docs/metrics/*.md, shipped with the package."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval.evaluation.metrics_registry import resolve

_PACKAGE = Path(__file__).resolve().parent.parent
# Installed beside the package; an editable install reads the repository's own.
_FOLDERS = (_PACKAGE / "cards", _PACKAGE.parent.parent / "docs" / "metrics")


def card_text(name: str) -> str:
    """The card of a metric; a metric from a plug-in has its documentation as card."""
    metric = resolve(name)
    for folder in _FOLDERS:
        file = folder / f"{name}.md"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return f"# {name}\n\n{metric.__doc__ or 'This metric has no documentation.'}"
