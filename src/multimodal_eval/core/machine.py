"""The machine: the cores that this process may use, the installed packages, and child processes."""

from __future__ import annotations

import gc
import os
import platform
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock, Thread

from multimodal_eval.core.visible import protect_streams


def cores() -> int:
    """The number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def operating_system() -> str:
    """The same as `platform.platform()`, which on Linux starts a process, only to name the processor again."""
    if sys.platform != "linux" or not hasattr(os, "uname"):
        return platform.platform()
    name = os.uname()
    return "-".join(filter(None, [name.sysname, name.release, name.machine, "with", "".join(platform.libc_ver())]))


@cache
def package_version(name: str) -> str:
    """The version of an installed package: the same as `importlib.metadata.version`, which takes longer to import."""
    folder = _installed(tuple(sys.path)).get(_normalised(name))
    if folder is not None:
        # Line by line: a licence of thousands of lines may follow.
        with suppress(OSError, UnicodeDecodeError), (folder / "METADATA").open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("Version:"):
                    return line.removeprefix("Version:").strip()
    from importlib.metadata import version

    return version(name)


@cache
def _installed(places: tuple[str, ...]) -> dict[str, Path]:
    """The folders with the metadata of installed packages, by normalised name. The first one on the path counts."""
    folders: dict[str, Path] = {}
    for place in places:
        with suppress(OSError):  # missing, or an archive
            for entry in os.scandir(place or "."):
                if entry.name.endswith(".dist-info"):
                    folders.setdefault(_normalised(entry.name.partition("-")[0]), Path(entry.path))
    return folders


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


# What every child process needs: it is spawned without the user's script, and it ends with its parent.

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
def without_collection() -> Iterator[None]:
    """Search for no cycles: many small objects that stay in use would be searched again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
