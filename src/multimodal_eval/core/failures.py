"""Patterns of answers that are failures of the generator, not answers. They are matched at the start of an answer.

A set of patterns has a name with a version, which is part of every signature. A change of the patterns is a new
version, and the earlier ones stay, so that old runs can be resumed and scored again as they were. `default` is the
newest set.

The patterns are conservative: each matches a text that a harness, a client library or a server writes, and that nobody
writes as a caption or an answer. Answers that only look like failures are scored, and lint reports them
(`lint.failed_answers`). All patterns match in linear time.

`answers_of` finds the failed and the blank answers of a batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.linear_patterns import Matcher, linear_pattern

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_NAMED = re.compile(r"default(?:@\d+)?")


class Pattern(msgspec.Struct, frozen=True):
    """A regular expression, and the texts with which a match starts after white space (lower case; 8 bytes count)."""

    regex: str
    starts: tuple[str, ...]


# Modules of clients and libraries whose exceptions end up as answers: "openai.BadRequestError: …".
_MODULES = (
    *("openai", "anthropic", "google", "mistralai", "cohere", "together", "replicate", "litellm", "dashscope"),
    *("zhipuai", "huggingface_hub", "gradio_client", "transformers", "torch", "vllm", "botocore", "grpc"),
    *("httpx", "httpcore", "requests", "urllib3", "urllib", "aiohttp", "http", "socket", "ssl", "asyncio", "json"),
)
# Exceptions of the same libraries, written without their module: "RateLimitError: …".
_EXCEPTIONS = (
    *("APIConnectionError", "APIError", "APIStatusError", "APITimeoutError", "AuthenticationError", "BadRequestError"),
    *("ClientError", "ConnectTimeout", "ConnectionError", "ConnectionResetError", "ContentPolicyViolationError"),
    *("ContextWindowExceededError", "DeadlineExceeded", "HTTPError", "HTTPStatusError", "InternalServerError"),
    *("InvalidRequestError", "JSONDecodeError", "MaxRetryError", "OutOfMemoryError", "OverloadedError"),
    *("PermissionDeniedError", "RateLimitError", "ReadTimeout", "ReadTimeoutError", "RemoteProtocolError"),
    *("ResourceExhausted", "SSLError", "ServiceUnavailable", "ServiceUnavailableError", "TimeoutError"),
    *("UnprocessableEntityError",),
)
_ERROR = "(?ai:(?:api |http |openai |request |server )?error(?: code)?|status code)"
_STATUS = r"(?:4(?!04)\d\d|5\d\d)(?!\d)"  # "Error: 404" can be the text on a screenshot
# Sentences of servers and clients, without their end.
_SENTENCES = (
    "Failed to obtain answer",  # VLMEvalKit
    "Rate limit reached for ",
    "Rate limit exceeded",
    "You exceeded your current quota",
    "This model's maximum context length is ",
    "The response was filtered due to the prompt triggering ",
    "The server had an error while processing your request",
    "That model is currently overloaded",
    "Your input image may contain content that is not allowed by our safety system",
    "upstream connect error or disconnect/reset before headers",
)
_VERSION_1 = (Pattern(r"\s*\[ERROR\]", ("[error]",)),)
_VERSION_2 = (
    *_VERSION_1,
    Pattern(r"\s*Traceback \(most recent call last\)", ("traceback",)),
    Pattern(
        rf"\s*(?:{'|'.join(_MODULES)})\.(?:\w{{1,60}}\.){{0,6}}\w{{0,60}}(?:Error|Exception|Timeout|Exceeded|Exhausted)\b",
        tuple(f"{module}." for module in _MODULES),
    ),
    Pattern(rf"\s*(?:{'|'.join(_EXCEPTIONS)})\s?[:(]", tuple(name.lower() for name in _EXCEPTIONS)),
    Pattern(r"\s*(?:RuntimeError: )?CUDA (?:out of memory|error:)", ("cuda out", "cuda err", "runtimeerror")),
    Pattern(
        rf"\s*{_ERROR}\s?[:-]\s?(?:HTTP )?{_STATUS}",
        ("api erro", "http err", "openai e", "request ", "server e", "error", "status c"),
    ),
    Pattern(r"\s*(?:Error code: [45]\d\d - |HTTP Error [45]\d\d: )", ("error co", "http err")),
    Pattern(r"\s*[45]\d\d (?:Client|Server) Error: ", tuple(f"{status} " for status in range(400, 600))),
    Pattern(
        r"\s*(?ai:error:\s?(?:the )?(?:api|connection|cuda|model|rate limit|request|server|timeout|timed out)\b)",
        ("error:",),
    ),
    Pattern(
        r"\s*\{\s*['\"](?:error['\"]\s*:\s*[{'\"]|(?:object|type)['\"]\s*:\s*['\"]error['\"])",
        ("{",),
    ),
    Pattern(r"\s*(?:Request timed out|Connection error)\.\s*\Z", ("request ", "connecti")),
    *(Pattern(rf"\s*{re.escape(sentence)}", (sentence.lower(),)) for sentence in _SENTENCES),
)
NEWEST = "default@2"
FIRST = "default@1"  # of runs that do not say which patterns they used
SETS: dict[str, tuple[Pattern, ...]] = {FIRST: _VERSION_1, NEWEST: _VERSION_2}
_STARTS = {pattern.regex: pattern.starts for patterns in SETS.values() for pattern in patterns}


def with_versions(patterns: Sequence[str] | None) -> list[str]:
    """The patterns of a configuration, with the version of the default ones; None means the default ones."""
    return [NEWEST] if patterns is None else [NEWEST if pattern == "default" else pattern for pattern in patterns]


def expanded(patterns: Sequence[str] | None) -> tuple[str, ...]:
    """The regular expressions; names of sets, such as `default`, are replaced by their patterns."""
    expressions: list[str] = []
    for pattern in with_versions(patterns):
        if not _NAMED.fullmatch(pattern):
            expressions.append(pattern)
        elif pattern in SETS:
            expressions += (each.regex for each in SETS[pattern])
        else:
            known = ", ".join(["default", *SETS])
            raise ConfigError(f"`error_patterns`: no set of patterns is named {pattern!r}. Known: {known}")
    return tuple(dict.fromkeys(expressions))


def label(patterns: Sequence[str] | None) -> str | None:
    """The patterns in a signature: `default@2`. None for the first version, which signatures did not name."""
    if expanded(patterns) == expanded([FIRST]):
        return None
    return ",".join(with_versions(patterns)) or "none"


def starts_of(patterns: Iterable[str]) -> tuple[str, ...] | None:
    """The texts with which matches start, for `rows_that_start`; None if a pattern can match anything."""
    starts: list[str] = []
    for pattern in patterns:
        if pattern not in _STARTS:
            return None
        starts += _STARTS[pattern]
    return tuple(starts)


def refuse_patterns(patterns: Sequence[str]) -> None:
    """Refuse what is not a pattern. Those of the sets are compiled only when an answer has to be matched."""
    for pattern in patterns:
        if pattern not in _STARTS:
            linear_pattern(pattern)


@lru_cache(maxsize=16)
def compiled_patterns(patterns: tuple[str, ...]) -> tuple[Matcher, ...]:
    """The patterns, compiled once; those of the sets as one expression. The others match in linear time too."""
    known = [f"(?:{pattern})" for pattern in patterns if pattern in _STARTS]
    others = (linear_pattern(pattern) for pattern in patterns if pattern not in _STARTS)
    return (*([re.compile("|".join(known))] if known else []), *others)


# The answers of a batch: which rows failed to generate, and which answers are blank.

ERROR_PATTERNS = expanded(None)  # the default
# Whether an answer with this first byte may be blank: ASCII white space, or the first byte of other white space.
_MAY_BE_BLANK = bytes(byte in {*range(9, 14), *range(28, 33), 0xC2, 0xE1, 0xE2, 0xE3} for byte in range(256))


class Answers(msgspec.Struct, frozen=True):
    """Rows whose generator failed, with the reason, and rows with a blank answer."""

    failed: dict[int, str]
    blank: frozenset[int]


def is_error_message(answer: str, patterns: Sequence[Matcher]) -> bool:
    """Whether an answer is a generator's error message."""
    for pattern in patterns:  # noqa: SIM110 - `any` with a generator takes twice as long
        if pattern.match(answer):
            return True
    return False


def answers_of(batch: Batch, error_patterns: Sequence[str]) -> Answers:
    """The failed and blank rows of a batch, computed once for all metrics."""
    patterns = tuple(error_patterns)
    return batch.shared(("answers", patterns), lambda: _answers(batch, patterns))


def _answers(batch: Batch, patterns: tuple[str, ...]) -> Answers:
    rows = _rows(batch, patterns) if batch.has_columns else range(len(batch))
    compiled = compiled_patterns(patterns) if len(rows) else ()
    failed: dict[int, str] = {}
    blank: set[int] = set()
    for row, error, answer in _texts(batch, rows):
        if error:
            failed[row] = f"the generator failed: {shorten(error)}"
        elif answer is not None and is_error_message(answer, compiled):
            failed[row] = f"the answer is a generator's error message: {shorten(answer)}"
        if answer is not None and not answer.strip():
            blank.add(row)
    return Answers(failed, frozenset(blank))


def _texts(batch: Batch, rows: Sequence[int]) -> Any:
    """(row, error, answer) of these rows."""
    if not batch.has_columns:
        return ((row, batch[row].error, batch[row].generated_answer) for row in rows)
    listed: list[list[str | None]] = []
    for column in (batch.column("error"), batch.column("generated_answer")):
        if column is None:
            listed.append([None] * len(rows))
        else:
            listed.append(column.to_pylist() if len(rows) == len(batch) else [column[row].as_py() for row in rows])
    return zip(rows, *listed, strict=True)


def _rows(batch: Batch, patterns: tuple[str, ...]) -> Sequence[int]:
    """The rows that may have failed or be blank; most batches have none."""
    import numpy as np

    from multimodal_eval.core.arrow import offsets_of

    candidates: list[NDArray[np.int64]] = []
    errors, answers = batch.column("error"), batch.column("generated_answer")
    if errors is not None:
        candidates.append(np.flatnonzero(np.diff(offsets_of(errors)) > 0))
    if answers is not None:
        starts = starts_of(patterns)
        if starts is None:
            return range(len(batch))
        candidates.append(rows_that_start(answers, starts))
    return sorted(set(np.concatenate(candidates).tolist())) if candidates else ()


_BYTES = 8  # of a start that are compared
_LOWERED = bytes(byte | 0x20 for byte in range(256))


def rows_that_start(column: pa.Array, starts: tuple[str, ...]) -> NDArray[np.int64]:
    """The rows of a string column that may start with one of the texts, in any case, or with white space, or are empty.

    The first bytes of all rows are compared at once. Some rows are selected in addition.
    """
    import numpy as np

    from multimodal_eval.core.arrow import bytes_of, offsets_of

    offsets, data = offsets_of(column).astype(np.int64), bytes_of(column)
    lengths = np.diff(offsets)
    if not len(data):
        return np.arange(len(lengths))
    places = offsets[:-1, None] + np.arange(_BYTES)
    heads = np.where(places < offsets[1:, None], data[np.minimum(places, len(data) - 1)], 0)
    is_blank = (lengths == 0) | np.frombuffer(_MAY_BE_BLANK, np.bool_)[heads[:, 0]]
    words = (heads.astype(np.uint8) | 0x20).view(">u8")[:, 0].astype(np.uint64)
    lowest, highest = _ranges(starts)
    place = np.searchsorted(lowest, words, side="right") - 1
    return np.flatnonzero(is_blank | (words <= highest[place]))


@lru_cache(maxsize=16)
def _ranges(starts: tuple[str, ...]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The lowest and the highest first bytes, as numbers, of texts with each start; the ranges do not overlap."""
    import numpy as np

    heads = sorted({start.encode()[:_BYTES].translate(_LOWERED) for start in starts})
    kept: list[bytes] = []
    for head in heads:  # a longer text follows the start that it begins with
        if not kept or not head.startswith(kept[-1]):
            kept.append(head)
    lowest = [int.from_bytes(head.ljust(_BYTES, b"\0")) for head in kept]
    highest = [int.from_bytes(head.ljust(_BYTES, b"\xff")) for head in kept]
    return np.array([0, *lowest], np.uint64), np.array([0, *highest], np.uint64)  # no text has the first range
