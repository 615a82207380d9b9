"""The navigation of generated pages, which takes half of the time of Sphinx, is computed once per folder.

It is the same on all pages of a folder, but for the entry of the page itself, if it has one.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from sphinx.application import Sphinx

FOLDERS = ("api", "benchmarks", "commands", "metrics")
_CURRENT = ' current"><a class="current reference internal" href="#">'
_trees: dict[tuple[object, ...], tuple[str, str]] = {}  # the page of a tree, and the tree


def _share(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    path = PurePosixPath(page)
    if str(path.parent) not in FOLDERS or "toctree" not in context:
        return
    compute = context["toctree"]

    def shared(**options: Any) -> str:
        key = (path.parent, *sorted(options.items()))
        if key not in _trees:
            _trees[key] = path.name, str(compute(**options))
        first, tree = _trees[key]
        return tree.replace(_CURRENT, _entry(first)).replace(_entry(path.name), _CURRENT)

    context["toctree"] = shared


def _entry(name: str) -> str:
    """The entry of another page of the folder."""
    return f'"><a class="reference internal" href="{name}.html">'


def setup(app: Sphinx) -> dict[str, bool]:
    """Wrap the function before the theme calls it."""
    app.connect("html-page-context", _share, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
