"""Facts computed from Arrow columns in compiled code, without a `Sample` per row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import LintLexicon, lint_facts
from multimodal_eval.core.answers import answers_of
from multimodal_eval.core.batch import Batch
from multimodal_eval.lint.texts import LABELS
from multimodal_eval.text.languages import known_words

# The columns that facts depend on; `answers_of` reads `error`.
_COLUMNS = (
    *("generated_answer", "references", "expected_answer", "caption", "question", "prompt", "group"),
    *("image", "image_bytes", "audio", "audio_bytes", "video", "video_bytes", "metadata", "choices"),
    *("images", "messages", "boxes", "epoch"),
)


@cache
def _lexicon() -> LintLexicon:
    words = {word: languages for word, languages in known_words().items() if word.isascii()}
    return LintLexicon(words, [label for label in LABELS if label.isascii()])


def fill_facts(facts: NDArray[np.void], batch: Batch, patterns: Sequence[str]) -> NDArray[np.int64]:
    """Write the facts of a batch with columns, and return the rows for which Python must compute them.

    Those are rows with texts that are not ASCII, with several images, messages or boxes, and rows that may have a
    finding for which the references must be searched too.
    """
    failed = np.zeros(len(batch), np.uint8)
    failed[list(answers_of(batch, patterns).failed)] = 1
    columns = {name: column for name in _COLUMNS if (column := batch.column(name)) is not None}
    return lint_facts(_lexicon(), columns, failed, facts.view(np.uint8))
