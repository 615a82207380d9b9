"""`mmeval` that kills itself and its workers just before a given change of a folder.

    python dying_run.py FOLDER LOG KILL_AT PART_SIZE score …

Every file that is opened for writing, renamed, linked or removed in FOLDER, and every folder made or removed there, is
a change. Each gets a line in LOG. Before change number KILL_AT (from 1) all processes get SIGKILL; 0 kills nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

WIDTH = 120  # bytes of a line: the number of a change is the size of the file
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")


def watch(folder: str, log: str, kill_at: int) -> None:
    """Count the changes of the folder in this process and its children."""
    lines = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            is_writing = (isinstance(mode, str) and mode.strip("rbtU") != "") or (
                mode is None and isinstance(flags, int) and flags & WRITING
            )
        else:
            is_writing = event in CHANGES
            path = arguments[0] if arguments else None
        if not is_writing or not isinstance(path, str | os.PathLike):
            return
        name = str(Path(os.fsdecode(path)).absolute())
        if not name.startswith(folder):
            return
        line = f"{event} {name[len(folder) :]}"[: WIDTH - 1].encode(errors="replace")[: WIDTH - 1]
        os.write(lines, line.ljust(WIDTH - 1) + b"\n")
        if os.fstat(lines).st_size // WIDTH == kill_at:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.parts import use_part_size

    use_part_size(int(sys.argv[4]))
    del sys.argv[1:5]
    from multimodal_eval.cli.main import main

    main()
