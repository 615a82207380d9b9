"""Answers that are scored, but look like a failed generation or a refusal.

Clear failures are unscored (`core.failures`). The texts here can be correct answers ("none", "[]"), so lint only
reports them, and not if a reference of the sample looks the same. All patterns are matched at the start of an answer,
in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.arrow import bytes_of, offsets_of
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.failures import NEWEST, compiled_patterns, expanded, rows_that_start, starts_of
from multimodal_eval.core.linear_patterns import Matcher
from multimodal_eval.core.sample import Sample

_STATUS = "(?:Bad Gateway|Gateway Time-?out|Internal Server Error|Service Unavailable|Too Many Requests)"
_EMPTY = r"(?:\"\"|''|null|\{\s*\}|\[\s*\])"
_FAILED = "error|failed|failure|blocked|empty|filtered|no answer|no response|refused|timeout"  # in brackets
# An answer that consists of nothing else.
_WHOLE = (
    r"(?ai:none|null|nan|n/a|undefined|<na>|error|no answer|no response)\.?"
    rf"|(?:HTTP )?(?:[45]\d\d )?{_STATUS}\.?|HTTP [45]\d\d|{_EMPTY}|\{{\s*\"\w{{1,40}}\"\s*:\s*{_EMPTY}\s*\}}"
)
_FAILED_TO = "complete|decode|fetch|generate|get|load|obtain|open|parse|process|read|retrieve"
_SUSPECTED = (
    rf"\s*(?:(?:{_WHOLE})\s*\Z"
    rf"|[\[<](?ai:{_FAILED})[\]>]"
    r"|(?ai:error)\s?[:(]"
    r"|(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception)\s?[:(]"
    rf"|(?ai:(?:failed|unable) to (?:{_FAILED_TO}))\b)"
)
_SUSPECTED_STARTS = (
    *("none", "null", "nan", "n/a", "undefine", "<", "[", "{", '"', "'", "error", "failed t"),
    *("no answer", "no respo", "http", "bad gate", "gateway", "internal", "service ", "too many"),
    *(f"{status} " for status in range(400, 600)),
    "unable to",
)
_SUSPECTED_PARTS = (b"Error", b"Exception")  # in the middle of the name of an exception

_SORRY = r"(?:(?:i['’]?m|i am) (?:\w{1,12} )?(?:afraid|sorry)|(?:my )?apologies|i apologi[sz]e|sorry|unfortunately)"
_UNABLE = r"(?:i['’]?m|i am) (?:\w{1,12} )?(?:unable|not able) to\b"
_VERBS = (
    "access|analy[sz]e|answer|assist|comply|determine|display|fulfil|help|identify|interpret|open|process|provide|"
    "recogni[sz]e|see (?:(?:any|that|the|this) )?(?:image|photo|pic|video)|view"
)
_CANNOT = r"i (?:can(?:['’]?t|not| not)|won['’]?t|will not)\b"
_LACK = r"i (?:don['’]?t|do not) have (?:the )?(?:ability|access|capability)\b"
_MODEL = r"(?:an ai|a (?:large )?language model)\b"
_SELF = rf"(?:as|(?:i['’]?m|i am)(?: just| only)?) {_MODEL}"
_RUSSIAN = (
    r"(?:(?:[Ии]звините|[Пп]ростите|[Кк] сожалению)[,.]? (?:но )?)?"
    r"[Яя] не (?:могу|имею возможности|способен|способна) (?:\w{1,20} )?"
    r"(?:анализировать|видеть|выполнить|описать|определить|ответить|открыть|помочь|предоставить|просматривать|"
    r"просмотреть|распознать|увидеть)|[Кк]ак (?:большая )?(?:языковая модель|ИИ)\b|[Яя] (?:[-–—] ?)?языковая модель\b"
)
_SAYS = rf"(?:{_UNABLE}|{_CANNOT} (?:\w{{1,12}} ){{0,2}}(?:{_VERBS})|{_LACK}|{_SELF})"
_REFUSAL = (
    rf"\s*[\"'“*_]{{0,3}}(?ai:{_SORRY}[,.!:;]? (?:but |that |however,? )?(?:{_CANNOT}|{_SAYS})|{_SAYS})"
    rf"|\s*(?:{_RUSSIAN})"
)
_REFUSAL_STARTS = (
    *('"', "'", "“", "*", "_", "i'", "i’", "im ", "i am", "i can", "i won", "i will", "i do", "i apolog", "my apolo"),
    *("apologie", "sorry", "unfortun", "as an ai", "as a lang", "as a larg"),
    *("извин", "Извин", "прост", "Прост", "к сож", "К сож", "я ", "Я ", "как ", "Как "),
)
_STARTS = (*_SUSPECTED_STARTS, *_REFUSAL_STARTS, *(starts_of(expanded([NEWEST])) or ()))


@cache
def suspected() -> re.Pattern[str]:
    """The pattern of what looks like a failure. It is compiled, which takes 13 ms, when an answer has to be matched."""
    return re.compile(_SUSPECTED)


@cache
def refusal() -> re.Pattern[str]:
    """The pattern of refusals."""
    return re.compile(_REFUSAL)


class Doubt:
    """Flags of an answer, as bits next to those in `lint.facts.Flag`."""

    REFUSAL = 1 << 16
    SUSPECTED = 1 << 17
    INJECTION = 1 << 18  # see `lint.injection`


def mark_suspicious(flags: NDArray[np.uint32], samples: Sequence[Sample], answered: NDArray[np.bool_]) -> None:
    """Add the flags of suspicious answers. `answered` are the rows with an answer that is not an error message."""
    rows = np.flatnonzero(answered)
    if isinstance(samples, Batch) and samples.has_columns:
        may_match = np.zeros(len(flags), bool)
        may_match[_candidates(samples)] = True
        rows = _suspicious(samples, np.flatnonzero(answered & may_match))
        samples = samples.take(rows) if len(rows) else ()
    else:
        samples = [samples[row] for row in rows.tolist()]
    for row, sample in zip(rows.tolist(), samples, strict=True):
        flags[row] |= doubts_about(sample.generated_answer or "", sample.reference_texts)


def doubts_about(answer: str, references: Sequence[str]) -> int:
    """The flags of one answer."""
    doubts = 0
    patterns = ((Doubt.REFUSAL, refusal()), (Doubt.SUSPECTED, suspected()), (Doubt.SUSPECTED, _clear_failure()))
    for flag, pattern in patterns:
        if pattern.match(answer) and not any(map(pattern.match, references)):
            doubts |= flag
    return doubts


def _clear_failure() -> Matcher:
    """The default patterns of failures, for runs that do not use them."""
    return compiled_patterns(expanded([NEWEST]))[0]


def _suspicious(batch: Batch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of these whose answers match a pattern. Samples, which have the references, are created only of them."""
    answers = batch.column("generated_answer")
    if answers is None:
        return rows
    return np.array([row for row in rows.tolist() if doubts_about(answers[row].as_py() or "", ())], np.int64)


def _candidates(batch: Batch) -> NDArray[np.int64]:
    """The rows whose answers may match a pattern."""
    answers = batch.column("generated_answer")
    if answers is None:
        return np.empty(0, np.int64)
    offsets = offsets_of(answers)
    content = bytes_of(answers)[offsets[0] : offsets[-1]].tobytes()
    selected = [_rows_with(part, content, offsets) for part in _SUSPECTED_PARTS]
    return np.concatenate([rows_that_start(answers, _STARTS), *selected])


def _rows_with(part: bytes, content: bytes, offsets: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rows that contain a text; `content` is the text of all rows."""
    places: list[int] = []
    place = content.find(part)
    while place >= 0:
        places.append(place)
        place = content.find(part, place + len(part))
    rows: NDArray[np.int64] = np.searchsorted(offsets, np.array(places, np.int64) + offsets[0], side="right") - 1
    return rows
