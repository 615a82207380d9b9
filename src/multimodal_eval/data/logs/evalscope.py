"""Logs of evalscope: `reviews/MODEL/DATASET_SUBSET.jsonl`, with `predictions/` and `reports/` beside `reviews/`.

A line of the reviews is one reply with its scores. The predictions have the tokens and the failures. Repeated
questions are epochs. A metric that failed has the value 0 in a review, and its error in the metadata of the score:
such a value is not a score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.logs.decoding import (
    LineIndex,
    conversation,
    decoded_lines,
    document_of,
    reasoning_of,
    text_of,
)
from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score, not_a_score, score_column
from multimodal_eval.data.readers.blocks import BLOCK, COMPRESSED, DamagedStreamError, open_bytes
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

HARNESS = "evalscope"
_REPEATED = re.compile(rb'"generation_index"\s*:\s*[1-9]')
_LONGEST_KEY = 40  # bytes around the end of a block
_DECIMALS = 4  # of the means in a report
_LONGEST_CAUSE = 100  # characters
_USABLE = ("success", "fallback", "degraded")
_STATISTICS = {"recall": "R", "precision": "P", "f1": "F"}


class _Score(msgspec.Struct):
    value: dict[str, Any] = {}
    status: str = "success"
    extracted_prediction: str | None = None
    prediction: str | None = None
    explanation: str | None = None
    metadata: dict[str, Any] | None = None


class _SampleScore(msgspec.Struct):
    score: _Score
    group_id: str | int | None = None
    generation_index: int | None = None
    sample_metadata: dict[str, Any] | None = None


class _Review(msgspec.Struct):
    index: int | str
    sample_score: _SampleScore
    target: str | list[str] | None = None
    messages: list[dict[str, Any]] = []
    input: Any = None  # before version 1.5


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Output(msgspec.Struct):
    choices: list[dict[str, Any]] | None = None
    usage: _Usage | None = None
    error: Any = None
    model: str | None = None


class _Prediction(msgspec.Struct):
    index: int | str
    model_output: _Output | None = None
    messages: list[dict[str, Any]] = []
    model: str | None = None


class _Index(msgspec.Struct):
    index: int | str


class _Subset(msgspec.Struct):
    name: str = ""
    score: float | None = None
    num: int | None = None


class _Category(msgspec.Struct):
    subsets: list[_Subset] = []


class _Identity(msgspec.Struct):
    name: str
    aggregation: str = "mean"
    dimensions: dict[str, Any] = {}


class _Semantics(msgspec.Struct):
    direction: str | None = None


class _Metric(msgspec.Struct):
    identity: _Identity | None = None
    name: str = ""  # before version 2 of the report
    categories: list[_Category] = []
    semantics: _Semantics | None = None


class _Report(msgspec.Struct):
    metrics: list[_Metric] = []
    model_name: str | None = None
    dataset_name: str | None = None


_REVIEWS, _PREDICTIONS = msgspec.json.Decoder(_Review), msgspec.json.Decoder(_Prediction)
_INDICES = msgspec.json.Decoder(_Index)


class Evalscope:
    """The format of evalscope."""

    name, harness = HARNESS, HARNESS
    suffixes = (".jsonl",)
    files = "reviews/MODEL/DATASET_SUBSET.jsonl, with predictions/ and reports/ beside reviews/"
    takes = "reply, question, images, targets, extracted answer, tokens, repeats, scores"

    def recognises(self, head: Head) -> bool:
        """By the keys of the first line; if it is longer than the head, because it has images, by the first keys."""
        if not head.first and head.data.startswith(b'{"index":'):
            return head.has_keys("target", "messages") or head.has_keys("model_output", "model")
        return head.has_keys("index") and (
            head.has_keys("sample_score") or head.has_keys("model_output", "messages", "model")
        )

    def part_name(self, path: Path) -> str:
        """The dataset and its subset."""
        return path.name.partition(".")[0]

    def main_files(self, paths: Sequence[Path]) -> list[Path]:
        """The reviews, and predictions without reviews."""
        known = set(paths)
        return [
            path for path in paths if not (path.parts[-3:-2] == ("predictions",) and _beside(path, "reviews") in known)
        ]

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per review, then one per prediction without a review."""
        if _is_predictions(path):
            for line, prediction in decoded_lines(path, problems, _PREDICTIONS, "a prediction of evalscope"):
                yield line, _of_prediction(prediction)
            return
        repeated, reviewed = _is_repeated(path), set[str]()
        with LineIndex(_beside(path, "predictions"), _index, _PREDICTIONS) as predictions:
            for line, review in decoded_lines(path, problems, _REVIEWS, "a review of evalscope"):
                index = str(review.index)
                reviewed.add(index)
                yield line, _of_review(review, repeated) | _counts(predictions.get(index))
            for number, index in enumerate(predictions, 1):
                left = None if index in reviewed else predictions.get(index)
                if left is not None:
                    yield number, {"error": "the reply was not reviewed", **_of_prediction(left)}

    def info(self, path: Path) -> LogInfo:
        """What the report says."""
        names: dict[str, None] = {}
        failed: dict[str, dict[str, None]] = {}  # by cause
        for _, review in () if _is_predictions(path) else decoded_lines(path, Problems(), _REVIEWS, ""):
            score = review.sample_score.score
            names |= dict.fromkeys(_scored(score))
            for name in score.value:
                if (cause := _failure(score, name)) is not None:
                    failed.setdefault(cause, {})[name] = None
        report, subset = _report(path)
        notes = [
            f"evalscope has the value 0 for a metric that failed; here it is unscored: {', '.join(metrics)} ({cause})"
            for cause, metrics in failed.items()
        ]
        return LogInfo(
            HARNESS,
            model=report.model_name or (path.parent.name or None),
            task=self.part_name(path),
            scores=tuple(_recorded(name, report, subset) for name in names),
            notes=tuple(notes),
        )


FORMAT = Evalscope()


def _index(text: bytes) -> str:
    return str(_INDICES.decode(text).index)


def _is_predictions(path: Path) -> bool:
    try:
        with open_bytes(path) as stream:
            return b'"sample_score"' not in stream.read(BLOCK) and path.parts[-3:-2] != ("reviews",)
    except (OSError, DamagedStreamError):
        return False


def _beside(path: Path, folder: str) -> Path | None:
    """The file of the same dataset in another folder of the run: `predictions` or `reviews`."""
    if path.parts[-3:-2] not in (("reviews",), ("predictions",)) or path.suffix.lower() in COMPRESSED:
        return None
    beside = path.parents[2] / folder / path.parent.name / path.name
    return beside if beside.is_file() else None


def _is_repeated(path: Path) -> bool:
    """Whether some question was asked several times."""
    rest = b""
    try:
        with open_bytes(path) as stream:
            while block := stream.read(BLOCK):
                if _REPEATED.search(rest + block):
                    return True
                rest = block[-_LONGEST_KEY:]
    except (OSError, DamagedStreamError):
        pass
    return False


def _of_review(review: _Review, repeated: bool) -> Columns:
    sample = review.sample_score
    score = sample.score
    record: Columns = {"id": str(review.index)}
    if repeated and sample.group_id is not None and sample.generation_index is not None:
        epoch = sample.generation_index + 1
        record |= {"id": f"{sample.group_id}#{epoch}", "group": str(sample.group_id), "epoch": epoch}
    record |= conversation(_before_answer(review.messages) or [{"role": "user", "content": review.input}])
    targets = [review.target] if isinstance(review.target, str) else review.target or []
    record["references"] = [target for target in targets if target.strip()] or None
    record |= _answer(review.messages, score.prediction)
    record["extracted_answer"] = score.extracted_prediction
    record["explanation"] = score.explanation
    if score.status not in _USABLE:
        record["score_status"] = score.status
    record |= {score_column(HARNESS, name): value for name, value in _recorded_values(score).items()}
    return record | {f"sample.{key}": value for key, value in (sample.sample_metadata or {}).items()}


def _before_answer(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The messages before the last reply."""
    last = max((place for place, message in enumerate(messages) if message.get("role") == "assistant"), default=None)
    return list(messages) if last is None else list(messages[:last])


def _answer(messages: Sequence[Mapping[str, Any]], prediction: str | None) -> Columns:
    replies = [message for message in messages if message.get("role") == "assistant"]
    content = replies[-1].get("content") if replies else None
    text = prediction if prediction is not None else text_of(content)
    if text is None:
        return {"error": "the log has no reply"}
    return {"generated_answer": text, "reasoning": reasoning_of(content)}


def _scored(score: _Score) -> dict[str, float]:
    """The values that are scores."""
    if score.status not in _USABLE:
        return {}
    values = {name: as_score(value) for name, value in score.value.items() if _failure(score, name) is None}
    return {name: value for name, value in values.items() if value is not None}


def _recorded_values(score: _Score) -> dict[str, float | str]:
    """The values that are scores, and what was recorded instead of one."""
    if score.status not in _USABLE:
        return {}
    others = {name: not_a_score(value) for name, value in score.value.items() if _failure(score, name) is None}
    return {**others, **_scored(score)}


def _failure(score: _Score, name: str) -> str | None:
    """Why a metric has no value, although the log says 0: the first line of its error."""
    errors = (score.metadata or {}).get("metric_errors")
    if not isinstance(errors, Mapping):
        return None
    for metric, message in errors.items():
        if name.casefold().startswith(str(metric).casefold()):
            return shorten(" ".join(str(message).split()), _LONGEST_CAUSE)
    return None


def _of_prediction(prediction: _Prediction) -> Columns:
    record: Columns = {"id": str(prediction.index), **conversation(_before_answer(prediction.messages))}
    output = prediction.model_output
    error = None if output is None else output.error
    choices = [] if output is None else output.choices or []
    message = choices[0].get("message") if choices else None
    text = text_of(message.get("content")) if isinstance(message, Mapping) else None
    if error:
        record["error"] = error if isinstance(error, str) else str(msgspec.json.encode(error), "utf-8")
    elif text is None:
        record["error"] = "the log has no reply"
    else:
        record["generated_answer"] = text
    return record | _counts(prediction)


def _counts(prediction: _Prediction | None) -> Columns:
    """The tokens of a reply, and how it ended."""
    output = None if prediction is None else prediction.model_output
    if output is None:
        return {}
    usage = output.usage or _Usage()
    stop = output.choices[0].get("stop_reason") if output.choices else None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "stop_reason": stop if isinstance(stop, str) else None,
    }


def _report(path: Path) -> tuple[_Report, str]:
    """The report of the dataset, and the name of the subset of the file."""
    stem = path.name.partition(".")[0]
    if path.parts[-3:-2] not in (("reviews",), ("predictions",)):
        return _Report(), stem
    folder = path.parents[2] / "reports" / path.parent.name
    for end in (place for place in range(len(stem), 0, -1) if place == len(stem) or stem[place] == "_"):
        report = document_of(folder / f"{stem[:end]}.json", _Report)
        if report is not None:
            return report, stem[end + 1 :]
    return _Report(), stem


def _recorded(name: str, report: _Report, subset: str) -> RecordedScore:
    """A score, with the mean of its subset, which the report rounds to four digits."""
    for metric in report.metrics:
        if name not in _names(metric):
            continue
        parts = [part for category in metric.categories for part in category.subsets]
        part = next((part for part in parts if part.name == subset), None)
        aggregation = "mean" if metric.identity is None else metric.identity.aggregation
        direction = None if metric.semantics is None else metric.semantics.direction
        return RecordedScore(
            score_column(HARNESS, name),
            "lower" if direction == "lower_is_better" else "higher",
            own_mean=None if part is None else as_score(part.score),
            own_count=None if part is None else part.num,
            aggregation=None if aggregation in ("mean", "identity") else aggregation,
            decimals=_DECIMALS,
        )
    return RecordedScore(score_column(HARNESS, name))


def _names(metric: _Metric) -> set[str]:
    """The names that a metric of the report may have in the reviews."""
    if metric.identity is None:
        return {metric.name, metric.name.removeprefix("mean_"), metric.name.removeprefix("Average")}
    name, axes = metric.identity.name, metric.identity.dimensions
    if not axes:
        return {name, "acc"} if name == "accuracy" else {name}
    order, statistic = axes.get("ngram", str(axes.get("variant", "")).upper()), axes.get("statistic")
    if statistic is None:
        return {f"{name}-{order}"}
    return {f"{name.capitalize()}-{order}-{_STATISTICS.get(str(statistic), statistic)}"}
