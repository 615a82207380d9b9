"""OpenAI's Responses API: the same models as chat completions, with other names for the same things.

It has no `seed` and no `stop`. Nothing is stored at the endpoint (`store: false`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, RetryableError
from multimodal_eval.generate.http import decoded, excerpt
from multimodal_eval.generate.protocol import Answer, Finish, MalformedReplyError, Media, RejectedError, Request, Turn
from multimodal_eval.generate.providers.endpoint_model import encoded
from multimodal_eval.generate.providers.openai_chat import ChatGenerator, alternatives_of, data_uri, named_schema

__all__ = ["ResponsesGenerator", "open_generator", "responses_body_of"]

_LOGPROBS = "message.output_text.logprobs"


def responses_body_of(request: Request, model: str) -> bytes:
    """The body of a request, in a fixed order of fields."""
    parameters = request.parameters
    body: dict[str, Any] = {
        "model": model,
        "input": [_message(turn) for turn in request.turns],
        "store": False,
        "max_output_tokens": parameters.max_tokens,
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        "reasoning": {"effort": parameters.reasoning_effort} if parameters.reasoning_effort else None,
        "include": [_LOGPROBS] if parameters.logprobs or parameters.top_logprobs is not None else None,
        "top_logprobs": parameters.top_logprobs,
        "text": request.schema and {"format": {"type": "json_schema", **named_schema(request.schema)}},
    }
    return encoded({name: value for name, value in body.items() if value is not None}, parameters.extra)


def _message(turn: Turn) -> dict[str, Any]:
    if not any(isinstance(part, Media) for part in turn.parts):
        return {"role": turn.role, "content": turn.text}
    if turn.role != "user":
        raise RejectedError(f"the Responses API takes media in a user's turn only, and this one is the {turn.role}'s")
    contents: list[dict[str, Any]] = []
    for part in turn.parts:
        if not isinstance(part, Media):
            if part.text:
                contents.append({"type": "input_text", "text": part.text})
        elif part.kind == "image":
            contents.append(_image(part))
        elif part.frames:
            contents.extend(_image(Media("image", "image/jpeg", frame, detail=part.detail)) for frame in part.frames)
        else:
            raise RejectedError(f"the Responses API takes no {part.kind}. Use openai: for audio, `frames: 8` for video")
    return {"role": turn.role, "content": contents}


def _image(part: Media) -> dict[str, Any]:
    url = data_uri(part) if part.content is not None else part.url
    return {"type": "input_image", "image_url": url, "detail": part.detail or "auto"}


class _Token(msgspec.Struct):
    logprob: float
    token: str = ""
    top_logprobs: Any = None


class _Content(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None
    logprobs: list[_Token] | None = None


class _Item(msgspec.Struct):
    type: str
    content: list[_Content] | None = None
    summary: list[_Content] | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Reply(msgspec.Struct):
    output: list[_Item]
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    model: str | None = None
    usage: _Usage | None = None


_DECODER = msgspec.json.Decoder(_Reply)
_FINISHES: dict[str | None, Finish] = {"max_output_tokens": "length", "content_filter": "content_filter"}


def responses_answer_from(content: bytes) -> Answer:
    """The answer in the body of a reply."""
    reply = decoded(content, _DECODER)
    why = reply.incomplete_details.reason if reply.incomplete_details else None
    if reply.status in ("failed", "cancelled") or (reply.status == "incomplete" and why not in _FINISHES):
        raise RetryableError(f"the endpoint gave up (status {reply.status!r}): {excerpt(content)}")
    if reply.status in ("queued", "in_progress"):
        raise MalformedReplyError(f"the reply is not complete: {reply.status}", excerpt(content))
    said = [part for item in reply.output if item.type == "message" for part in item.content or []]
    thought = [part for item in reply.output if item.type == "reasoning" for part in item.content or item.summary or []]
    text = "".join(part.text or "" for part in said if part.type == "output_text")
    finish = _FINISHES.get(why, "stop")
    if not text and any(item.type.endswith("_call") for item in reply.output):
        finish = "tool_calls"
    tokens = [token for part in said for token in part.logprobs or []]
    chosen, alternatives = alternatives_of([(token.token, token.top_logprobs) for token in tokens])
    usage = reply.usage or _Usage()
    return Answer(
        text,
        finish=finish,
        reasoning="\n".join(part.text or "" for part in thought) or None,
        refusal="".join(part.refusal or "" for part in said) or None,
        logprobs=[token.logprob for token in tokens] or None,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.output_tokens_details.reasoning_tokens if usage.output_tokens_details else None,
        cached_tokens=usage.input_tokens_details.cached_tokens if usage.input_tokens_details else None,
        model=reply.model,
        reply=content.decode("utf-8", "replace"),
        tokens=chosen,
        top_logprobs=alternatives,
    )


class ResponsesGenerator(ChatGenerator):
    """A model behind the Responses API."""

    path = "/responses"
    reserved = ("input", "model", "stream", "background")

    def __init__(self, provider: str, model: str, config: GenerationConfig) -> None:
        super().__init__(provider, model, config)
        for name, value in (("seed", config.parameters.seed), ("stop", config.parameters.stop or None)):
            if value is not None:
                raise ConfigError(f"the Responses API has no {name!r}. Use openai:{model}, or leave {name} out")

    def body_of(self, request: Request) -> bytes:
        """The body of a request to this endpoint."""
        return responses_body_of(request, self.model)

    def answer_from(self, content: bytes) -> Answer:
        """The answer in the body of a reply."""
        return responses_answer_from(content)


def open_generator(provider: str, model: str, config: GenerationConfig) -> ResponsesGenerator:
    """The generator of `openai-responses:NAME`."""
    return ResponsesGenerator(provider, model, config)
