"""What a reader of a run's numbers should know besides them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multimodal_eval.core.records import Entry
    from multimodal_eval.data.runs.run import Run


def warnings(run: Run) -> list[str]:
    """Everything that a reader of the table should know."""
    lines = [*run.outcome.notes, *run.info.input_notes]
    without = 0 if run.info.counts is None else run.info.counts.unmatched_data
    if without and any(signature.counts_the_corpus for signature in run.info.signatures.values()):
        lines.append(f"the document frequencies count {without:,} images too that have references and no answer")
    said: dict[str, list[str]] = {}  # metrics of which the same can be said share a line
    for name, entry in run.entries.items():
        for line in _remarks(entry):
            said.setdefault(line, []).append(name)
    return lines + [f"{', '.join(names)}: {line}" for line, names in said.items()]


def _remarks(entry: Entry) -> Iterator[str]:
    """What the table does not show of one metric."""
    unscored = entry.n_total - entry.n_scored
    if unscored:
        kinds = ", ".join(f"{count:,} {status}" for status, count in entry.unscored.items())
        most = entry.reasons[0] if entry.reasons else None
        example = f"; most often: {most.reason}" if most else ""
        yield f"{unscored:,} of {entry.n_total:,} samples unscored ({kinds}){example}"
    for warning, count in entry.warnings.items():
        yield f"{count:,} × {warning.replace('_', ' ')}"
    if entry.value is not None and entry.stderr is None:
        yield entry.method
