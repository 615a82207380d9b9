"""A run as text: its metrics with intervals, and the notes about its input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.core.records import COMPOSITE, Entry, Figure

if TYPE_CHECKING:
    from multimodal_eval.data.runs.run import Run

_OTHER_NAMES = {"composite": COMPOSITE, "bleu_4": "bleu"}
_DASH = "–"
_HEAD = ("metric", "value", "95 % interval", "scored")


def figures_of(run: Run) -> dict[str, Figure]:
    """Every result by name. A part has its own name if that starts with the metric's, else `metric.part`."""
    figures: dict[str, Figure] = {}
    for metric, entry in run.entries.items():
        figures[metric] = entry
        figures |= {_part_name(metric, part): figure for part, figure in entry.parts.items()}
    return figures


def figure_named(run: Run, name: str) -> Figure | None:
    """A result by its name, by `metric.part`, or by the name of a part that only one metric has."""
    entry = run.entries.get(name) or run.entries.get(_OTHER_NAMES.get(name, name))
    if entry is not None:
        return entry
    matching = [
        figure
        for metric, entry in run.entries.items()
        for part, figure in entry.parts.items()
        if name in (part, f"{metric}.{part}")
    ]
    return matching[0] if len(matching) == 1 else None


def _part_name(metric: str, part: str) -> str:
    return part if part.startswith(metric) else f"{metric}.{part}"


def _rows(run: Run) -> Iterator[tuple[str, ...]]:
    for name, figure in figures_of(run).items():
        arrow = " ↓" if isinstance(figure, Entry) and figure.direction == "lower" else ""
        coverage = f"{figure.n_scored:,} / {figure.n_total:,}" if isinstance(figure, Entry) else ""
        yield name + arrow, _number(figure.value), _interval(figure), coverage
        if isinstance(figure, Entry) and (corrected := figure.calibrated) is not None:
            labels = f"{corrected.labels:,} label{'' if corrected.labels == 1 else 's'}"
            yield f"{name}, calibrated", _number(corrected.value), _interval(corrected), labels


def _number(value: float | None) -> str:
    return _DASH if value is None else f"{value:.4f}"


def _interval(figure: Figure) -> str:
    return _DASH if figure.low is None or figure.high is None else f"{figure.low:.4f} … {figure.high:.4f}"


def title_of(run: Run) -> str:
    """The number of samples, and the folder."""
    where = f"in {run.folder.label}" if run.is_kept else "in a temporary folder; save(PATH) keeps it"
    task = f", task {run.outcome.task}" if run.outcome.task else ""
    return f"Run of {len(run):,} samples{task}, {where}"


def _notes(run: Run) -> list[str]:
    return [*run.outcome.notes, *run.info.input_notes]


def as_text(run: Run) -> str:
    """The title, a line per metric, and the notes."""
    rows = [_HEAD, *_rows(run)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    sides = (str.ljust, str.rjust, str.rjust, str.rjust)
    lines = ["  ".join(map(lambda cell, width, side: side(cell, width), row, widths, sides)) for row in rows]
    return "\n".join([title_of(run), *(line.rstrip() for line in lines), *(f"! {note}" for note in _notes(run))])
