"""Whether fetched resources and models are as they were fetched. Every file is read; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Literal

from multimodal_eval.core.errors import FetchError, UnknownNameError
from multimodal_eval.resources.catalogue import CATALOGUE, GROUPS, File, Packaged, Resource
from multimodal_eval.resources.hub import MANIFEST, fetched_snapshots, find_snapshot, hub_model, recorded_files
from multimodal_eval.resources.store import folder_of

__all__ = ["State", "Verdict", "verified"]

State = Literal["intact", "damaged", "incomplete", "not fetched", "not fetched by mmeval"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a resource or model, and the argument of `mmeval fetch` that gets it again."""

    name: str
    state: State
    folder: Path | None = None
    reason: str = ""

    @property
    def is_fine(self) -> bool:
        """Whether nothing needs to be fetched."""
        return self.state in ("intact", "not fetched by mmeval")


def verified(names: Iterable[str] = ()) -> Iterator[Verdict]:
    """The state of the named resources and models; without names, of everything that was fetched."""
    chosen = list(names)
    if chosen:
        yield from map(_named, chosen)
        return
    for resource in CATALOGUE.values():
        if not isinstance(resource.source, Packaged) and folder_of(resource).is_dir():
            yield _of_resource(resource)
    for model, folder in fetched_snapshots():
        yield _of_snapshot(str(model), folder)


def _named(name: str) -> Verdict:
    if name in CATALOGUE:
        return _of_resource(CATALOGUE[name])
    model = hub_model(name)
    if model is None:
        raise UnknownNameError("resource", name, [*CATALOGUE, *GROUPS])
    snapshot = find_snapshot(model)
    return Verdict(str(model), "not fetched") if snapshot is None else _of_snapshot(str(model), snapshot.folder)


def _of_resource(resource: Resource) -> Verdict:
    folder = folder_of(resource)
    if not folder.is_dir():
        return Verdict(resource.name, "not fetched")
    derived = [file for file in resource.derived if (folder / file.name).exists()]
    return _of_files(resource.name, folder, [*resource.files, *derived])


def _of_snapshot(name: str, folder: Path) -> Verdict:
    if not (folder / MANIFEST).is_file():
        return Verdict(name, "not fetched by mmeval", folder, "there are no checksums to compare with")
    try:
        return _of_files(name, folder, recorded_files(folder))
    except FetchError as fault:
        return Verdict(name, "damaged", folder, str(fault))


def _of_files(name: str, folder: Path, files: Iterable[File]) -> Verdict:
    for file in files:
        path = folder / file.name
        if not path.is_file():
            return Verdict(name, "incomplete", folder, f"{file.name} is missing")
        size = path.stat().st_size
        if size != file.size:
            return Verdict(name, "incomplete", folder, f"{file.name} has {size:,} bytes instead of {file.size:,}")
        with path.open("rb") as stream:
            if file_digest(stream, "sha256").hexdigest() != file.sha256:
                return Verdict(name, "damaged", folder, f"the checksum of {file.name} differs")
    return Verdict(name, "intact", folder)
