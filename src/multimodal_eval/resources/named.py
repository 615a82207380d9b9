"""Whatever `mmeval fetch` takes: a resource of the catalogue, or a model of the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.resources.catalogue import CATALOGUE
from multimodal_eval.resources.fetch import Progress, fetch
from multimodal_eval.resources.hub import HubModel, fetch_from_hub, find_snapshot, hub_model, verify_snapshot
from multimodal_eval.resources.store import is_here, verify


def fetch_named(name: str, progress: Progress = lambda name, done, total: None) -> tuple[str, bool, Path]:
    """Fetch it: what it is, whether it was here already, and where it lies."""
    if name in CATALOGUE:
        resource = CATALOGUE[name]
        already = is_here(resource)
        return f"{resource.name} ({resource.licence})", already, fetch(resource, progress)
    model = _hub_model(name)
    here = find_snapshot(model)
    if here is not None and model.is_pinned:
        return str(model), True, here.folder
    fetched = fetch_from_hub(model, progress)  # a branch may have moved on
    return f"{model} at {fetched.commit[:8]}", here is not None and here.folder == fetched.folder, fetched.folder


def verify_named(name: str) -> None:
    """Take the checksums again of what is here."""
    if name in CATALOGUE:
        verify(CATALOGUE[name])
        return
    snapshot = find_snapshot(_hub_model(name))
    if snapshot is not None:
        verify_snapshot(snapshot)


def _hub_model(name: str) -> HubModel:
    model = hub_model(name)
    if model is None:
        raise UnknownNameError("resource", name, CATALOGUE)
    return model
