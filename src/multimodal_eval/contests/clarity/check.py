"""A submission before its upload: everything that would be refused, and what is merely odd."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from multimodal_eval.contests.clarity.dataset import paired, read_dataset
from multimodal_eval.contests.clarity.predictions import Predictions, read_predictions
from multimodal_eval.contests.clarity.tasks import TASKS, TaskName
from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers.problems import Problems

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Checked:
    """A submission without a problem: how often each label is predicted, and what is odd about it."""

    file: str
    form: str
    rows: int
    labels: dict[str, dict[str, int]]
    compared_with: str | None
    notes: list[str] = field(default_factory=list)


def check(path: Path, data: Path | None = None, task: TaskName | None = None) -> Checked:
    """Refuse a submission with all of its problems, or tell what is in it. `data` are the rows that it must answer."""
    problems = Problems()
    found = read_predictions(path, problems, only=task, derive=False)
    if task is not None and found.rows and task not in found.tasks:
        hint = f"It holds {' and '.join(found.tasks)} labels." if found.tasks else None
        problems.add("NO_PREDICTION", f"no label of the task {task} is predicted.", file=str(path), hint=hint)
    if data is not None:
        paired(read_dataset(data, problems), found, problems)
    problems.raise_if_any()
    counts = {name: Counter(row.labels[name] for row in found.rows) for name in found.tasks}
    return Checked(
        str(path),
        "zip" if found.is_zip else "table",
        len(found.rows),
        {name: {label: counts[name][label] for label in TASKS[name].labels} for name in found.tasks},
        None if data is None else str(data),
        [*_spelling(found), *_oddities(found, counts)],
    )


def _spelling(found: Predictions) -> list[str]:
    """The contest's program may know no aliases."""
    if not found.respelled:
        return []
    shown = ", ".join(
        f"{shorten(given)} for {label!r} ({count:,})" for (given, label), count in found.respelled.most_common(SHOWN)
    )
    more = ", …" if len(found.respelled) > SHOWN else ""
    told = f"labels that are not spelled as in the taxonomy: {found.respelled.total():,}, {shown}{more}"
    return [f"{told}. They are understood here; another program may not understand them."]


def _oddities(found: Predictions, counts: dict[TaskName, Counter[str | None]]) -> list[str]:
    notes = []
    for name, own in counts.items():
        never = [label for label in TASKS[name].labels if not own[label]]
        if len(own) == 1:
            notes.append(f"every row has the same {name} label, {next(iter(own))!r}")
        elif never:
            notes.append(f"never predicted in the task {name}, so that its F1 is 0: {', '.join(never)}")
    if contradicting := found.contradictions():
        notes.append(f"rows whose predicted clarity label is not that of their evasion label: {contradicting:,}")
    return notes
