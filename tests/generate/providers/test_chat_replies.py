"""Replies of chat completions, in the shapes that the servers write."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import MultimodalEvalError, RetryableError
from multimodal_eval.generate.protocol import (
    Answer,
    MalformedReplyError,
    RateLimitError,
    RejectedError,
    apart,
    outcome_of,
)
from multimodal_eval.generate.providers.openai_chat import answer_from
from multimodal_eval.lint.facts import has_markup


def reply(finish: str | None = "stop", logprobs: Any = None, usage: Any = None, **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, "logprobs": logprobs}
    return json.dumps({"id": "x", "model": "m-1", "choices": [choice], "usage": usage}).encode()


def status(content: bytes) -> str:
    return outcome_of(answer_from(content)).status


def test_all_fields_of_an_answer():
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    content = reply(content=" A dog. ", usage=usage, refusal=None)
    assert answer_from(content) == Answer(
        " A dog. ",
        input_tokens=10,
        output_tokens=5,
        reasoning_tokens=3,
        cached_tokens=8,
        model="m-1",
        reply=content.decode(),
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (reply(content="yes"), "ok"),
        (reply(None, content="yes"), "ok"),
        (reply("eos", content="yes"), "ok"),
        (reply("length", content="yes and"), "truncated"),
        (reply("model_length", content="yes and"), "truncated"),
        (reply("content_filter", content=""), "filtered"),
        (reply("stop", content=None, refusal="I cannot help."), "refused"),
        (reply("stop", content="I cannot", refusal="I cannot help."), "refused"),
        (reply("tool_calls", content=None, tool_calls=[{"id": "1"}]), "tool_call"),
        (reply("stop", content=None, tool_calls=[{"id": "1"}]), "tool_call"),
        (reply("function_call", content=None, function_call={"name": "f"}), "tool_call"),
        (reply("stop", content="yes", tool_calls=[]), "ok"),
        (reply("stop", content="yes", function_call=None), "ok"),
        (reply("stop", content="  \n"), "empty"),
        (reply("stop", content=None), "empty"),
        (reply("stop"), "empty"),
    ],
)
def test_the_status_of_a_reply(content, expected):
    assert status(content) == expected


def test_an_error_beside_half_of_an_answer_is_an_error():
    half = json.loads(reply("stop", content="The dog is"))
    with pytest.raises(RetryableError, match="HTTP 200 with an error: the provider is gone"):
        answer_from(json.dumps({**half, "error": {"message": "the provider is gone", "code": 502}}).encode())
    assert status(json.dumps({**half, "error": None}).encode()) == "ok"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_apart(field):
    answer = answer_from(reply(content="red", **{field: "The car is red."}))
    assert (answer.text, answer.reasoning) == ("red", "The car is red.")


def test_content_in_parts():
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "red"}]
    answer = answer_from(reply(content=parts))
    assert (answer.text, answer.reasoning) == ("red", "Hm.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("red", ("red", None)),
        ("<think>It is red.</think>red", ("red", "It is red.")),
        ("\n<think>\nIt is red.\n</think>\n\nred\n", ("red\n", "It is red.")),
        ("<think></think>red", ("red", None)),
        ("It is red.\n</think>\n\nred", ("red", "It is red.")),  # the prompt ends with <think>
        ("<think>It is", ("", "It is")),  # cut off
        ("The tag is <think>…</think>.", ("The tag is <think>…</think>.", None)),
    ],
)
def test_think_tags_at_the_start(text, expected):
    assert apart(text) == expected


def test_logprobs():
    tokens = {"content": [{"token": "r", "logprob": -0.5, "bytes": None}, {"token": "ed", "logprob": -0.25}]}
    assert answer_from(reply(content="red", logprobs=tokens)).logprobs == [-0.5, -0.25]


def test_logprobs_are_those_of_the_answer_and_not_of_the_reasoning():
    texts = ["<think>", "hm", "</think>", "\n\n", "r", "ed"]
    tokens = {"content": [{"token": text, "logprob": -float(number)} for number, text in enumerate(texts)]}
    assert answer_from(reply(content="<think>hm</think>\n\nred", logprobs=tokens)).logprobs == [-4, -5]
    assert answer_from(reply(content="blue", reasoning="hm", logprobs=tokens)).logprobs is None


@pytest.mark.parametrize("odd", [{"content": None}, {"content": [{"token": "x", "logprob": None}]}, [1], "x", {}])
def test_odd_logprobs_and_usage_do_not_lose_the_answer(odd):
    answer = answer_from(reply(content="red", logprobs=odd, usage=odd))
    assert (answer.text, answer.logprobs, answer.input_tokens) == ("red", None, None)


def test_what_json_cannot_have_does_not_lose_the_answer():
    text = reply(content="CONTENT", usage={"x": "ODD", "y": 0}).replace(b"CONTENT", b"ye\\u0000s \\ud800")
    raw = text.replace(b"ODD", b"\\udc00").replace(b'"y": 0', b'"y": NaN')
    outcome = outcome_of(answer_from(raw))
    assert (outcome.status, outcome.text) == ("ok", "ye<0x00>s \ufffd")
    assert has_markup(outcome.text or "")  # so that `lint` names it


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        b'{"choices":[]}',
        b'{"choices":[{}]}',
        b"<html>",
        b"\xff",
        b"[" * 9999,
    ],
)
def test_anything_else_is_malformed(content):
    with pytest.raises(MalformedReplyError):
        answer_from(content)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow down", "code": 429}, RateLimitError),
        ({"message": "too long", "code": 400}, RejectedError),
        ({"message": "broken", "code": 502}, RetryableError),
        ("broken", RetryableError),
    ],
)
def test_an_error_with_status_200(error, kind):
    with pytest.raises(kind) as raised:
        answer_from(json.dumps({"error": error}).encode())
    assert type(raised.value) is kind


@pytest.mark.parametrize("finish", ["abort", "error"])
def test_a_server_that_gave_up_is_asked_again(finish):
    with pytest.raises(RetryableError, match="gave up"):
        answer_from(reply(finish, content="half of"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "usage", "logprobs", "error", "code", "tool_calls", "text"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()))
def test_a_reply_is_an_answer_or_one_of_our_errors(content):
    with suppress(MultimodalEvalError):
        assert isinstance(answer_from(content), Answer)
