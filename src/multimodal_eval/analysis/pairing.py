"""Runs over the same samples, paired by id; refused where they have not the same samples or settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Codes, cluster_codes, read_scores
from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.data.runs.run import Run

MOST_LEFT_OUT = 0.01  # share of the samples that may be unscored in one of the runs
_SAID_BY_THE_DATA = ("question", "choices", "references", "expected_answer", "caption", "annotations")
_SHOWN = 3


def paired(runs: Sequence[Run]) -> tuple[list[str], list[Codes]]:
    """The runs' names, and for each its rows in the order of the first run's samples."""
    names = _run_names(runs)
    return names, _rows_by_id(runs, names)


def _run_names(runs: Sequence[Run]) -> list[str]:
    """Folder names; whole paths where two folders have the same."""
    names = [run.folder.name for run in runs]
    if len(set(names)) < len(names):
        names = [run.folder.label for run in runs]
    if len(set(names)) < len(names):
        raise ConfigError(f"a run cannot be compared with itself: {', '.join(names)}")
    return names


def parts_of(run: Run) -> int:
    """How many parts the run folder has."""
    return len(run.info.parts)


def _rows_by_id(runs: Sequence[Run], names: Sequence[str]) -> list[Codes]:
    return rows_by_id([read_scores(run.folder, parts_of(run), ["id"]).column("id") for run in runs], names)


def rows_by_id(ids: Sequence[pa.ChunkedArray], names: Sequence[str]) -> list[Codes]:
    """For each run its rows in the order of the first run's ids; all runs must have the same ids."""
    problems: list[Problem] = []
    places = [np.arange(len(ids[0]), dtype=np.int64)]
    for column, name in zip(ids[1:], names[1:], strict=True):
        missing = _absent(ids[0], column, name)
        problems += missing + _absent(column, ids[0], names[0])
        if not missing:
            rows = pc.index_in(ids[0], value_set=column.combine_chunks())
            places.append(np.asarray(rows.to_numpy(zero_copy_only=False), dtype=np.int64))
    if problems:
        raise InputError(problems[:100], len(problems))
    return places


def _absent(ids: pa.ChunkedArray, others: pa.ChunkedArray, where: str) -> list[Problem]:
    """A problem for each id that the run named `where` does not have."""
    known = pc.is_in(ids, value_set=others.combine_chunks())
    return [
        Problem(code="UNMATCHED", message=f"the sample is not in the run {where}", id=sample)
        for sample in sorted(ids.filter(pc.invert(known)).to_pylist())
    ]


def shared_clusters(runs: Sequence[Run], names: Sequence[str], order: Sequence[Codes]) -> Codes | None:
    """The groups of the samples, which must be the same in all runs."""
    columns = [
        read_scores(run.folder, parts_of(run), ["group"]).column("group").take(rows)
        for run, rows in zip(runs, order, strict=True)
    ]
    for name, column in zip(names[1:], columns[1:], strict=True):
        if column.to_pylist() != columns[0].to_pylist():
            raise ConfigError(f"the runs {names[0]} and {name} put the same samples into different groups")
    return cluster_codes(columns[0])


def refuse_other_signatures(runs: Sequence[Run], names: Sequence[str], metric: str) -> None:
    """Numbers made in different ways are no comparison; the error names the difference."""
    first = runs[0].info.signatures[metric]
    if metric == COMPOSITE:  # which is made of others, and says no more of them than their names
        for part in first.weights or [str(first.headline)]:
            if all(part in run.info.signatures for run in runs):
                refuse_other_signatures(runs, names, part)
    for run, name in zip(runs[1:], names[1:], strict=True):
        other = run.info.signatures[metric]
        if other.text == first.text:
            continue
        here, there = first.settings, other.settings
        told = "; ".join(
            f"{key} is {here.get(key)!r} in {names[0]} and {there.get(key)!r} in {name}"
            for key in {**here, **there}
            if here.get(key) != there.get(key)
        )
        raise ConfigError(f"{metric} cannot be compared, its signatures differ: {told}")


def refuse_other_data(runs: Sequence[Run], names: Sequence[str], order: Sequence[Codes]) -> None:
    """The same ids must stand for the same questions and references; answers are what may differ."""
    columns = [name for name in _SAID_BY_THE_DATA if all(name in _sample_columns(run) for run in runs)]
    first = _data_hashes(runs[0], columns)
    for run, name, rows in zip(runs[1:], names[1:], order[1:], strict=True):
        differing = np.flatnonzero(_data_hashes(run, columns)[rows] != first)
        if len(differing):
            ids = (
                read_scores(runs[0].folder, parts_of(runs[0]), ["id"]).column("id").take(differing[:_SHOWN]).to_pylist()
            )
            raise ConfigError(
                f"{len(differing):,} samples have other questions, references or annotations in {name} "
                f"than in {names[0]}: {', '.join(map(repr, ids))}{' …' if len(differing) > _SHOWN else ''}"
            )


def _sample_columns(run: Run) -> list[str]:
    """The columns of the stored samples; run folders of older versions have fewer."""
    names: list[str] = run.folder.part_schema("samples", 0).names
    return names


def _data_hashes(run: Run, columns: Sequence[str]) -> Codes:
    """A number for each sample's question and references; the same within this process only."""
    hashes: list[int] = []
    for part in range(parts_of(run)):
        table = run.folder.read_part("samples", part, list(columns))
        texts = [
            pc.binary_join(table.column(name), "\x1f") if name == "references" else table.column(name)
            for name in columns
        ]
        hashes += map(hash, zip(*(column.to_pylist() for column in texts), strict=True))
    return np.array(hashes, dtype=np.int64)


def refuse_too_few(name: str, scored: NDArray[np.bool_], *, allow_partial: bool) -> None:
    """Over 1 % of unscored samples is an error, unless they may be left out."""
    left_out = int((~scored).sum())
    if not scored.any():
        raise ConfigError(f"{name} is scored for no sample in all runs")
    if left_out > MOST_LEFT_OUT * len(scored) and not allow_partial:
        raise ConfigError(
            f"{name}: {left_out:,} of {len(scored):,} samples are unscored in at least one run, over "
            f"{MOST_LEFT_OUT:.0%}. To compare on the others: --allow-partial"
        )
