"""The protocol of a generator: one request in, one answer out.

A generator is any object with a `label` and an asynchronous `answer(request)`:

>>> from multimodal_eval.generate.protocol import Answer, Request
>>> class Shouting:
...     label = "shouting"
...     async def answer(self, request: Request) -> Answer:
...         return Answer(request.prompt.upper())

It raises `RetryableError` for a failure that is not the fault of the request (a time-out, a rate limit, a lost
connection), `RejectedError` for a request that the model does not accept (`FilteredError` if a content filter stops
it), and `EndpointError` if none can succeed. The engine limits how many calls run at once, retries, and stores what
comes back. Answers are cached only if the generator has `is_cacheable = True`: an answer then serves all equal requests
to the same label, in all later runs and processes. So the label must change with everything that changes an answer (the
version of the code, the weights), and answers may not depend on anything else, such as the id of the sample.

`Request.schema` and `Parameters.top_logprobs` are optional: a generator that does not support them answers without.
An answer is stored under the digest of the request, these fields included, however it was made; who reads it must not
rely on them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import msgspec

from multimodal_eval.core.config import Parameters
from multimodal_eval.core.errors import AskingError, MultimodalEvalError, RetryableError, shorten
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.visible import storable

__all__ = [
    "FAILURES",
    "Answer",
    "EndpointError",
    "Exchange",
    "FilteredError",
    "Finish",
    "Generator",
    "MalformedReplyError",
    "Media",
    "MediaKind",
    "Outcome",
    "OutcomeStatus",
    "RateLimitError",
    "RejectedError",
    "Request",
    "Role",
    "Text",
    "TokenProbability",
    "Turn",
    "UnreachableError",
    "apart",
    "failed",
    "outcome_of",
    "refused_request",
    "without_thinking",
]


Role = Literal["system", "user", "assistant"]
MediaKind = Literal["image", "audio", "video"]
Finish = Literal["stop", "length", "content_filter", "tool_calls", "refusal"]


class EndpointError(AskingError):
    """No request can succeed: a wrong address, key or model. The message says what to do."""


class RejectedError(MultimodalEvalError):
    """The model does not accept this request: too long, an image that it cannot read. Other requests may succeed."""


class FilteredError(RejectedError):
    """The endpoint's content filter stops this request. Its outcome is `filtered`, not `rejected`."""


class RateLimitError(RetryableError):
    """The endpoint asks for fewer requests; `retry_after` is the pause in seconds that it asks for, if any."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnreachableError(RetryableError):
    """No server answers at the address."""


class MalformedReplyError(RetryableError):
    """A reply that is not what the API promises; `excerpt` is its beginning. It is retried a few times."""

    def __init__(self, message: str, excerpt: str) -> None:
        super().__init__(f"{message} (it begins with {excerpt!r})" if excerpt else message)
        self.excerpt = excerpt


@dataclass(frozen=True, slots=True)
class Text:
    """Text in a turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """An image, audio or video in a turn: its content, or the URL from which the endpoint fetches it."""

    kind: MediaKind
    mime: str
    content: bytes | None = field(default=None, repr=False)
    url: str | None = None
    detail: str | None = None  # of an image: low, high or auto
    frames: tuple[bytes, ...] = field(default=(), repr=False)  # of a video: JPEG files
    sha256: str | None = field(default=None, repr=False, compare=False)  # of the content, if it is known

    @property
    def digest(self) -> str:
        """The SHA-256 of the content, or of the URL."""
        if self.sha256 is not None:
            return self.sha256
        if self.frames:
            return hashlib.sha256(b"".join(hashlib.sha256(frame).digest() for frame in self.frames)).hexdigest()
        return hashlib.sha256(self.content if self.content is not None else (self.url or "").encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side says before the other replies."""

    role: Role
    parts: tuple[Text | Media, ...]

    @property
    def text(self) -> str:
        """The text parts, one per line."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True)
class Request:
    """What a model is asked: the rendered turns and the parameters. `sample` is what they were rendered from."""

    id: str
    turns: tuple[Turn, ...]
    parameters: Parameters = field(default_factory=Parameters)
    epoch: int = 1
    sample: Sample | None = field(default=None, repr=False, compare=False)
    schema: JsonObject | None = None  # the JSON Schema that the answer should follow
    count: int = 1  # answers to this request, which are those of as many epochs; the parameters are those of the first

    def in_epoch(self, epoch: int) -> Request:
        """The request of the first epoch in another epoch."""
        first = (epoch - 1) // self.count * self.count + 1
        return replace(self, epoch=epoch, parameters=self.parameters.of_epoch(first))

    @property
    def alone(self) -> Request:
        """The request for the answer in this epoch only."""
        return replace(self, count=1, parameters=self.parameters.of_epoch((self.epoch - 1) % self.count + 1))

    @property
    def prompt(self) -> str:
        """The text of the last turn of the user."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), "")

    @property
    def system(self) -> str | None:
        """The text of the system turns; None if there are none."""
        texts = [turn.text for turn in self.turns if turn.role == "system"]
        return "\n".join(texts) if texts else None

    @property
    def media(self) -> list[Media]:
        """The media of all turns."""
        return [part for turn in self.turns for part in turn.parts if isinstance(part, Media)]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of everything that the model sees. The id of the sample and the address are not part of it."""
        return hashlib.sha256(msgspec.json.encode(self.description, order="deterministic")).hexdigest()

    @property
    def description(self) -> dict[str, Any]:
        """The request as a JSON object; media by their digests."""
        description = {
            "turns": [{"role": turn.role, "parts": [_described(part) for part in turn.parts]} for turn in self.turns],
            "parameters": msgspec.to_builtins(self.parameters),
        }
        more = {"schema": self.schema, "count": None if self.count == 1 else self.count}
        return {**description, **{name: value for name, value in more.items() if value is not None}}


def _described(part: Text | Media) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    described: dict[str, Any] = {"media": part.kind, "mime": part.mime, "sha256": part.digest}
    if part.url is not None:
        described["url"] = part.url
    if part.detail is not None:
        described["detail"] = part.detail
    return described


class TokenProbability(msgspec.Struct, frozen=True):
    """A token that could have been written, and the natural logarithm of its probability."""

    token: str
    logprob: float


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model replies. `reply` is the endpoint's reply as JSON text, with times and request ids."""

    text: str | None
    finish: Finish = "stop"
    reasoning: str | None = None  # kept apart from the answer
    refusal: str | None = None  # what the model says instead of an answer
    logprobs: list[float] | None = None  # the natural logarithms of the probabilities of the answer's tokens
    input_tokens: int | None = None
    output_tokens: int | None = None  # with those of the reasoning
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None  # of the input
    model: str | None = None  # as the endpoint names it
    reply: str | None = None
    # With `Parameters.top_logprobs`, for every token of the answer: its text, and the most likely tokens at its place.
    tokens: list[str] | None = None
    top_logprobs: list[list[TokenProbability]] | None = None


@runtime_checkable
class Generator(Protocol):
    """Answers requests."""

    label: str  # the model, its revision if known, and every setting of the generator that changes an answer

    async def answer(self, request: Request) -> Answer:
        """The answer to one request."""


# What becomes of an answer: text to score, or a status with a reason. A failure is never an answer.

OutcomeStatus = Literal[
    "ok",
    "refused",  # the model refuses to answer
    "filtered",  # by the endpoint's content filter
    "truncated",  # at the limit of tokens
    "empty",  # no text, or only white space
    "tool_call",  # a call of a tool instead of text
    "malformed",  # a reply that is not what the API promises
    "rejected",  # a request that the endpoint does not accept
    "unreadable",  # an image, audio or video that cannot be opened
    "blocked",  # a turn of a dialogue after a reply that failed
    "raised",  # the model is a function or a plug-in that raised an exception
    "unanswered",  # every attempt failed, and the user accepts that
]
FAILURES: tuple[OutcomeStatus, ...] = get_args(OutcomeStatus)[1:]
_LONGEST_EXCERPT = 200
_TEXTS = ("text", "reasoning", "refusal")


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result for one sample: the answer, and its status. The reason is None if the status is ok."""

    status: OutcomeStatus
    answer: Answer
    reason: str | None = None

    @property
    def text(self) -> str | None:
        """The text to score; None after a failure."""
        return self.answer.text if self.status == "ok" else None

    @property
    def error(self) -> str | None:
        """The failure as the `error` of a sample."""
        return None if self.status == "ok" else f"{self.status}: {self.reason}"


def outcome_of(answer: Answer, *, accept_truncated: bool = False) -> Outcome:
    """The outcome of an answer that has arrived. Its texts are what can be stored of them."""
    texts = {name: text for name in _TEXTS if (text := getattr(answer, name))}
    changed = {name: stored for name, text in texts.items() if (stored := storable(text)) != text}
    if changed:
        answer = msgspec.structs.replace(answer, **changed)
    if answer.finish == "refusal" or answer.refusal:
        return Outcome("refused", answer, f"the model refused: {_excerpt(answer.refusal or answer.text)}")
    if answer.finish == "content_filter":
        return Outcome("filtered", answer, "the endpoint's content filter stopped the answer")
    if answer.finish == "tool_calls":
        return Outcome("tool_call", answer, "the model called a tool instead of answering")
    if answer.finish == "length" and not (accept_truncated and (answer.text or "").strip()):
        tokens = f" after {answer.output_tokens:,} tokens" if answer.output_tokens else ""
        return Outcome("truncated", answer, f"the answer was cut off{tokens} at the limit of tokens")
    if not (answer.text or "").strip():
        thought = ", only reasoning" if answer.reasoning else ""
        return Outcome("empty", answer, f"the model answered without text{thought}")
    return Outcome("ok", answer)


def apart(text: str, start: str = "<think>", end: str = "</think>") -> tuple[str, str | None]:
    """The answer and the reasoning of a text that starts with `<think>…</think>`, or other marks.

    The templates of some models put the first mark into the prompt, so that the text has only the second one.
    Reasoning that is not closed was cut off: there is no answer.
    """
    stripped = text.lstrip()
    if not stripped.startswith(start):
        if end not in text or start in text:
            return text, None
        stripped = start + text
    thought, closed, answer = stripped.removeprefix(start).partition(end)
    return answer.lstrip() if closed else "", thought.strip() or None


def without_thinking(exchange: Exchange, start: str, end: str, *, accept_truncated: bool = False) -> Exchange:
    """The exchange with the thinking between two marks apart from the answer."""
    answer = exchange.outcome.answer
    text, thought = apart(answer.text or "", start, end)
    if text == (answer.text or ""):
        return exchange
    reasoning = "\n".join(filter(None, (answer.reasoning, thought))) or None
    cut = msgspec.structs.replace(answer, text=text, reasoning=reasoning)
    return msgspec.structs.replace(exchange, outcome=outcome_of(cut, accept_truncated=accept_truncated))


def failed(status: OutcomeStatus, reason: str) -> Outcome:
    """The outcome of a request without an answer."""
    return Outcome(status, Answer(None), reason)


def refused_request(rejection: RejectedError) -> Outcome:
    """The outcome of a request that the endpoint does not accept, or whose content it filters."""
    return failed("filtered" if isinstance(rejection, FilteredError) else "rejected", str(rejection))


def _excerpt(text: str | None) -> str:
    return shorten(text, _LONGEST_EXCERPT) if text else "no text"


# One exchange with a model: the outcome, and what differs from time to time.


class Exchange(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a request, how long it took, and after how many attempts."""

    outcome: Outcome
    digest: str  # of the request
    started: float = 0.0  # seconds since 1970
    latency: float = 0.0  # seconds of the last attempt
    attempts: int = 1
    is_cached: bool = False
    draw: int = 1  # 2 if the first answer to the request was a failure, and it was asked again
