"""Logs of inspect_ai: `.eval` (a zip file) and `.json`.

A sample of a log with several epochs is one record per epoch, with the id `ID#EPOCH` and the group ID. Every scorer is
a column, `inspect.<scorer>`; if its value is a list or an object, every item is, `inspect.<scorer>_<key>`. Letters and
words become numbers by the rules of inspect_ai. Samples with an error, and those without an answer because of a filter
or a limit, are failures.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from multimodal_eval.data.logs.inspect_files import (
    Header,
    ScoreResult,
    is_json_log,
    is_zip_log,
    noting_faults,
    open_log,
)
from multimodal_eval.data.logs.inspect_samples import (
    HARNESS,
    all_scores,
    decoded,
    decoded_scores,
    failure_of,
    record_of,
    score_values,
)
from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score, score_column
from multimodal_eval.data.readers.problems import Problems, Record

__all__ = ["FORMAT"]

_MEANS = ("mean", "accuracy")  # metrics of inspect_ai that are the mean of the scores
_SPREADS = ("stderr", "std", "var", "bootstrap_stderr", "low", "high")
_SETTINGS = ("temperature", "top_p", "max_tokens", "seed", "num_choices", "reasoning_effort", "system_message")


class InspectEval:
    """The formats of inspect_ai."""

    name, harness = "inspect", HARNESS
    suffixes = (".eval", ".json")
    files = "*.eval, or *.json"
    takes = "input, choices, targets, answers, reasoning, errors, epochs, images, tokens, the scores of every scorer"

    def recognises(self, head: Head) -> bool:
        """By the first entry of the zip file, or the first keys of the object."""
        return is_zip_log(head.data) or is_json_log(head.data)

    def part_name(self, path: Path) -> str:
        """The task."""
        task = None
        with noting_faults(path, Problems()), open_log(path) as log:
            task = log.header.eval.task
        return task or path.stem

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per sample and epoch, by epoch and id."""
        with noting_faults(path, problems), open_log(path) as log:
            several = log.has_epochs
            for number, text in log.texts():
                sample = decoded(text, log.place(number), number, problems)
                if sample is not None:
                    yield number, record_of(sample, text, several=several)

    def info(self, path: Path) -> LogInfo:
        """What the header says, and the columns of all scores."""
        problems = Problems()
        scores: dict[str, _Column] = {}
        header, several = Header(), False
        with noting_faults(path, problems), open_log(path) as log:
            header, several = log.header, log.has_epochs
            for number, text in log.texts():
                _add_scores(scores, text, log.place(number), number, problems)
        problems.raise_if_any()
        results, notes = _results(header)
        return LogInfo(
            HARNESS,
            version=_text(header.eval.packages.get("inspect_ai")),
            model=header.eval.model,
            task=header.eval.task,
            scores=tuple(_recorded(column, results.get(name), several) for name, column in scores.items()),
            notes=(*_status(header), *notes),
            settings={key: value for key, value in header.eval.model_generate_config.items() if key in _SETTINGS},
        )


FORMAT = InspectEval()


@dataclass
class _Column:
    """What a pass over all samples finds about a column of scores."""

    name: str
    is_graded: bool = True  # all values are letters or booleans
    ids: array[int] = field(default_factory=lambda: array("q"))  # hashes, of scores that are not those of failures

    def has_equal_epochs(self) -> bool:
        """Whether all samples have as many scores."""
        counts = np.unique(np.frombuffer(self.ids, np.int64), return_counts=True)[1] if self.ids else np.zeros(0)
        return len(counts) == 0 or bool((counts == counts[0]).all())


def _add_scores(columns: dict[str, _Column], text: bytes, file: str, number: int, problems: Problems) -> None:
    sample = decoded_scores(text, file, number, problems)
    if sample is None:
        return
    failed = failure_of(sample) is not None
    for name, score in all_scores(sample).items():
        for column_name, value, written in score_values(name, score.value):
            if value is None:
                continue
            column = columns.setdefault(column_name, _Column(column_name))
            column.is_graded &= isinstance(written, str | bool) and 0 <= value <= 1
            if not failed:
                column.ids.append(hash(sample.id))


def _results(header: Header) -> tuple[dict[str, list[ScoreResult]], list[str]]:
    """The results by column, and what cannot be compared with a mean."""
    by_column: dict[str, list[ScoreResult]] = {}
    notes = []
    for result in header.results.scores if header.results is not None else ():
        scorer = result.scorer or result.name
        name = scorer if result.name == scorer else f"{scorer}_{result.name}"
        by_column.setdefault(score_column(HARNESS, name), []).append(result)
        for metric, value in result.metrics.items():
            number = as_score(value.value)
            if number is not None and metric not in _SPREADS and not _is_mean(result, metric):
                reducer = f" over epochs by {result.reducer}" if result.reducer else ""
                notes.append(f"{name}: {metric}{reducer} is {number:.4g} in the log")
    return by_column, notes


def _is_mean(result: ScoreResult, metric: str) -> bool:
    return metric in _MEANS and result.reducer in (None, "mean")


def _recorded(column: _Column, results: list[ScoreResult] | None, several: bool) -> RecordedScore:
    mean = count = aggregation = None
    for result in results or ():
        for metric, value in result.metrics.items():
            if mean is None and _is_mean(result, metric) and as_score(value.value) is not None:
                mean, count = as_score(value.value), result.scored_samples
    if several and not column.has_equal_epochs():
        aggregation = "mean of the samples' means over their scored epochs"
    low, high = (0.0, 1.0) if column.is_graded else (None, None)
    own_count = None if several else count
    return RecordedScore(column.name, low=low, high=high, own_mean=mean, own_count=own_count, aggregation=aggregation)


def _status(header: Header) -> list[str]:
    if header.status in (None, "success"):
        return []
    return [f"the log is not complete: its status is {header.status!r}"]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
