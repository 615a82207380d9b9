"""Facts computed from Arrow columns in compiled code, without a `Sample` per row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import LintLexicon, lint_facts
from multimodal_eval.core.answers import answers_of
from multimodal_eval.core.batch import Batch
from multimodal_eval.lint.texts import LABELS, ends_closed, ends_open, has_rare_markup
from multimodal_eval.text.languages import known_words, script_number
from multimodal_eval.text.words import separated

# The columns that facts depend on; `answers_of` reads `error`.
_COLUMNS = (
    *("generated_answer", "references", "expected_answer", "caption", "question", "prompt", "group"),
    *("image", "image_bytes", "audio", "audio_bytes", "video", "video_bytes", "metadata", "choices"),
    *("images", "messages", "boxes", "epoch"),
)


_PAGE = 256  # characters
_WORD, _UNSPACED, _UNUSUAL, _SPACE, _FORMAT, _CLOSES, _OPENS, _MARKUP = (1 << bit for bit in range(8))
_LONGEST = 13  # bytes of a case-folded character


@cache
def _lexicon() -> LintLexicon:
    return LintLexicon(known_words(), [label.casefold() for label in LABELS])


def page_of_characters(number: int) -> bytes:
    """The properties of 256 characters in the layout of native/lint_characters.h.

    Compiled code asks for a page when it meets a character of it: both use the Unicode version of this Python.
    """
    return b"".join(_character(chr(code)) for code in range(number * _PAGE, (number + 1) * _PAGE))


def _character(character: str) -> bytes:
    if category(character) == "Cs":  # half of a surrogate pair is not stored
        return bytes([_UNUSUAL]).ljust(16, b"\0")
    text = separated(character)
    word = "".join(text.split())
    folded = word.encode()
    flags = {word: _WORD, f" {word} ": _UNSPACED}.get(text, _UNUSUAL) if word else 0
    if len(folded) > _LONGEST:
        flags, folded = _UNUSUAL, b""
    flags |= _SPACE * character.isspace() | _FORMAT * (category(character) == "Cf")
    flags |= _CLOSES * ends_closed(character) | _OPENS * ends_open(character) | _MARKUP * has_rare_markup(character)
    return bytes([flags, script_number(character), len(folded)]) + folded.ljust(_LONGEST, b"\0")


def fill_facts(facts: NDArray[np.void], batch: Batch, patterns: Sequence[str]) -> NDArray[np.int64]:
    """Write the facts of a batch with columns, and return the rows for which Python must compute them.

    Those are rows with several images, messages or boxes, and rows that may have a finding for which the references
    must be searched too.
    """
    failed = np.zeros(len(batch), np.uint8)
    failed[list(answers_of(batch, patterns).failed)] = 1
    columns = {name: column for name in _COLUMNS if (column := batch.column(name)) is not None}
    return lint_facts(_lexicon(), page_of_characters, columns, failed, facts.view(np.uint8))
