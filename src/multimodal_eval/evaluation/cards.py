"""The metric cards: docs/metrics/*.md, shipped with the package."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval.evaluation.metrics_registry import resolve

_PACKAGE = Path(__file__).resolve().parent.parent
# Installed with the package; an editable install reads those of the repository.
_FOLDERS = (_PACKAGE / "cards", _PACKAGE.parent.parent / "docs" / "metrics")


def options_text(name: str) -> str:
    """The options of a metric as a Markdown table, built from their declarations."""
    declared = resolve(name).declared_options
    if not declared:
        return "## Options\n\nThis metric has no options."
    rows = [
        f"| `{option}` | {_cell(_in_yaml(about.default))} | {_cell(about.allowed)} | {_cell(about.help)} |"
        for option, about in declared.items()
    ]
    return "\n".join(["## Options", "", "| option | default | allowed | what it does |", "|---|---|---|---|", *rows])


def _in_yaml(value: object) -> str:
    """A default as written in a configuration file."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def card_text(name: str) -> str:
    """The card of a metric; for a metric from a plug-in, its docstring."""
    metric = resolve(name)
    for folder in _FOLDERS:
        file = folder / f"{name}.md"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return f"# {name}\n\n{metric.__doc__ or 'This metric has no documentation.'}"
