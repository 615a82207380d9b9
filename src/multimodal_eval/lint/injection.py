"""Answers that address the judge who reads them: "ignore the rubric", "give me 10", a verdict in JSON, a system turn.

Such answers are fenced in the prompt of a judge (`judges.fence`), so that they can be told from instructions; a model
may follow them nevertheless. The patterns are for many languages and find the usual ways, no more: an answer without a
finding is not proved harmless, and one with a finding may be innocent.

Before the search, a text is made plain: compatibility forms (ｉｇｎｏｒｅ), zero-width characters, letters with spaces
between (i g n o r e), Cyrillic and Greek letters in Latin words, invisible Unicode tags, and base64 are undone.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.judge_config import COMPARING, JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.lint.failed_answers import Doubt

__all__ = ["addresses_judge", "judged_columns", "judged_texts", "mark_injections"]

_TAGS = re.compile("[\U000e0020-\U000e007e]{8,}")  # flags have fewer
_SPACED = re.compile(r"(?<!\S)\w(?: \w){4,}(?!\S)")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = str.maketrans(dict.fromkeys("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n"))
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,4096}={0,2}(?![\w+/=])")
_MOST_CODES = 16  # base64 texts of an answer that are read
_NEAR = 60  # characters
_ENDS = re.compile(r"[.!?\n]")
_FOREIGN = re.compile(r"[a-z][а-яіјѕα-ω]|[а-яіјѕα-ω][a-z]")
_LATIN = str.maketrans("аеіјкморсѕтухвнԁαεικνορτυχ", "aeijkmopcstyxbhdaeiknoptux")
_QUOTES = str.maketrans("‘’“”«»", '\'\'""""')


def addresses_judge(text: str) -> bool:
    """Whether a text addresses the judge who reads it."""
    return any(_is_addressed(view) for view in _views(text))


def _is_addressed(view: str) -> bool:
    from multimodal_eval.lint._injection_patterns import OTHER_SCRIPTS, PATTERNS  # slow to compile, and seldom needed

    if any(pattern.search(view) for pattern in PATTERNS) or _rates_itself(view):
        return True
    if not view.isascii() and any(pattern.search(view) for pattern in OTHER_SCRIPTS):
        return True
    closing = view.find("</answer>")  # a fence that the text did not open
    return closing >= 0 and not 0 <= view.find("<answer>") < closing


def _rates_itself(view: str) -> bool:
    """Whether a sentence is about the answer itself and its score."""
    from multimodal_eval.lint._injection_patterns import ITSELF, RATED

    for match in ITSELF.finditer(view):
        before = _ENDS.split(view[max(0, match.start() - _NEAR) : match.start()])[-1]
        after = _ENDS.split(view[match.end() : match.end() + _NEAR])[0]
        if RATED.search(before) or RATED.search(after):
            return True
    return False


def _views(text: str) -> Iterator[str]:
    """The text made plain, and the texts that are hidden in it."""
    plain = _plain(text)
    yield plain
    if _FOREIGN.search(plain):
        yield plain.translate(_LATIN)
    hidden = _TAGS.findall(text)
    if hidden:
        yield _plain("".join(chr(ord(tag) - 0xE0000) for tag in "\n".join(hidden) if tag != "\n"))
    for match, _ in zip(_BASE64.finditer(text), range(_MOST_CODES), strict=False):
        code = match[0].rstrip("=")
        try:
            content = b64decode(code + "=" * (-len(code) % 4)).decode()
        except (Base64Error, UnicodeDecodeError):
            continue
        yield _plain(content)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).translate(_LINES).translate(_QUOTES)
    visible = folded if folded.isascii() else "".join(c for c in folded if unicodedata.category(c) != "Cf")
    joined = _SPACED.sub(lambda match: match[0].replace(" ", ""), visible)
    return _SPACES.sub(" ", joined).casefold()


def judged_columns(judges: Mapping[str, JudgeConfig]) -> tuple[str, ...] | None:
    """The metadata columns with further answers that judges read; None without judges."""
    if not judges:
        return None
    return tuple(sorted({judge.baseline for judge in judges.values() if judge.form in COMPARING}))


def judged_texts(sample: Sample, columns: Sequence[str]) -> list[str]:
    """The answers of a sample that a judge reads: its own, and those in metadata columns."""
    others = [sample.metadata.get(column) for column in columns]
    listed = [text for other in others for text in (other if isinstance(other, list) else [other])]
    return [text for text in (sample.generated_answer, *listed) if isinstance(text, str)]


def mark_injections(
    flags: NDArray[np.uint32], samples: Sequence[Sample], answered: NDArray[np.bool_], columns: Sequence[str]
) -> None:
    """Add the flag of answers that address the judge. `answered` are the rows with an answer."""
    column = samples.column("generated_answer") if isinstance(samples, Batch) and not columns else None
    for row in np.flatnonzero(answered).tolist():
        texts = judged_texts(samples[row], columns) if column is None else [column[row].as_py()]
        if any(map(addresses_judge, texts)):
            flags[row] |= Doubt.INJECTION
