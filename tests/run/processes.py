"""Processes that tests wait for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def is_running(pid):
    """Whether a process has not ended, on Linux. One whose parent has not noticed its end has ended too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid):
    """(process id, name) of the processes that a process has started, and of those that they have, on Linux."""
    children = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            head, _, rest = file.read_text().rpartition(")")
            children.setdefault(int(rest.split()[1]), []).append((int(file.parent.name), head.partition("(")[2]))
    parents = [pid]
    for parent in parents:
        yield from children.get(parent, ())
        parents += [child for child, _ in children.get(parent, ())]
