"""What a command leaves behind: `<!-- setup: command score answers.jsonl --metrics bleu -o runs/first -->`.

It runs before the page, and must succeed. A first word `exit=1` names another exit status.
"""

from __future__ import annotations

from tools.site.shell import run
from tools.site.workspace import Workspace


def prepare(work: Workspace, *words: str) -> None:
    """Run `mmeval` with these words."""
    first, *others = words
    status, arguments = (int(first.removeprefix("exit=")), others) if first.startswith("exit=") else (0, list(words))
    command = f"mmeval {' '.join(arguments)}"
    done = run(work.meant(command), work.folder)
    if done.status != status:
        raise ValueError(f"`{command}` has exit status {done.status}, not {status}:\n{done.output}")
