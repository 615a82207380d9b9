"""The commands of a page, for tests that look at more than their output. `tools.site` executes the pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tools.site.blocks import parse
from tools.site.execute import commands_of
from tools.site.shell import run as run_in_shell


def commands(page: str) -> Iterator[str]:
    """The arguments of every call of `mmeval`, in their order, also of those that are not run."""
    for block in parse(page).blocks:
        if block.kind in ("command", "console"):
            for command in commands_of(block):
                if command.startswith("mmeval "):
                    yield command.partition("#")[0].removeprefix("mmeval ").strip()


def run(arguments: str, folder: Path) -> str:
    """The output of a call, including error messages."""
    return run_in_shell(f"mmeval {arguments}", folder).output


def write_files(folder: Path, page: str) -> None:
    """Write each block that is a file."""
    for block in parse(page).blocks:
        if block.kind == "file":
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
