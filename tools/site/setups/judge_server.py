"""The model server, whose judge prefers the first place in some pairs."""

from __future__ import annotations

from tests.judges.server import Leanings
from tools.site.setups import model_server
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Start the server."""
    model_server.prepare(work, Leanings(flips=0.3, seed=9))
