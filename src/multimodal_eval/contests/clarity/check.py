"""Check a submission before its upload: report everything that would be refused, and what is merely unusual."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from multimodal_eval.contests.clarity.columns import ClarityColumns
from multimodal_eval.contests.clarity.dataset import paired, read_dataset
from multimodal_eval.contests.clarity.predictions import Predictions, read_predictions
from multimodal_eval.contests.clarity.tasks import TASKS, TaskName
from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers.problems import Problems

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Checked:
    """A submission without problems: how often each label is predicted, and notes on anything unusual."""

    file: str
    form: str
    rows: int
    labels: dict[str, dict[str, int]]
    compared_with: str | None
    notes: list[str] = field(default_factory=list)


def check(
    path: Path, data: Path | None = None, task: TaskName | None = None, columns: ClarityColumns | None = None
) -> Checked:
    """Summarize a submission, or refuse it with all of its problems. `data` is the file whose rows it must predict."""
    problems = Problems()
    predictions = read_predictions(path, problems, only=task, derive=False, columns=columns)
    if task is not None and predictions.rows and task not in predictions.tasks:
        hint = f"It has {' and '.join(predictions.tasks)} labels." if predictions.tasks else None
        problems.add("NO_PREDICTION", f"no label of the task {task} is predicted.", file=str(path), hint=hint)
    if data is not None:
        paired(read_dataset(data, problems, columns=columns), predictions, problems)
    problems.raise_if_any()
    counts = {name: Counter(row.labels[name] for row in predictions.rows) for name in predictions.tasks}
    return Checked(
        str(path),
        "zip" if predictions.is_zip else "table",
        len(predictions.rows),
        {name: {label: counts[name][label] for label in TASKS[name].labels} for name in predictions.tasks},
        None if data is None else str(data),
        [*_spelling_notes(predictions), *_label_notes(predictions, counts)],
    )


def _spelling_notes(predictions: Predictions) -> list[str]:
    """A note on labels in other spellings: the contest's own program may not accept aliases."""
    respelled = predictions.respelled
    if not respelled:
        return []
    examples = ", ".join(
        f"{shorten(original)} for {label!r} ({count:,})" for (original, label), count in respelled.most_common(SHOWN)
    )
    more = ", …" if len(respelled) > SHOWN else ""
    note = f"labels that are not spelled as in the taxonomy: {respelled.total():,}, {examples}{more}"
    return [f"{note}. They are accepted here; another program may not accept them."]


def _label_notes(predictions: Predictions, counts: dict[TaskName, Counter[str | None]]) -> list[str]:
    notes = []
    for name, label_counts in counts.items():
        never = [label for label in TASKS[name].labels if not label_counts[label]]
        if len(label_counts) == 1:
            notes.append(f"every row has the same {name} label, {next(iter(label_counts))!r}")
        elif never:
            notes.append(f"labels that are never predicted in the task {name}, with an F1 of 0: {', '.join(never)}")
    if contradicting := predictions.contradictions():
        notes.append(f"rows whose predicted clarity label contradicts their evasion label: {contradicting:,}")
    return notes
