"""How the rules of a metric differ on the same answers: scores, paired differences, disagreements, samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Averaging, column_names
from multimodal_eval.analysis.pairing import (
    AlignedScores,
    aligned_scores,
    aligned_strata,
    pair_runs,
    part_count,
    shared_clusters,
)
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import RECORDED, JsonObject
from multimodal_eval.core.score import UNREAD
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.paired import compare

__all__ = ["Crosswalk", "DifferingSample", "RuleScore", "crosswalk_if_any", "crosswalk_of", "is_crosswalk"]

SHOWN = 20


@dataclass(frozen=True)
class RuleScore:
    """The score under one rule, and its difference to the first rule over the samples that both score."""

    rule: str
    column: str
    score: Figure
    scored: int
    unread: int
    unscored: int
    difference: Figure | None  # None for the first rule, and if no sample is scored by both
    compared: int


@dataclass(frozen=True)
class DifferingSample:
    """A sample that the rules score differently: per rule what it read, or else its score."""

    row: int
    id: str
    answer: str
    gold: str
    readings: tuple[str, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, repr=False)
class Crosswalk(Displayed):
    """The rules of a metric side by side.

    `disagreements[i][j]` counts the samples that the rules i and j score differently, or that only one of them scores.
    `examples` has one sample per pattern of scores, the most frequent patterns first.
    """

    metric: str
    option: str
    samples: int
    rules: tuple[RuleScore, ...]
    disagreements: tuple[tuple[int, ...], ...]
    differing: int  # samples that not all rules score equally
    examples: tuple[DifferingSample, ...]

    def to_dict(self) -> JsonObject:
        """The crosswalk as a JSON object."""
        content = asdict(self)
        for rule, shown in zip(self.rules, content["rules"], strict=True):
            shown["score"] = msgspec.to_builtins(rule.score)
            shown["difference"] = None if rule.difference is None else msgspec.to_builtins(rule.difference)
        return content


def is_crosswalk(run: Run) -> bool:
    """Whether the run has one metric under several rules, and nothing else."""
    return _axis(run) is not None


def crosswalk_if_any(run: Run) -> Crosswalk | None:
    """The crosswalk of a run, or None if it is not one."""
    return crosswalk_of(run) if is_crosswalk(run) else None


def _axis(run: Run) -> tuple[str, str] | None:
    """The metric and the option whose values the columns of the run have."""
    config = run.info.config
    names = [name for name in run.metrics if name in config.variants]
    bases = {config.variants[name] for name in names}
    if len(names) < 2 or len(bases) != 1:
        return None
    options = [config.options.get(name, {}) for name in names]
    keys = [key for key in options[0] if all(key in values for values in options)]
    differing = [key for key in keys if len({str(values[key]) for values in options}) == len(options)]
    base = bases.pop()
    return (base, differing[0]) if len(differing) == 1 and base != RECORDED else None


def crosswalk_of(run: Run, *, examples: int = SHOWN) -> Crosswalk:
    """Compare the columns of a run that `mmeval crosswalk` created."""
    axis = _axis(run)
    if axis is None:
        raise ConfigError(f"{run.folder.label} is not a crosswalk: it does not have one metric under several rules")
    metric, option = axis
    config = run.info.config
    names = [name for name in run.metrics if name in config.variants]
    _, (order,) = pair_runs([run])
    averaging = Averaging(shared_clusters([run], [run.folder.name], [order]), aligned_strata(run, order))
    stored = column_names(run.folder, part_count(run))
    scores = [aligned_scores(run, stored, order, name) for name in names]
    rules = [str(config.options[name][option]) for name in names]
    values = np.vstack([column.values for column in scores])
    is_shown = np.logical_or.reduce([_differ(values[0], other) for other in values])
    rows = _one_per_pattern(values, np.flatnonzero(is_shown))[:examples]
    return Crosswalk(
        metric,
        option,
        values.shape[1],
        tuple(
            _rule_score(run, rule, name, scores[0], column, averaging, order)
            for rule, name, column in zip(rules, names, scores, strict=True)
        ),
        tuple(tuple(int(_differ(left, right).sum()) for right in values) for left in values),
        int(is_shown.sum()),
        tuple(_examples(run, names, rows, values)),
    )


def _differ(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The samples that two rules score differently, or that only one of them scores."""
    different: NDArray[np.bool_] = (left != right) & ~(np.isnan(left) & np.isnan(right))
    return different


def _one_per_pattern(values: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first row of each combination of scores, the most frequent ones first."""
    if not len(rows):
        return rows
    patterns = np.nan_to_num(values[:, rows], nan=-1.0).T
    _, first, counts = np.unique(patterns, axis=0, return_index=True, return_counts=True)
    return rows[first[np.lexsort((first, -counts))]]


def _rule_score(
    run: Run,
    rule: str,
    name: str,
    base: AlignedScores,
    column: AlignedScores,
    averaging: Averaging,
    order: NDArray[np.int64],
) -> RuleScore:
    entry = run.entries[name]
    both = ~np.isnan(base.values) & ~np.isnan(column.values)
    difference = None
    if column is not base and both.any():
        first, second = base.estimate(both, order, averaging), column.estimate(both, order, averaging)
        difference = compare([first], [second], averaging.of(both).clusters)[0].difference
    return RuleScore(
        rule,
        name,
        entry.bare,
        entry.coverage.scored,
        entry.coverage.warnings.get(UNREAD, 0),
        entry.coverage.missing,
        difference,
        int(both.sum()),
    )


def _examples(
    run: Run, names: list[str], rows: NDArray[np.int64], values: NDArray[np.float64]
) -> list[DifferingSample]:
    """The samples in these rows, which are read part by part."""
    starts = np.cumsum([0, *run.info.parts])
    shown: dict[int, DifferingSample] = {}
    for part in range(part_count(run)):
        inside = [int(row) for row in rows if starts[part] <= row < starts[part + 1]]
        if not inside:
            continue
        fields = {"generated_answer", "references", "expected_answer", "caption"}
        samples = run.folder.read_samples(part, fields)
        schema = run.folder.part_schema("scores", part).names
        columns = [column for name in names if (column := f"{name}:details") in schema]
        details = run.folder.read_part("scores", part, columns).to_pydict() if columns else {}
        for row in inside:
            place = row - int(starts[part])
            sample = samples[place]
            texts = details.items()
            read = {column.removesuffix(":details"): _read(cells[place]) for column, cells in texts}
            scored = tuple(None if np.isnan(value) else float(value) for value in values[:, row])
            shown[row] = DifferingSample(
                row,
                sample.id,
                sample.generated_answer or "",
                " | ".join(sample.reference_texts),
                tuple(read.get(name) or _as_text(value) for name, value in zip(names, scored, strict=True)),
                scored,
            )
    return [shown[int(row)] for row in rows]


def _read(details: str | None) -> str | None:
    """What a rule read, if the metric tells."""
    if details is None:
        return None
    content: Any = msgspec.json.decode(details)
    read = content.get("read") if isinstance(content, dict) else None
    return None if read is None else str(read)


def _as_text(value: float | None) -> str:
    return "unscored" if value is None else f"{value:.4g}"
