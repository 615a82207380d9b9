"""Which pages there are, and the models that some of them need."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def all_pages() -> list[Path]:
    """The pages with examples: README, CONTRIBUTING, SECURITY, and all of docs/ that is written by hand."""
    generated = {DOCS / f"{name}.md" for name in ("api", "commands", "codes")}  # the site has its own
    written = [path for path in sorted(DOCS.rglob("*.md")) if path not in generated]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *written]


def name_of(path: Path) -> str:
    """A page's path in the project."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


@contextmanager
def models_home(needs: list[str]) -> Iterator[Path | None]:
    """A folder with METEOR's data and the models, which are fetched once; None if the page needs none of them.

    The models are in $MMEVAL_TEST_WEIGHTS, or in `.weights` in the project.
    """
    if "weights" not in needs:
        yield None
        return
    from multimodal_eval.resources.catalogue import get_resource
    from multimodal_eval.resources.fetch import fetch
    from tests.resource_folders import WEIGHTS, joined, write_meteor

    weights = Path(os.environ.get("MMEVAL_TEST_WEIGHTS") or ROOT / ".weights").resolve()
    with patch.dict(os.environ, {"MMEVAL_HOME": str(weights)}):
        for name in WEIGHTS:
            fetch(get_resource(name))
    with tempfile.TemporaryDirectory() as scratch:
        meteor, home = Path(scratch, "meteor"), Path(scratch, "home")
        meteor.mkdir()
        home.mkdir()
        write_meteor(meteor)
        joined(home, meteor, weights)
        yield home
