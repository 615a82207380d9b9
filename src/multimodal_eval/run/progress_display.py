"""The progress that `evaluate` shows by default: one line on standard error, in a terminal or a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.progress_line import ProgressLine, can_redraw


@contextmanager
def shown(progress: Progress | bool | None) -> Iterator[Progress]:
    """The callback for a run: the given one, or a line if it is True, or in terminals and notebooks if it is None.

    The line is removed at the end.
    """
    if callable(progress):
        yield progress
    elif progress or (progress is None and sys.stderr is not None and can_redraw(sys.stderr)):
        with ProgressLine() as line:
            yield line
    else:
        yield silent
