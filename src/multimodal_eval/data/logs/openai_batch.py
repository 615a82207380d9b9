"""Batch files of OpenAI's API: the results, with the requests and the errors that are beside them.

    requests    {"custom_id": "3", "method": "POST", "url": "/v1/chat/completions", "body": {…}}
    results     {"custom_id": "3", "response": {"status_code": 200, "body": {…}}, "error": null}

A file of results is the log. The questions come from the file of requests in its folder that has its ids, in any
order. Requests that failed, or that have no result, are samples with an error. vLLM's `run-batch` and others write the
same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.logs.decoding import LineIndex, conversation, decoded_lines, reasoning_of, text_of
from multimodal_eval.data.logs.log_format import Head, LogInfo
from multimodal_eval.data.readers.blocks import COMPRESSED, bare_suffix
from multimodal_eval.data.readers.json_file import DECODE_ERRORS
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

HARNESS = "openai-batch"
_OK = 200
_MOST_BESIDE = 200  # files of the folder that are looked at
_LONGEST_FIRST_LINE = 1 << 22  # bytes
NO_RESULT = "the batch has no result for this request"


class _Request(msgspec.Struct):
    custom_id: str
    body: dict[str, Any] = {}


class _Response(msgspec.Struct):
    status_code: int | None = None
    body: Any = None


class _Result(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


class _Line(msgspec.Struct):
    """The keys that tell requests and results apart."""

    custom_id: str
    method: Any = msgspec.UNSET
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    response: Any = msgspec.UNSET
    error: Any = msgspec.UNSET


class _Id(msgspec.Struct):
    custom_id: str


_REQUESTS, _RESULTS = msgspec.json.Decoder(_Request), msgspec.json.Decoder(_Result)
_LINES, _IDS = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Id)
Kind = Literal["requests", "answers", "errors"]


@dataclass(frozen=True)
class _Beside:
    """A batch file in the folder: what its first line is, and the id of that line."""

    path: Path
    kind: Kind
    first: str


class OpenAIBatch:
    """The format of OpenAI's batch files."""

    name, harness = HARNESS, HARNESS
    suffixes = (".jsonl",)
    files = "results of a batch, with the requests and the errors beside them"
    takes = "answer, question, images, reasoning, tokens, log-probabilities; failures as errors"

    def recognises(self, head: Head) -> bool:
        """By the keys of the first line."""
        if not head.has_keys("custom_id"):
            return False
        return head.has_keys("response") or head.has_keys("method", "url", "body")

    def part_name(self, path: Path) -> str:
        """The name of the file."""
        return path.name.partition(".")[0]

    def main_files(self, paths: Sequence[Path]) -> list[Path]:
        """The files with answers; without any, those with errors, then those with requests."""
        kinds = {path: entry.kind for path in paths if (entry := _entry(path)) is not None}
        for kind in ("answers", "errors", "requests"):
            chosen = [path for path in paths if kinds.get(path) == kind]
            if chosen:
                return chosen
        return list(paths)

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per result, then one per request without an answer."""
        entry = _entry(path)
        if entry is not None and entry.kind == "requests":
            results = self._results_of(entry, problems)
            if results is None:
                return
            entry = results
        beside = [] if entry is None else _beside(entry.path)
        requests = None if entry is None else _requests_with(entry.first, beside)
        answered: set[str] = set()
        file = path if entry is None else entry.path
        with LineIndex(requests, _name, _REQUESTS) as asked:
            for line, result in decoded_lines(file, problems, _RESULTS, "a result of a batch"):
                answered.add(result.custom_id)
                inputs = _inputs(asked.get(result.custom_id))
                yield from ((line, record) for record in _records_of(result, inputs))
            failures = _failures([each.path for each in beside if each.kind == "errors" and each is not entry])
            for number, name in enumerate(asked, 1):
                if name not in answered:
                    yield number, {"id": name, "error": failures.get(name, NO_RESULT), **_inputs(asked.get(name))}

    def info(self, path: Path) -> LogInfo:
        """The model of the first answer. The API gives no scores."""
        for _, result in decoded_lines(path, Problems(), _RESULTS, "a result of a batch"):
            body = _body(result)
            if isinstance(body.get("model"), str):
                return LogInfo(HARNESS, model=body["model"], task=self.part_name(path))
        return LogInfo(HARNESS, task=self.part_name(path))

    @staticmethod
    def _results_of(requests: _Beside, problems: Problems) -> _Beside | None:
        """The one file of results for these requests."""
        names = _names(requests.path)
        results = [each for each in _beside(requests.path) if each.kind == "answers" and each.first in names]
        if len(results) == 1:
            return results[0]
        file = str(requests.path)
        if results:
            named = ", ".join(each.path.name for each in results)
            problems.add(
                "FORMAT", "these requests have several files of results.", file=file, hint=f"Name one: {named}"
            )
        else:
            hint = "Put the results into the same folder, or name them."
            problems.add("NOT_FOUND", "these are requests of a batch, without their results.", file=file, hint=hint)
        return None


FORMAT = OpenAIBatch()


def _entry(path: Path) -> _Beside | None:
    """What a file is, by its first line; None if it is not a batch file."""
    if bare_suffix(path) != ".jsonl":
        return None
    if path.suffix.lower() in COMPRESSED:
        first = next(decoded_lines(path, Problems(), _LINES, ""), None)
        line = None if first is None else first[1]
    else:
        try:
            with path.open("rb") as stream:
                line = _LINES.decode(stream.readline(_LONGEST_FIRST_LINE))
        except (*DECODE_ERRORS, OSError):
            return None
    if line is None:
        return None
    if line.body is not msgspec.UNSET:
        return _Beside(path, "requests", line.custom_id)
    if line.response is msgspec.UNSET and line.error is msgspec.UNSET:
        return None
    return _Beside(path, "answers" if _has_answer(path) else "errors", line.custom_id)


def _has_answer(path: Path) -> bool:
    """Whether some result of the file is an answer."""
    results = decoded_lines(path, Problems(), _RESULTS, "")
    return any(result.response is not None and result.response.status_code == _OK for _, result in results)


def _beside(path: Path) -> list[_Beside]:
    """The batch files in the folder of a file, in the order of their names."""
    try:
        files = sorted(each for each in path.parent.iterdir() if each.suffix == ".jsonl" and each.is_file())
    except OSError:
        return []
    return [entry for each in files[:_MOST_BESIDE] if (entry := _entry(each)) is not None]


def _requests_with(name: str, beside: Sequence[_Beside]) -> Path | None:
    """The file of requests that has this id."""
    files = (each.path for each in beside if each.kind == "requests")
    return next((path for path in files if name in _names(path)), None)


def _name(text: bytes) -> str:
    return _IDS.decode(text).custom_id


def _names(requests: Path) -> set[str]:
    with LineIndex(requests, _name, _REQUESTS) as index:
        return set(index)


def _inputs(request: _Request | None) -> Columns:
    """The columns of a request: its question, media and messages."""
    if request is None:
        return {}
    body = request.body
    messages = body.get("messages", body.get("input"))
    if isinstance(messages, list):
        return conversation(messages)
    prompt = messages if isinstance(messages, str) else body.get("prompt")
    return {"question": prompt} if isinstance(prompt, str) else {}


def _failures(files: Sequence[Path]) -> dict[str, str]:
    """The messages of failed requests, by id."""
    return {
        result.custom_id: _failure(result)
        for path in files
        for _, result in decoded_lines(path, Problems(), _RESULTS, "a result of a batch")
    }


def _body(result: _Result) -> Mapping[str, Any]:
    body = None if result.response is None else result.response.body
    return body if isinstance(body, Mapping) else {}


def _failure(result: _Result) -> str:
    """Why a request has no answer."""
    status = None if result.response is None else result.response.status_code
    for error in (result.error, _body(result).get("error")):
        text = error.get("message") or error.get("code") if isinstance(error, Mapping) else error
        if isinstance(text, str) and text.strip():
            return text if status in (None, _OK) else f"status {status}: {text}"
    return NO_RESULT if status is None else f"status {status}"


def _records_of(result: _Result, inputs: Columns) -> Iterator[Columns]:
    """A record per reply: a request may ask for several."""
    body = _body(result)
    replies = _replies(body)
    if result.response is None or result.response.status_code != _OK or result.error:
        yield {"id": result.custom_id, "error": _failure(result), **inputs}
    elif not replies:
        yield {"id": result.custom_id, "error": f"the result has no answer: {shorten(dict(body))}", **inputs}
    else:
        shared = {**inputs, "model": body.get("model"), **_tokens(body.get("usage"))}
        for number, reply in enumerate(replies, 1):
            several = {"epoch": number, "group": result.custom_id} if len(replies) > 1 else {}
            name = f"{result.custom_id}#{number}" if several else result.custom_id
            yield {"id": name, **shared, **reply, **several}


def _replies(body: Mapping[str, Any]) -> list[Columns]:
    """The columns of the replies of chat completions, completions and responses."""
    choices = body.get("choices")
    if isinstance(choices, list):
        return [_reply(choice) for choice in choices if isinstance(choice, Mapping)]
    output = body.get("output")
    if not isinstance(output, list):
        return []
    items = [item for item in output if isinstance(item, Mapping)]
    texts = [text_of(item.get("content")) for item in items if item.get("type") == "message"]
    reasons = [text_of(item.get("summary")) for item in items if item.get("type") == "reasoning"]
    answer = "\n".join(text for text in texts if text)
    if not texts:
        return []
    return [{"generated_answer": answer, "reasoning": "\n".join(text for text in reasons if text) or None}]


def _reply(choice: Mapping[str, Any]) -> Columns:
    message = choice.get("message")
    finish = choice.get("finish_reason")
    columns: Columns = {"finish_reason": finish if isinstance(finish, str) else None}
    if not isinstance(message, Mapping):
        text = choice.get("text")
        return columns | ({"generated_answer": text} if isinstance(text, str) else _no_text(finish))
    content = message.get("content")
    text = text_of(content)
    reasoning = message.get("reasoning_content") or message.get("reasoning") or reasoning_of(content)
    columns |= {
        "reasoning": reasoning if isinstance(reasoning, str) else None,
        "logprobs": _logprobs(choice.get("logprobs")),
    }
    refusal = message.get("refusal")
    if text is None and isinstance(refusal, str) and refusal:
        return columns | {"generated_answer": refusal, "refusal": True}
    return columns | ({"generated_answer": text} if text is not None else _no_text(finish))


def _no_text(finish: object) -> Columns:
    reason = f" (finish_reason {shorten(finish)})" if isinstance(finish, str) else ""
    return {"error": f"the reply has no text{reason}"}


def _logprobs(value: object) -> list[float] | None:
    tokens = value.get("content") if isinstance(value, Mapping) else None
    if not isinstance(tokens, list) or not tokens:
        return None
    numbers = [token.get("logprob") if isinstance(token, Mapping) else None for token in tokens]
    valid = [
        float(number) for number in numbers if isinstance(number, int | float) and isfinite(number) and number <= 0
    ]
    return valid if len(valid) == len(numbers) else None


def _tokens(usage: object) -> Columns:
    if not isinstance(usage, Mapping):
        return {}
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    counts = {
        "input_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "output_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
        "reasoning_tokens": details.get("reasoning_tokens") if isinstance(details, Mapping) else None,
    }
    return {name: count for name, count in counts.items() if isinstance(count, int) and not isinstance(count, bool)}
