"""A sample in a log of inspect_ai, as a record.

Only the fields that a record needs are decoded; events, the store and the transcript are skipped. Attachments are
decoded if the input refers to one, as for images.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

import msgspec

from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.logs.decoding import finite, loosely
from multimodal_eval.data.logs.log_format import LETTERS, score_column
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.json_file import DECODE_ERRORS, note_fault
from multimodal_eval.data.readers.problems import Columns, Problems

__all__ = [
    "HARNESS",
    "LoggedSample",
    "all_scores",
    "attachments_of",
    "conversation",
    "decoded",
    "decoded_scores",
    "epoch_of",
    "failure_of",
    "record_of",
    "score_values",
    "shortened",
    "texts",
]


# The input of a sample in a log of inspect_ai: messages with parts, and media that are attachments.

_ATTACHMENT = "attachment://"
_MEDIA = ("image", "audio", "video")


class _Attachments(msgspec.Struct):
    attachments: dict[str, str] = {}


_ATTACHED = msgspec.json.Decoder(_Attachments)


def texts(content: list[Any]) -> Iterator[str]:
    """The texts of the parts of a message."""
    for part in content:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            yield part["text"]


def conversation(items: list[Any], resolve: Callable[[str], str]) -> Columns:
    """The question (what the last user message says), the media, and the messages if there are several."""
    messages: list[Columns] = []
    media: dict[str, list[str]] = {kind: [] for kind in _MEDIA}
    question = None
    for item in items:
        if not isinstance(item, dict):
            continue
        role, content = item.get("role"), item.get("content")
        if isinstance(content, list):
            content = [_part(part, media, resolve) for part in content if isinstance(part, dict | str)]
            text = "\n".join(texts(content))
        else:
            content = text = resolve(content) if isinstance(content, str) else ""
        if role == "user":
            question = text or question
        if isinstance(role, str) and role and (content or content == ""):
            messages.append({"role": role, "content": content})
    images = media["image"]
    return {
        "question": question,
        "image": images[0] if len(images) == 1 else None,
        "images": images if len(images) > 1 else None,
        "audio": media["audio"][0] if media["audio"] else None,
        "video": media["video"][0] if media["video"] else None,
        "messages": messages if len(messages) > 1 else None,
    }


def _part(part: dict[str, Any] | str, media: dict[str, list[str]], resolve: Callable[[str], str]) -> Columns | str:
    """A part of a message. Media are kept apart, and a part without content takes their place."""
    if isinstance(part, str):
        return resolve(part)
    kind = part.get("type")
    if kind == "text":
        text = part.get("text")
        return {"type": "text", "text": resolve(text) if isinstance(text, str) else ""}
    source = part.get(kind) if isinstance(kind, str) and kind in _MEDIA else None
    if isinstance(source, str) and isinstance(kind, str):
        media[kind].append(resolve(source))
        return {"type": kind}
    return {"type": kind if isinstance(kind, str) and kind else "other"}


def attachments_of(text: bytes) -> Callable[[str], str]:
    """A function that replaces a reference to an attachment by its content."""
    attached: dict[str, str] | None = None

    def resolve(value: str) -> str:
        nonlocal attached
        if not value.startswith(_ATTACHMENT):
            return value
        if attached is None:
            try:
                attached = _ATTACHED.decode(text).attachments
            except DECODE_ERRORS:
                attached = _loose_attachments(text)
        return attached.get(value.removeprefix(_ATTACHMENT), value)

    return resolve


def _loose_attachments(text: bytes) -> dict[str, str]:
    content = loosely(text)
    values = content.get("attachments") if isinstance(content, dict) else None
    return {key: value for key, value in values.items() if isinstance(value, str)} if isinstance(values, dict) else {}


HARNESS = "inspect"
Logged = TypeVar("Logged")
_TAKEN = {*FIELDS, *"input_tokens output_tokens reasoning_tokens cost stop_reason reasoning limit".split()}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
# Stop reasons without an answer, as the status and the reason of a failure.
_STOPPED = {
    "content_filter": "filtered: the endpoint's content filter stopped the answer",
    "max_tokens": "truncated: the answer was cut off at the limit of tokens",
    "model_length": "truncated: the answer was cut off at the length of the model's context",
    "tool_calls": "tool_call: the model called a tool instead of answering",
}


class LoggedScore(msgspec.Struct):
    """The score of one scorer."""

    value: Any = None
    answer: str | None = None
    explanation: str | None = None
    reason: str | None = None


class _Message(msgspec.Struct):
    content: str | list[Any] | None = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    stop_reason: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None


class _Output(msgspec.Struct):
    completion: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: str | None = None


class _Failure(msgspec.Struct):
    message: str = ""


class _Limit(msgspec.Struct):
    type: str | None = None


class LoggedSample(msgspec.Struct):
    """The fields of a sample that a record needs."""

    id: int | str
    epoch: int = 1
    input: str | list[Any] = ""
    choices: list[str] | None = None
    target: str | list[str] | None = None
    output: _Output | None = None
    scores: dict[str, LoggedScore] | None = None
    score: LoggedScore | None = None  # of logs of 2024
    metadata: dict[str, Any] | None = None
    error: _Failure | None = None
    limit: _Limit | None = None


class _ScoresOnly(msgspec.Struct):
    """What a pass over the scores needs."""

    id: int | str
    epoch: int = 1
    output: _Output | None = None
    scores: dict[str, LoggedScore] | None = None
    score: LoggedScore | None = None
    error: _Failure | None = None


class _Pieces(msgspec.Struct, omit_defaults=True):
    """The same fields, not decoded, of a sample whose events take most of its text."""

    id: msgspec.Raw = msgspec.Raw()
    epoch: msgspec.Raw = msgspec.Raw(b"1")
    input: msgspec.Raw = msgspec.Raw(b'""')
    choices: msgspec.Raw = msgspec.Raw(b"null")
    target: msgspec.Raw = msgspec.Raw(b"null")
    output: msgspec.Raw = msgspec.Raw(b"null")
    scores: msgspec.Raw = msgspec.Raw(b"null")
    score: msgspec.Raw = msgspec.Raw(b"null")
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")
    limit: msgspec.Raw = msgspec.Raw(b"null")
    attachments: msgspec.Raw = msgspec.Raw(b"{}")


_CONSTANTS = ("NaN", "Infinity", "-Infinity")
_SAMPLES, _SCORES = msgspec.json.Decoder(LoggedSample), msgspec.json.Decoder(_ScoresOnly)
_PIECES = msgspec.json.Decoder(_Pieces)


def decoded(text: bytes, file: str, number: int, problems: Problems) -> LoggedSample | None:
    """A sample; None with a problem if the text is not one."""
    return _decoded(_SAMPLES, text, file, number, problems)


def decoded_scores(text: bytes, file: str, number: int, problems: Problems) -> _ScoresOnly | None:
    """The scores of a sample; None with a problem if the text is not one."""
    return _decoded(_SCORES, text, file, number, problems)


def epoch_of(text: bytes, file: str, number: int) -> int:
    """The epoch of a sample; 1 if the text is not a sample, which is a problem when the sample is read."""
    sample = decoded_scores(text, file, number, Problems())
    return 1 if sample is None else sample.epoch


def shortened(text: bytes, file: str, number: int) -> bytes:
    """A long text without the fields that are not needed, so that the limits hold for the others only."""
    if len(text) * 50 <= limits.current().record_bytes:  # too short to be a problem, see `check_json`
        return text
    try:
        pieces = _PIECES.decode(text)
    except DECODE_ERRORS:  # decoding the whole text says why
        short = text
    else:
        short = msgspec.json.encode(pieces)
    if len(short) > limits.current().text_bytes:
        limits.refuse_text(file, number)
    limits.check_json(short, file, number)
    return short


def _decoded(
    decoder: msgspec.json.Decoder[Logged], text: bytes, file: str, number: int, problems: Problems
) -> Logged | None:
    kind: type[Logged] = decoder.type
    try:
        return decoder.decode(text)
    except DECODE_ERRORS as error:
        loose = None if isinstance(error, msgspec.ValidationError) else loosely(text)
        fault: Exception = error
        if loose is not None:
            if isinstance(loose, dict) and "scores" in loose:  # what was recorded, as a text
                loose["scores"] = loosely(text, str)["scores"]
            try:
                return msgspec.convert(loose, kind)
            except (msgspec.ValidationError, RecursionError) as wrong:
                fault = wrong
        if isinstance(fault, msgspec.ValidationError):
            problems.add("TYPE", f"this is not a sample of inspect_ai: {fault}", file=file, line=number)
        else:
            note_fault(problems, file, text, error, line=number, start=0, cut_off=False, last_good=number - 1)
        return None


def score_values(name: str, value: object) -> Iterator[tuple[str, float | None, object]]:
    """(column, number or None, value) of a score: of each item of a list or an object."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield _column(name, key), _number(item), item
    elif isinstance(value, list):
        for place, item in enumerate(value, 1):
            yield _column(name, place), _number(item), item
    else:
        yield _column(name), _number(value), value


@lru_cache(maxsize=4096)
def _column(name: str, key: str | int | None = None) -> str:
    return score_column(HARNESS, name if key is None else f"{name}_{key}")


def _number(value: object) -> float | None:
    """The rules of inspect_ai's `value_to_float`; None for other texts, which it counts as 0 with a warning."""
    if isinstance(value, str):
        if value in LETTERS:
            return LETTERS[value]
        word = value.strip().lower()
        if word in _WORDS:
            return _WORDS[word]
        return finite(word) if len(word) < 400 and _NUMBER.fullmatch(word) else None
    if isinstance(value, bool | int | float):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if isfinite(number) else None
    return None


def failure_of(sample: LoggedSample | _ScoresOnly) -> str | None:
    """Why there is no answer; None if there is one."""
    if sample.error is not None:
        return sample.error.message or "the sample failed"
    output = sample.output
    if output is None or _completion(output):
        return None
    if output.error:
        return output.error
    reason = output.choices[0].stop_reason if output.choices else None
    return None if reason is None else _STOPPED.get(reason)


def all_scores(sample: LoggedSample | _ScoresOnly) -> Mapping[str, LoggedScore]:
    """The scores by scorer."""
    if sample.scores is not None:
        return sample.scores
    return {} if sample.score is None else {"score": sample.score}


def record_of(sample: LoggedSample, text: bytes, *, several: bool, cluster: str | None = None) -> Columns:
    """The record of a sample; `text` has its attachments. `several`: the log has several epochs.

    `cluster` is the metadata by which the log clusters samples; a sample without it is a cluster.
    """
    resolve = attachments_of(text)
    output = sample.output
    record: Columns = {"id": f"{sample.id}#{sample.epoch}" if several else str(sample.id)}
    if several:
        record["epoch"], record["group"] = sample.epoch, str(sample.id)
    if cluster is not None and (sample.metadata or {}).get(cluster) is not None:
        record["group"] = str((sample.metadata or {})[cluster])
    if isinstance(sample.input, str):
        record["question"] = resolve(sample.input) or None
    else:
        record.update(conversation(sample.input, resolve))
    if sample.choices:
        record["choices"] = sample.choices
    record.update(_targets(sample.target))
    failure = failure_of(sample)
    if failure is not None:
        record["error"] = failure
    elif output is not None:
        record["generated_answer"] = _completion(output)
    columns = _columns(sample)
    record.update(columns)
    if sample.metadata:
        record["metadata"] = _metadata(sample.metadata, columns)
    return record


def _columns(sample: LoggedSample) -> Columns:
    """Scores, and what is known about the answer."""
    values: Columns = {}
    has_failed = failure_of(sample) is not None
    for name, score in all_scores(sample).items():
        if has_failed and score.value in _CONSTANTS:  # no answer, so no score: the failure says why
            continue
        for column, number, value in score_values(name, score.value):
            if number is not None:
                values[column] = number
            elif value in _CONSTANTS:
                values[column] = value  # the reason why the sample is unscored
            elif value is not None:
                values[f"value.{column.partition('.')[2]}"] = json.dumps(value) if not isinstance(value, str) else value
        for what in ("answer", "explanation", "reason"):
            said = getattr(score, what)
            if said:
                values[f"{what}.{name}"] = said
    output = sample.output
    if output is not None:
        values.update(_about_output(output))
    if sample.limit is not None and sample.limit.type:
        values["limit"] = sample.limit.type
    return values


def _metadata(metadata: Mapping[str, Any], columns: Columns) -> Columns:
    """The metadata of a sample, without collisions with columns of the record."""
    return {f"sample.{key}" if key in columns or key in _TAKEN else key: value for key, value in metadata.items()}


def _about_output(output: _Output) -> Columns:
    values: Columns = {}
    if output.usage is not None:
        for name in _Usage.__struct_fields__:
            number = getattr(output.usage, name)
            if number is not None:
                values["cost" if name == "total_cost" else name] = number
    if output.choices:
        first = output.choices[0]
        if first.stop_reason:
            values["stop_reason"] = first.stop_reason
        content = first.message.content if first.message is not None else None
        if isinstance(content, list) and (thoughts := [*_thoughts(content)]):
            values["reasoning"] = "\n\n".join(thoughts)
    return values


def _completion(output: _Output) -> str:
    """The text of the answer; in some logs only the message has it."""
    if output.completion or not output.choices:
        return output.completion or ""
    message = output.choices[0].message
    content = None if message is None else message.content
    return content if isinstance(content, str) else "\n".join(texts(content or []))


def _thoughts(content: list[Any]) -> Iterator[str]:
    """The reasoning; its summary if the provider hides it."""
    for part in content:
        if isinstance(part, dict) and part.get("type") == "reasoning":
            thought = part.get("summary") if part.get("redacted") else part.get("reasoning")
            if isinstance(thought, str) and thought:
                yield thought


def _targets(target: str | list[str] | None) -> Columns:
    if isinstance(target, str):
        return {"expected_answer": target} if target else {}
    return {"references": target} if target else {}
