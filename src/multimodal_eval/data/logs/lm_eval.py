"""Logs of lm-evaluation-harness: `samples_<task>_<date>.jsonl` and, beside it, `results_<date>.json`.

A line is one pair of document and filter. Several filters read the same replies differently, so that the lines of a
document become one sample: the first filter's answer is the answer, the others are metadata `answer.<filter>`, and
every filter has its own scores, `lm-eval.<metric>_<filter>`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score, score_column
from multimodal_eval.data.readers.json_file import read_jsonl
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

HARNESS = "lm-eval"
# Keys of a line that are not scores.
_KEYS = frozenset(
    "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash".split()
)
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[0-9-]+(?:\.\d+)?)\.jsonl")


class LmEval:
    """The format of lm-evaluation-harness."""

    name, harness = "lm-eval", HARNESS
    suffixes = (".jsonl",)

    def recognises(self, head: Head) -> bool:
        """By the keys of the first line."""
        return head.has_keys("doc_id", "doc", "arguments", "resps", "filtered_resps")

    def part_name(self, path: Path) -> str:
        """The task."""
        match = _NAME.fullmatch(path.name)
        return path.stem if match is None else match["task"]

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per document, in the order of the file."""
        filters = _filters(path)
        if len(filters) < 2:
            yield from ((line, _record([item])) for line, item in read_jsonl(path, problems))
            return
        streams = [_of_filter(path, name, problems if place == 0 else Problems()) for place, name in enumerate(filters)]
        for lines in zip_longest(*streams):
            known = [entry for entry in lines if entry is not None]
            line, first = known[0]
            if len(known) < len(filters) or any(item.get("doc_id") != first.get("doc_id") for _, item in known):
                message = f"the filters {' and '.join(map(repr, filters))} do not have the same documents in this order"
                problems.add("UNMATCHED", message, file=str(path), line=line)
                return
            yield line, _record([item for _, item in known], with_filter=True)

    def info(self, path: Path) -> LogInfo:
        """What the results beside the samples say."""
        results, task = _results(path)
        columns = _score_columns(path)
        of_task: Mapping[str, Any] = results.get("results", {}).get(task, {}) if task else {}
        better = results.get("higher_is_better", {}).get(task, {}) if task else {}
        scores = [
            RecordedScore(
                column,
                "lower" if better.get(metric) is False else "higher",
                own_mean=as_score(of_task.get(f"{metric},{name}")),
                own_count=results.get("n-samples", {}).get(task, {}).get("effective"),
            )
            for column, (metric, name) in columns.items()
        ]
        settings = results.get("config", {})
        return LogInfo(
            HARNESS,
            version=results.get("lm_eval_version"),
            model=results.get("model_name") or settings.get("model"),
            task=task,
            scores=tuple(scores),
        )


FORMAT = LmEval()


def _filters(path: Path) -> list[str]:
    """The filters of a file, in order of first appearance."""
    return list(dict.fromkeys(str(item.get("filter", "none")) for _, item in read_jsonl(path, Problems())))


def _of_filter(path: Path, name: str, problems: Problems) -> Iterator[Record]:
    return ((line, item) for line, item in read_jsonl(path, problems) if str(item.get("filter", "none")) == name)


def _score_columns(path: Path) -> dict[str, tuple[str, str]]:
    """Column -> metric and filter, for every score that is a number in some line."""
    filters = _filters(path)
    columns: dict[str, tuple[str, str]] = {}
    for _, item in read_jsonl(path, Problems()):
        name = str(item.get("filter", "none"))
        for metric in _metrics(item):
            if as_score(item[metric]) is not None:
                columns.setdefault(_column(metric, name, with_filter=len(filters) > 1), (metric, name))
    return columns


def _column(metric: str, name: str, *, with_filter: bool) -> str:
    return score_column(HARNESS, f"{metric}_{name}" if with_filter else metric)


def _metrics(item: Mapping[str, Any]) -> list[str]:
    return [key for key in item if key not in _KEYS]


def _record(items: Sequence[Mapping[str, Any]], *, with_filter: bool = False) -> Columns:
    first = items[0]
    record: Columns = {"id": first.get("doc_id"), **_answer(first), **_inputs(first)}
    for item in items:
        name = str(item.get("filter", "none"))
        for metric in _metrics(item):
            record[_column(metric, name, with_filter=with_filter)] = as_score(item[metric])
        if with_filter and item is not first:
            record[f"answer.{name}"] = _answer(item).get("generated_answer")
    return record


def _answer(item: Mapping[str, Any]) -> Columns:
    """The filtered reply, or the choice with the highest log-likelihood."""
    filtered = item.get("filtered_resps")
    if isinstance(filtered, list) and filtered and all(_is_likelihood(reply) for reply in filtered):
        values = [_number(reply[0]) for reply in filtered]
        return {"generated_answer": _continuations(item)[values.index(max(values))], "log_likelihoods": values}
    reply = filtered
    while isinstance(reply, list) and reply:
        reply = reply[0]
    return {"generated_answer": reply if isinstance(reply, str) else None}


def _is_likelihood(reply: object) -> bool:
    return isinstance(reply, list) and len(reply) == 2 and str(reply[1]) in ("True", "False")


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return -math.inf


def _continuations(item: Mapping[str, Any]) -> list[str | None]:
    arguments = item.get("arguments")
    pairs = list(arguments.values()) if isinstance(arguments, dict) else list(arguments or [])
    return [str(pair["arg_1"]).strip() if isinstance(pair, dict) and "arg_1" in pair else None for pair in pairs] or [
        None
    ] * len(item.get("filtered_resps") or [])


def _inputs(item: Mapping[str, Any]) -> Columns:
    arguments = item.get("arguments")
    pairs = list(arguments.values()) if isinstance(arguments, dict) else list(arguments or [])
    prompt = pairs[0].get("arg_0") if pairs and isinstance(pairs[0], dict) else None
    doc = item.get("doc")
    return {
        "prompt": prompt if isinstance(prompt, str) else None,
        "references": _targets(item.get("target")),
        **{f"doc.{key}": value for key, value in (doc.items() if isinstance(doc, dict) else ())},
    }


def _targets(target: object) -> list[str] | None:
    """The targets. A list was written as Python source."""
    if not isinstance(target, str):
        return None if target is None else [str(target)]
    if target.startswith("[") and target.endswith("]"):
        try:
            values = ast.literal_eval(target)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return [target]
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return values or None
    return [target]


def _results(path: Path) -> tuple[dict[str, Any], str | None]:
    """The results file of the same date, and the task of the samples file."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return {}, None
    beside = path.with_name(f"results_{match['date']}.json")
    try:
        results = msgspec.json.decode(beside.read_bytes()) if beside.is_file() else {}
    except (msgspec.DecodeError, OSError, RecursionError):
        results = {}
    return (results if isinstance(results, dict) else {}), match["task"]
