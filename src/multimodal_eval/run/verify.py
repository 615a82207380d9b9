"""Verify run folders: all checksums, and the results against the stored scores. Nothing named in a run is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any, TypeVar

import msgspec
import numpy as np

from multimodal_eval.analysis.pairing import metric_of
from multimodal_eval.core.arrow import integer_values
from multimodal_eval.core.errors import MultimodalEvalError, UnavailableError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import Bounds, Metric, part_bounds
from multimodal_eval.core.records import CHECKED_FORMAT, RunInfo
from multimodal_eval.data.runs.checksums import RESULTS
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_content import Kind, part_name
from multimodal_eval.data.runs.run_folder import Fault, RunFolder, faults
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.steps.aggregate import recomputed

__all__ = ["Verification", "verify_run"]

F = TypeVar("F", bound=Figure)

_RELATIVE, _ABSOLUTE = 1e-9, 1e-12  # other versions of NumPy may add in another order
_NUMBERS = ("value", "stderr", "low", "high")
JUDGES = "judges.json"
_OTHERS = ("method", "n_scored", "n_total", "unscored", "reasons", "warnings")


@dataclass(frozen=True)
class Verification:
    """The damaged files of a run, and what could not be verified."""

    run: str
    state: str
    files: int  # with a checksum
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


def verify_run(location: Location, *, deep: bool = False) -> Verification:
    """Compare all files of a run with their checksums.

    With `deep`, also recompute the results from the stored scores, as far as the metrics are registered here or means,
    and the findings about judges from the stored verdicts.
    """
    folder = RunFolder(location)
    damaged = list(faults(folder))
    if any(fault.name == "run.json" for fault in damaged):
        return Verification(folder.label, "unknown", 0, tuple(damaged), ())
    info = folder.read_info()
    notes: list[str] = []
    if info.format < CHECKED_FORMAT:
        notes.append("it is from a version without checksums")
    if deep and damaged:
        notes.append("the results are not recomputed, because files are damaged")
    elif deep and info.finished is None:
        notes.append("it is not finished and has no results yet")
    elif deep:
        damaged += _deep_faults(folder, info, notes)
    files = 0 if info.format < CHECKED_FORMAT else len(folder.checksums.data_files())
    return Verification(folder.label, info.state, files, tuple(damaged), tuple(notes))


def _deep_faults(folder: RunFolder, info: RunInfo, notes: list[str]) -> Iterator[Fault]:
    try:
        wrong = list(_wrong_rows(folder, info))
        yield from wrong
        if not wrong:
            run = Run(folder, None, info, folder.read_results())
            yield from _wrong_results(run, notes)
            yield from _wrong_judges(run)
    except MultimodalEvalError as error:
        yield Fault(RESULTS, f"cannot be recomputed: {error}")


def _wrong_rows(folder: RunFolder, info: RunInfo) -> Iterator[Fault]:
    """Parts with other rows than their number says, or whose ids differ between samples and scores."""
    first = 0
    kinds: tuple[Kind, ...] = ("samples", "scores")
    if info.generation is not None:
        kinds = (*kinds, "answers", "exchanges")
    for part, size in enumerate(info.parts):
        tables = [folder.read_part(kind, part, ["row", "id"]) for kind in kinds]
        for kind, table in zip(kinds, tables, strict=True):
            rows = integer_values(table.column("row"))
            if not np.array_equal(rows, np.arange(first, first + size)):
                yield Fault(part_name(kind, part), f"must have the rows {first:,} to {first + size - 1:,}")
        if not tables[0].column("id").equals(tables[1].column("id")):
            yield Fault(part_name("scores", part), "has other ids than the samples")
        if info.generation is not None and not _has_its_answers(folder, part):
            yield Fault(part_name("samples", part), f"has other answers than {part_name('answers', part)}")
        first += size


def _has_its_answers(folder: RunFolder, part: int) -> bool:
    """Whether the samples of a part have the answers of the model."""
    samples = folder.read_part("samples", part, ["generated_answer"])
    texts: list[str | None] = samples.column("generated_answer").to_pylist()
    answers = folder.read_part("answers", part, ["status", "text"])
    pairs = zip(answers.column("status").to_pylist(), answers.column("text").to_pylist(), strict=True)
    return texts == [text if status == "ok" else None for status, text in pairs]


def _wrong_results(run: Run, notes: list[str]) -> Iterator[Fault]:
    """Entries of results.json that differ from the stored scores."""
    stored, info = run.outcome, run.info
    if stored.n != sum(info.parts):
        yield Fault(RESULTS, f"has {stored.n:,} samples, but run.json {sum(info.parts):,}")
    metrics: dict[str, Metric | None] = {}
    for name, entry in stored.entries.items():
        if name in info.unavailable:
            continue
        signature = info.signatures.get(name)
        if signature is None or signature.text != entry.signature:
            yield Fault(RESULTS, f"{name} has another signature than in run.json")
            continue
        try:
            metrics[name] = metric_of(run, name)
        except UnavailableError as error:
            notes.append(f"{name} is not recomputed: {error}")
    entries, slices = recomputed(run.folder, info, metrics)
    for name, computed in entries.items():
        yield from _differences(name, _cut(stored.entries[name], metrics[name]), computed)
    if slices.keys() != stored.slices.keys():
        yield Fault(RESULTS, "has other slices than run.json")
        return
    for column, values in slices.items():
        for value, part in values.items():
            known = stored.slices[column].get(value)
            if known is None or known.n != part.n:
                yield Fault(RESULTS, f"the slice {column}={value} must have {part.n:,} samples")
                continue
            for name, computed in part.metrics.items():
                below = known.metrics.get(name)
                below = None if below is None else _cut(below, metrics[name])
                yield from _differences(f"{name} of {column}={value}", below, computed)


def _cut(entry: Figure, metric: Metric | None) -> Figure:
    """The entry with an interval that ends at the bounds of the metric. Earlier versions did not cut it there."""
    if metric is None:
        return entry
    parts = {part: _within(figure, part_bounds(metric).get(part, (None, None))) for part, figure in entry.parts.items()}
    return msgspec.structs.replace(_within(entry, metric.bounds), parts=parts)


def _within(figure: F, bounds: Bounds) -> F:
    low, high = bounds
    if figure.low is not None and low is not None and figure.low < low:
        figure = msgspec.structs.replace(figure, low=low)
    if figure.high is not None and high is not None and figure.high > high:
        figure = msgspec.structs.replace(figure, high=high)
    return figure


def _wrong_judges(run: Run) -> Iterator[Fault]:
    """Findings of judges.json that differ from the stored verdicts."""
    if not run.info.judging:
        return
    from multimodal_eval.analysis.judges import findings

    stored, computed = run.folder.read_judges(), findings(run)
    for name, before, now in _unequal("", msgspec.to_builtins(stored), msgspec.to_builtins(computed)):
        yield Fault(JUDGES, f"{name} is {_shown(before)}, but the verdicts give {_shown(now)}")


def _unequal(name: str, stored: Any, computed: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ by more than rounding."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in dict.fromkeys([*stored, *computed]):
            yield from _unequal(f"{name}.{key}".lstrip("."), stored.get(key), computed.get(key))
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for number, pair in enumerate(zip(stored, computed, strict=True)):
            yield from _unequal(f"{name}.{number}", *pair)
    elif isinstance(stored, float) and isinstance(computed, float):
        if not isclose(stored, computed, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE):
            yield name, stored, computed
    elif stored != computed:
        yield name, stored, computed


def _differences(name: str, stored: Figure | None, entry: Figure) -> Iterator[Fault]:
    if stored is None:
        yield Fault(RESULTS, f"{name} is missing")
        return
    yield from _figure_differences(name, stored, entry)
    for field in _OTHERS:
        if getattr(stored, field) != getattr(entry, field):
            yield _difference(f"{name}.{field}", getattr(stored, field), getattr(entry, field))
    if stored.parts.keys() != entry.parts.keys():
        yield _difference(f"{name}.parts", list(stored.parts), list(entry.parts))
        return
    if (stored.calibrated is None) != (entry.calibrated is None):
        yield Fault(RESULTS, f"{name} is {'not ' if stored.calibrated is None else ''}calibrated by human labels")
    elif stored.calibrated is not None and entry.calibrated is not None:
        yield from _figure_differences(f"{name}, calibrated,", stored.calibrated, entry.calibrated)
        if stored.calibrated.signature != entry.calibrated.signature:
            yield _difference(f"{name}.calibrated", stored.calibrated.signature, entry.calibrated.signature)
    for part, figure in entry.parts.items():
        yield from _figure_differences(f"{name}.{part}", stored.parts[part], figure)


def _figure_differences(name: str, stored: Figure, figure: Figure) -> Iterator[Fault]:
    # Earlier versions gave equal values an interval without width.
    had_no_width = stored.stderr == 0 and stored.low == stored.high == stored.value
    for field in _NUMBERS[:2] if had_no_width and figure.stderr == 0 else _NUMBERS:
        before, now = getattr(stored, field), getattr(figure, field)
        if before != now and (
            before is None or now is None or not isclose(before, now, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
        ):
            yield _difference(f"{name}.{field}", before, now)


def _difference(name: str, stored: object, computed: object) -> Fault:
    return Fault(RESULTS, f"{name} is {_shown(stored)}, but the scores give {_shown(computed)}")


def _shown(value: object) -> str:
    return msgspec.json.encode(_plain(value)).decode()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
