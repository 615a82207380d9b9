"""What becomes of an answer: text to score, or a status with a reason. A failure is never an answer."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.visible import storable
from multimodal_eval.generate.protocol import Answer, FilteredError, RejectedError

__all__ = [
    "FAILURES",
    "Exchange",
    "Outcome",
    "OutcomeStatus",
    "apart",
    "failed",
    "outcome_of",
    "refused_request",
    "without_thinking",
]


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
