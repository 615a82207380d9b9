"""Logs of lighteval: `details/MODEL/DATE/details_TASK_DATE.parquet`, with `results/MODEL/results_DATE.json`.

A row has three structs: `doc` (the question, its choices and the right ones), `model_response` (texts,
log-probabilities, tokens) and `metric` (the scores). A task without texts chooses by log-probability. Metrics of a
whole task have no number per row, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.data.logs.decoding import document_of
from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score, not_a_score, score_column
from multimodal_eval.data.readers.formats import read_parquet
from multimodal_eval.data.readers.parquet_file import parquet_errors
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

HARNESS = "lighteval"
_COLUMNS = frozenset(("doc", "metric", "model_response"))
_NAME = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[0-9-]+(?:\.\d+)?)\.parquet")
_LOWER = ("ppl", "perplexity", "bits_per_byte", "edit_distance", "wer", "cer", "ter")


class _Results(msgspec.Struct):
    results: dict[str, dict[str, Any]] = {}
    config_general: dict[str, Any] = {}


class Lighteval:
    """The format of lighteval."""

    name, harness = HARNESS, HARNESS
    suffixes = (".parquet",)
    files = "details/MODEL/DATE/details_TASK_DATE.parquet, with results/MODEL/results_DATE.json"
    takes = "replies, question, choices, right answers, reasoning, tokens, log-probabilities, scores"

    def recognises(self, head: Head) -> bool:
        """By the three columns."""
        import pyarrow.parquet as pq

        if head.data[:4] != b"PAR1":
            return False
        try:
            schema = pq.read_schema(head.path)
        except parquet_errors():
            return False
        return set(schema.names) >= _COLUMNS

    def part_name(self, path: Path) -> str:
        """The task."""
        match = _NAME.fullmatch(path.name)
        return path.stem if match is None else match["task"]

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per row."""
        for number, row in read_parquet(path, problems):
            yield number, _record(number, row)

    def info(self, path: Path) -> LogInfo:
        """What the results of the same date say."""
        names: dict[str, None] = {}
        others: dict[str, None] = {}
        task = None
        for _, row in read_parquet(path, Problems()):
            metrics = _mapping(row.get("metric"))
            names |= dict.fromkeys(name for name, value in metrics.items() if as_score(value) is not None)
            others |= dict.fromkeys(name for name, value in metrics.items() if isinstance(value, dict | list))
            task = task or _text(_mapping(row.get("doc")).get("task_name"))
        results = _results(path)
        means = results.results.get(task or "", {})
        return LogInfo(
            HARNESS,
            version=_text(results.config_general.get("lighteval_sha")),
            model=_text(results.config_general.get("model_name")),
            task=task or self.part_name(path),
            scores=tuple(
                RecordedScore(
                    score_column(HARNESS, name),
                    "lower" if name.startswith(_LOWER) else "higher",
                    own_mean=as_score(means.get(name)),
                )
                for name in names
            ),
            notes=tuple(f"{name} has no number per sample, only a score of all together" for name in others),
        )


FORMAT = Lighteval()


def _results(path: Path) -> _Results:
    """The results of the same date, in the folder `results` beside `details`."""
    match = _NAME.fullmatch(path.name)
    if match is None or "details" not in path.parts:
        return _Results()
    place = len(path.parts) - 1 - path.parts[::-1].index("details")
    folder = Path(*path.parts[:place], "results", *path.parts[place + 1 : -2])
    return document_of(folder / f"results_{match['date']}.json", _Results) or _Results()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    """Text; None if it is blank, or the question mark of an unknown value."""
    return value if isinstance(value, str) and value.strip(" ?") else None


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def _record(number: int, row: Mapping[str, object]) -> Columns:
    doc, response, metrics = (_mapping(row.get(name)) for name in ("doc", "model_response", "metric"))
    record: Columns = {"id": _text(doc.get("id")) or str(number - 1)}
    record |= _inputs(doc) | _answer(doc, response)
    record["prompt"] = _text(response.get("input"))
    record |= {
        "input_tokens": _tokens(response.get("input_tokens")),
        "output_tokens": _tokens(response.get("output_tokens")),
    }
    record |= {f"specific.{key}": value for key, value in _mapping(doc.get("specific")).items()}
    for name, value in metrics.items():
        if value is not None and not isinstance(value, dict | list):
            score = as_score(value)
            record[score_column(HARNESS, name)] = not_a_score(value) if score is None else score
    return record


def _inputs(doc: Mapping[str, Any]) -> Columns:
    choices = _texts(doc.get("choices"))
    gold = doc.get("gold_index")
    places = [place for place in (gold if isinstance(gold, list) else [gold]) if isinstance(place, int)]
    right = [choices[place] for place in places if 0 <= place < len(choices) and choices[place].strip()]
    wrong = [choice for place, choice in enumerate(choices) if place not in places and choice.strip()]
    columns: Columns = {
        "question": _text(doc.get("query")),
        "references": list(dict.fromkeys(right)) or None,
        "instruction": _text(doc.get("instruction")),
    }
    if wrong:  # otherwise they are the references of a free answer
        columns["choices"] = [choice for choice in choices if choice.strip()]
    images = [image for image in doc.get("images") or () if image]
    if len(images) == 1:
        columns["image"] = images[0]
    elif images:
        columns["images"] = images
    return columns


def _answer(doc: Mapping[str, Any], response: Mapping[str, Any]) -> Columns:
    """The first reply, or the choice with the highest log-probability."""
    texts = _texts(response.get("text_post_processed")) or _texts(response.get("text"))
    if texts:
        return {
            "generated_answer": texts[0],
            "other_answers": texts[1:] or None,
            "reasoning": "\n".join(_texts(response.get("reasonings"))[:1]) or None,
        }
    choices, values = _texts(doc.get("choices")), response.get("logprobs")
    numbers = [value for value in values if _is_number(value)] if isinstance(values, list) else []
    if numbers and len(numbers) == len(choices):
        return {"generated_answer": choices[numbers.index(max(numbers))], "log_likelihoods": numbers}
    return {"error": "the log has no reply"}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _tokens(value: object) -> int | None:
    """The number of tokens: of a list, or of the first of several lists."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        value = value[0]
    return len(value) if isinstance(value, list) and value else None
