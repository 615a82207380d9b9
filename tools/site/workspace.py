"""The folder in which a page runs: empty, with settings of its own, and what the page's setups put there."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from unittest.mock import patch

SHOWN = "/data"  # the folder's path in outputs
PACKAGES = "/venv/site-packages"  # that of installed packages
HIDDEN = ("CLIP_MODEL_ID", "COLUMNS", "FORCE_COLOR", "HF_ENDPOINT", "HF_HUB_CACHE", "LINES", "MMEVAL_CACHE", "NO_COLOR")


@dataclass
class Workspace:
    """Where the commands of a page run. `aliases`: a text of the page, and what is run instead."""

    folder: Path
    stack: ExitStack
    aliases: dict[str, str] = field(default_factory=dict)

    def meant(self, command: str) -> str:
        """A command of the page as it is run."""
        for shown, real in self.aliases.items():
            command = command.replace(shown, real)
        return command

    def shown(self, output: str) -> str:
        """An output as the page shows it."""
        for shown, real in reversed(self.aliases.items()):
            output = output.replace(real, shown)
        for real in _package_folders():
            output = _replaced(output, real, PACKAGES)
        return output.replace(str(self.folder), SHOWN)


@cache
def _package_folders() -> list[str]:
    """The folders of this package and of installed ones; a folder within another one comes first."""
    import multimodal_eval

    folders = {
        Path(multimodal_eval.__file__).parents[1],
        *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")),
    }
    return sorted((str(folder.resolve()) for folder in folders), key=len, reverse=True)


def _replaced(output: str, real: str, shown: str) -> str:
    """The output with another path; the borders of tables keep their columns."""

    def padded(match: re.Match[str]) -> str:
        blanks = len(match[2]) + len(real) - len(shown)
        return f"{shown}{match[1]}{' ' * blanks}│"

    output = re.sub(rf"{re.escape(real)}([^\s│]*)( *)│", padded, output)
    return output.replace(real, shown)


@contextmanager
def workspace(home: Path | None = None) -> Iterator[Workspace]:
    """An empty folder, the current one, with fresh caches. `home`: a folder with fetched models instead of none."""
    from tests.registry_state import restored_registries

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="page-"))).resolve()
        folder = scratch / "page"
        folder.mkdir()
        settings = {
            "MMEVAL_HOME": str(home or scratch / "home"),
            "MMEVAL_STATE": str(scratch / "state"),
            "HF_HOME": str(scratch / "huggingface"),
        }
        stack.enter_context(patch.dict(os.environ, settings))
        for name in HIDDEN:
            os.environ.pop(name, None)
        stack.enter_context(restored_registries())
        stack.enter_context(_own_modules(folder))
        stack.enter_context(chdir(folder))
        yield Workspace(folder, stack)


@contextmanager
def _own_modules(folder: Path) -> Iterator[None]:
    """Python files of the page can be imported, and are forgotten afterwards."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
