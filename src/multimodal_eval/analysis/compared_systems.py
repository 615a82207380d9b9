"""Which systems the samples of a comparison compare: by their metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = ["BASELINE", "ComparedSystems", "Lineup", "compared_systems", "lineup"]

BASELINE = "baseline"  # the name of the other system if the samples do not name it


class _Names(msgspec.Struct):
    system: object = None
    baseline_system: object = None
    sample: object = None


_DECODER = msgspec.json.Decoder(_Names)
_UNNAMED = _Names()


@dataclass(frozen=True, slots=True)
class ComparedSystems:
    """The system that gave the answer of a sample, the systems that it is compared with, and the sample's cluster."""

    system: str
    others: tuple[str, ...]
    cluster: str
    sample: str  # that the systems have answered; several comparisons may be about the same

    @property
    def all(self) -> tuple[str, ...]:
        """All systems of the comparison."""
        return (self.system, *self.others)


@dataclass(frozen=True, slots=True)
class Lineup:
    """The systems of all samples of a comparison, in the order in which they occur."""

    systems: tuple[str, ...]  # that gave the answers of the samples
    others: tuple[str, ...]  # that they are compared with

    @property
    def is_of_one_system(self) -> bool:
        """Whether the mean over the samples is the share of wins of one system, and not a mixture of several."""
        return len(self.systems) == 1

    @property
    def all(self) -> tuple[str, ...]:
        """All systems."""
        return tuple(dict.fromkeys((*self.systems, *self.others)))


def lineup(folder: RunFolder, parts: int) -> Lineup:
    """The systems that the samples of a run compare. Raises InputError as `compared_systems` does."""
    systems: dict[str, None] = {}
    others: dict[str, None] = {}
    for compared in compared_systems(folder, parts):
        systems[compared.system] = None
        others |= dict.fromkeys(compared.others)
    return Lineup(tuple(systems), tuple(others))


def compared_systems(folder: RunFolder, parts: int) -> Iterator[ComparedSystems]:
    """The systems of each sample, in the order of the run.

    A sample without names compares the run, under the name of its folder, with `BASELINE`. Raises InputError if a
    name is not a text, or a system is compared with itself.
    """
    for part in range(parts):
        table = folder.read_part("samples", part, ["id", "group", "metadata"])
        columns = (table.column(name).to_pylist() for name in ("id", "group", "metadata"))
        for sample, group, metadata in zip(*columns, strict=True):
            names = _UNNAMED if metadata is None else _DECODER.decode(metadata)
            yield _systems(sample, group, names, folder.name)


def _systems(sample: str, group: str | None, names: _Names, run: str) -> ComparedSystems:
    system = run if names.system is None else names.system
    others = BASELINE if names.baseline_system is None else names.baseline_system
    listed = others if isinstance(others, list) else [others]
    texts = [name for name in (system, *listed) if isinstance(name, str)]
    if len(texts) <= len(listed) or len(texts) < 2:
        raise _problem(sample, "`system` and `baseline_system` must be names of systems", [system, others])
    if len(set(texts)) < len(texts):
        raise _problem(sample, "a system is compared with itself", texts)
    original = names.sample if isinstance(names.sample, str) else sample
    return ComparedSystems(texts[0], tuple(texts[1:]), sample if group is None else group, original)


def _problem(sample: str, message: str, got: object) -> InputError:
    return InputError([Problem(code="SYSTEMS", message=f"{message}. Got {shorten(got)} instead.", id=sample)])
