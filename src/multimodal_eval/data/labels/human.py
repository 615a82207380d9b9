"""Human labels of answers: their values on the scale of a metric, and the file that collects them.

A file of labels has one record per label: `id` of the sample, `label`, and optionally `metric`, `annotator`,
`human_weight` (the probability with which the sample was chosen for labelling), `run` (whose answer is labelled) and
`baseline` (the run that it is compared with; the label is then win, tie or loss of `run`). New labels are appended; of
several labels of an annotator for a sample, the last one counts. Without a `label`, the sample is not labelled yet, or
its label was withdrawn if the record has an `action`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.errors import InputError, MissingFileError, Problem, RunFolderError, shorten
from multimodal_eval.core.metric import Bounds, is_number
from multimodal_eval.data.readers.inputs import read_records
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = [
    "MIRRORED",
    "STORED",
    "WEIGHT",
    "WITHDRAWN",
    "WORDS",
    "HumanLabel",
    "LabelError",
    "label_value",
    "last_labels",
    "probability_of",
    "read_labels",
    "store_labels",
    "stored_labels",
]

STORED = "human.json"  # in a run folder
WEIGHT = "human_weight"  # the column with the probability of being labelled
# Words for labels from 0 to 1.
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0, "win": 1.0, "tie": 0.5, "loss": 0.0}
MIRRORED = {"win": "loss", "tie": "tie", "loss": "win"}  # the same comparison, seen from the other side
WITHDRAWN = ("skip", "undo")  # actions without a label, after which an earlier label no longer counts
_SHARE = (0.0, 1.0)
_SHOWN = 20  # columns in a message


class HumanLabel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One label of one annotator."""

    id: str
    label: str | float | bool
    metric: str | None = None  # None: of every metric that has human labels
    annotator: str | None = None
    human_weight: float | None = None
    run: str | None = None
    baseline: str | None = None  # the run that `run` is compared with
    line: int | None = None  # of the file that it was read from

    @property
    def unit(self) -> tuple[str | None, str | None, str | None, str]:
        """What is labelled: of several labels of an annotator for it, the last one counts."""
        return self.run, self.baseline, self.metric, self.id


class LabelError(Exception):
    """A value that is not a label; the message says why."""


def label_value(value: object, bounds: Bounds) -> float | None:
    """A label as a number on the scale of its metric; None if it is null or blank. Raises LabelError.

    On a scale from 0 to 1, labels may be yes and no, true and false, or win, tie and loss.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number: Any = value
    is_share = bounds == _SHARE
    if isinstance(value, bool):
        number = float(value) if is_share else value
    elif isinstance(value, str):
        word = value.strip().lower()
        if is_share and word in WORDS:
            return WORDS[word]
        with suppress(ValueError):
            number = float(word)
    if not is_number(number) or not isfinite(number):
        allowed = "a number, yes, no, win, tie or loss" if is_share else "a number"
        raise LabelError(f"a human label must be {allowed}. Got {shorten(value)} instead")
    low, high = bounds
    if (low is not None and number < low) or (high is not None and number > high):
        scale = f"from {'-∞' if low is None else f'{low:g}'} to {'∞' if high is None else f'{high:g}'}"
        raise LabelError(f"the human label {shorten(value)} is not on the scale of the metric, {scale}")
    return float(number)


def probability_of(value: object) -> float | None:
    """The probability of being labelled, above 0 and at most 1; None if it is null or blank. Raises LabelError."""
    if value is None or value == "":
        return None
    number: Any = value
    if isinstance(value, str):
        with suppress(ValueError):
            number = float(value)
    if not is_number(number) or not 0 < number <= 1:
        raise LabelError(f"`{WEIGHT}` must be a probability above 0 and at most 1. Got {shorten(value)} instead")
    return float(number)


def read_labels(path: Path) -> list[HumanLabel]:
    """The labels in a file (JSONL, CSV, …). Records without a label are left out, and so are labels that a later record
    withdraws; unknown columns are ignored."""
    problems = Problems()
    columns: dict[str, None] = {}
    labels = _standing(_labels(path, problems, columns))
    problems.raise_if_any()
    if not labels:
        message = f"the file has no record with a `label`. {_columns(columns)}"
        raise InputError([Problem(code="EMPTY", message=message, file=str(path), field="label")])
    return labels


def last_labels(labels: Iterable[HumanLabel]) -> list[HumanLabel]:
    """The last label of every annotator for every unit, in the order of the file."""
    last: dict[object, HumanLabel] = {}
    for label in labels:
        last.pop((label.annotator, label.unit), None)
        last[label.annotator, label.unit] = label
    return list(last.values())


class _Withdrawal(msgspec.Struct, frozen=True):
    """A record that takes the earlier labels of an annotator for a unit back."""

    label: HumanLabel


def _standing(records: Iterable[HumanLabel | _Withdrawal]) -> list[HumanLabel]:
    """The labels, without those that a later record of the same annotator withdraws."""
    labels: dict[object, list[HumanLabel]] = {}
    for record in records:
        label = record.label if isinstance(record, _Withdrawal) else record
        same = labels.setdefault((label.annotator, label.unit), [])
        if record is label:
            same.append(label)
        else:
            same.clear()
    return sorted((label for same in labels.values() for label in same), key=lambda label: label.line or 0)


def _columns(columns: Iterable[str]) -> str:
    """The columns of a file without labels, in words."""
    names = [*columns]
    if not names:
        return "It has no records."
    empty = "The values of `label` are blank. " if "label" in names else ""
    shown = ", ".join(map(shorten, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
    return f"{empty}Its columns: {shown}."


def _labels(path: Path, problems: Problems, columns: dict[str, None]) -> Iterator[HumanLabel | _Withdrawal]:
    """The labels in a file; `columns` collects the names of its columns."""
    for line, record in read_records(path, problems):
        columns |= dict.fromkeys(record)
        try:
            label = _label(line, record)
        except LabelError as fault:
            problems.add("LABEL", f"{fault}.", file=str(path), line=line)
        else:
            if label is not None:
                yield label


def _label(line: int, record: Columns) -> HumanLabel | _Withdrawal | None:
    value = record.get("label")
    is_blank = value is None or (isinstance(value, str) and not value.strip())
    if is_blank and record.get("action") not in WITHDRAWN:
        return None
    sample = record.get("id")
    if isinstance(sample, bool) or not isinstance(sample, str | int) or sample == "":
        raise LabelError(f"`id` must be the id of a sample. Got {shorten(sample)} instead")
    texts = {key: _text(key, record.get(key)) for key in ("metric", "annotator", "run", "baseline")}
    if is_blank:
        return _Withdrawal(HumanLabel(id=str(sample), label="", human_weight=None, line=line, **texts))
    if not isinstance(value, str | bool | int | float):
        raise LabelError(f"`label` must be a number or a word. Got {shorten(value)} instead")
    weight = probability_of(record.get(WEIGHT))
    return HumanLabel(id=str(sample), label=value, human_weight=weight, line=line, **texts)


def _text(key: str, value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise LabelError(f"`{key}` must be a name. Got {shorten(value)} instead")
    return str(value)


# in a run folder


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """The content of human.json."""

    format: int = 1
    labels: list[HumanLabel]


def store_labels(folder: RunFolder, labels: list[HumanLabel]) -> None:
    """Write the labels into a run folder: their content, not the path of their file."""
    folder.checksums.write_json(STORED, _Content(labels=labels))


def stored_labels(folder: RunFolder) -> list[HumanLabel]:
    """The labels in a run folder."""
    try:
        content = folder.checksums.read_json(STORED)
        return msgspec.json.decode(content, type=_Content).labels
    except MissingFileError:
        raise RunFolderError(f"{folder.label} has no {STORED}, the human labels that it was scored with") from None
    except (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError) as error:
        raise RunFolderError(f"{folder.label}/{STORED} cannot be read: {error}") from None
