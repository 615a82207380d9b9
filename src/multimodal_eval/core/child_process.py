"""What every child process needs: it is spawned without the user's script, and it ends with its parent."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread

from multimodal_eval.core.visible import protect_streams

__all__ = ["initialise_child", "main_hidden"]

_hiding = Lock()  # otherwise concurrent threads would save the hidden state as the original


def initialise_child(*, on_interrupt: signal.Handlers = signal.SIG_DFL) -> None:
    """Initialise a child process: it ends with its parent, prints nothing on Ctrl-C and no control characters."""
    signal.signal(signal.SIGINT, on_interrupt)
    protect_streams()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


@contextmanager
def main_hidden() -> Iterator[None]:
    """Hide the user's script, so that a new process does not run it again."""
    main = vars(sys.modules["__main__"])
    with _hiding:
        shown: dict[str, object] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
        main["__spec__"] = None
        main.pop("__file__", None)
        try:
            yield
        finally:
            main.update(shown)
