"""Data of METEOR in home/, as `mmeval fetch` stores them: `fetched meteor-1.5-en`; the Russian ones by default."""

from __future__ import annotations

import os
from unittest.mock import patch

from tools.site.workspace import Workspace


def prepare(work: Workspace, *names: str) -> None:
    """Write them, and use the folder."""
    from tests.resource_folders import write_meteor

    home = work.folder / "home"
    write_meteor(home, names or ("meteor-1.5-ru",))
    work.stack.enter_context(patch.dict(os.environ, {"MMEVAL_HOME": str(home)}))
