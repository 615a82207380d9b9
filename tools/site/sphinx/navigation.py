"""The navigation of the API pages is the same on all of them; it is computed once."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

_trees: dict[tuple[tuple[str, Any], ...], str] = {}


def _share(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    if not page.startswith("api/") or "toctree" not in context:
        return
    compute = context["toctree"]

    def shared(**options: Any) -> str:
        key = tuple(sorted(options.items()))
        if key not in _trees:
            _trees[key] = str(compute(**options))
        return _trees[key]

    context["toctree"] = shared


def setup(app: Sphinx) -> dict[str, bool]:
    """Wrap the function before the theme calls it."""
    app.connect("html-page-context", _share, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
