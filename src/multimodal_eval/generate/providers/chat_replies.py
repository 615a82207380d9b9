"""Read the reply of OpenAI's chat completions, as the many servers that speak it write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from multimodal_eval.core.errors import RetryableError
from multimodal_eval.generate.content_filters import is_filtered
from multimodal_eval.generate.http import decoded, excerpt
from multimodal_eval.generate.protocol import (
    Answer,
    FilteredError,
    Finish,
    MalformedReplyError,
    RateLimitError,
    RejectedError,
    TokenProbability,
)

__all__ = ["alternatives_of", "answer_from", "apart"]

# `finish_reason` of the servers -> ours. A reason that is not here is an ordinary end.
FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "refusal": "refusal",
}
UNFINISHED = ("abort", "error")  # the server gave up


class _Part(msgspec.Struct):
    type: str = "text"
    text: str | None = None
    thinking: list[_Part] | str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None  # vLLM, SGLang, llama.cpp, DeepSeek
    reasoning: Any = None  # Ollama, OpenRouter, Groq
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


class _Reply(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None


class _Details(msgspec.Struct):
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None  # SGLang
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: Any = None


class _Logprobs(msgspec.Struct):
    content: list[_Token]


_T = TypeVar("_T")
_DECODER = msgspec.json.Decoder(_Reply)


def answer_from(content: bytes) -> Answer:
    """The answer in the body of a reply. Raises MalformedReplyError if there is none."""
    reply = decoded(content, _DECODER)
    if not reply.choices or reply.error:
        raise _failure(reply.error, content)
    choice = reply.choices[0]
    if choice.finish_reason in UNFINISHED:
        raise RetryableError(f"the server gave up (finish_reason {choice.finish_reason!r}): {excerpt(content)}")
    message = choice.message
    text, reasoning = _texts(message)
    usage = _converted(reply.usage, _Usage) or _Usage()
    tokens = _tokens(choice.logprobs, text, reasoning)
    chosen, alternatives = alternatives_of([(token.token, token.top_logprobs) for token in tokens or ()])
    finish = FINISHES.get(choice.finish_reason or "stop", "stop")
    if not text and (message.tool_calls or message.function_call):
        finish = "tool_calls"
    return Answer(
        text,
        finish=finish,
        reasoning=reasoning,
        refusal=message.refusal or None,
        logprobs=None if tokens is None else [token.logprob for token in tokens],
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        reasoning_tokens=_of(usage.completion_tokens_details, "reasoning_tokens", usage.reasoning_tokens),
        cached_tokens=_of(usage.prompt_tokens_details, "cached_tokens"),
        model=reply.model,
        reply=content.decode("utf-8", "replace"),
        tokens=chosen,
        top_logprobs=alternatives,
    )


def _failure(error: Any, content: bytes) -> Exception:
    """An error with status 200, which some proxies send."""
    words = excerpt(content)
    if not error:
        return MalformedReplyError("the reply has no choices", words)
    code = error.get("code") if isinstance(error, dict) else None
    if code == 429:
        return RateLimitError(words)
    if is_filtered(content, by_words=code == 403):
        return FilteredError(f"HTTP 200 with an error: {words}")
    if isinstance(code, int) and 400 <= code < 500:
        return RejectedError(f"HTTP 200 with error {code}: {words}")
    return RetryableError(f"HTTP 200 with an error: {words}")


def _texts(message: _Message) -> tuple[str | None, str | None]:
    """The answer, and the reasoning apart from it."""
    reasoning = next((text for text in (message.reasoning_content, message.reasoning) if _is_text(text)), None)
    if isinstance(message.content, list):
        thoughts = [_joined(part.thinking) for part in message.content if part.thinking]
        reasoning = reasoning or "".join(thoughts) or None
        return "".join(part.text or "" for part in message.content if part.type == "text"), reasoning
    if reasoning is None and message.content:
        return apart(message.content)
    return message.content, reasoning


def _joined(thinking: list[_Part] | str | None) -> str:
    return "".join(part.text or "" for part in thinking) if isinstance(thinking, list) else thinking or ""


def apart(text: str) -> tuple[str, str | None]:
    """The answer and the reasoning of a text that starts with `<think>…</think>`.

    The templates of some models put `<think>` into the prompt, so that the text has only the closing tag. Reasoning
    that is not closed was cut off: there is no answer.
    """
    start = text.lstrip()
    if not start.startswith("<think>"):
        if "</think>" not in text or "<think>" in text:
            return text, None
        start = "<think>" + text
    thought, closed, answer = start.removeprefix("<think>").partition("</think>")
    return answer.lstrip() if closed else "", thought.strip() or None


def alternatives_of(
    tokens: Sequence[tuple[str, Any]],
) -> tuple[list[str] | None, list[list[TokenProbability]] | None]:
    """The tokens of an answer, and the most likely ones at each place; None if the reply does not have them."""
    if not any(top for _, top in tokens):
        return None, None
    alternatives = [_converted(top, list[TokenProbability]) for _, top in tokens]
    if any(top is None for top in alternatives):
        return None, None
    return [token for token, _ in tokens], [top for top in alternatives if top is not None]


def _tokens(value: Any, text: str | None, reasoning: str | None) -> list[_Token] | None:
    """The answer's tokens; None if they cannot be told from those of the reasoning."""
    record = _converted(value, _Logprobs)
    if record is None or not record.content:
        return None
    tokens = record.content
    if reasoning is None:
        return tokens
    wanted, tail = (text or "").strip(), ""
    for place in range(len(tokens) - 1, -1, -1):
        tail = tokens[place].token + tail
        if tail.strip() == wanted and wanted:
            return tokens[place:]
        if len(tail) > len(wanted) + 200:
            return None
    return None


def _converted(value: Any, record: type[_T]) -> _T | None:
    """A part of a reply that an answer does not depend on; None if it has another shape."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, record)
    except msgspec.ValidationError:
        return None


def _of(details: _Details | None, name: str, other: int | None = None) -> int | None:
    value: int | None = getattr(details, name, None)
    return other if value is None else value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
