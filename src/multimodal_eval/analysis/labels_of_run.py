"""Which labels of a file are about the answers of a run. One file may have the labels of several runs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from multimodal_eval.analysis.compared_systems import ComparedSystems, compared_systems
from multimodal_eval.core.errors import ConfigError, UnknownNameError, shorten
from multimodal_eval.core.judge_config import COMPARING
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.labels.human import MIRRORED, HumanLabel
from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = ["labels_of_run", "refuse_foreign_labels"]


def labels_of_run(labels: Sequence[HumanLabel], folder: RunFolder, info: RunInfo) -> list[HumanLabel]:
    """The labels of the run's answers; those of other runs are left out.

    A comparison of two runs is a label for a run in which a judge compares the same two: of the sample that compares
    their answers, and mirrored if that sees them from the other side.
    """
    comparisons = _Comparisons(folder, info)
    kept: list[HumanLabel] = []
    for label in labels:
        if label.baseline is None:
            kept += [label] if label.run is None or _is_same(label.run, folder.address) else []
        elif comparisons.exist:
            kept += comparisons.translated(label)
    return kept


def refuse_foreign_labels(labels: Sequence[HumanLabel], folders: Sequence[RunFolder], file: str) -> None:
    """Refuse labels that do not say of which of several runs they are, and files with labels of other runs alone."""
    names = [folder.name for folder in folders]
    matched = False
    for label in labels:
        if label.baseline is not None:
            matched = True  # of which systems it is, only a run of comparisons can tell
        elif label.run is None:
            if len(folders) > 1:
                raise ConfigError(
                    f"{file}:{label.line}: the label does not say whose answer it is of. With several runs, every "
                    f"label needs the column `run`: {' or '.join(names)}"
                )
            matched = True
        else:
            count = sum(_is_same(label.run, folder.address) for folder in folders)
            if count > 1:
                raise ConfigError(f"{file}:{label.line}: {count} runs of this command are named {shorten(label.run)}")
            matched |= count == 1
    if not matched:
        raise UnknownNameError(f"run of this command ({file}:{labels[0].line})", str(labels[0].run), names)


class _Comparisons:
    """The comparisons in a run, by the sample and the two systems."""

    def __init__(self, folder: RunFolder, info: RunInfo) -> None:
        self._folder, self._parts = folder, len(info.parts)
        self.exist = any(judge.form in COMPARING for judge in info.config.judges.values())
        self._known: dict[str, list[tuple[str, ComparedSystems]]] | None = None  # the original sample -> comparisons
        self._systems: set[tuple[str, str]] = set()

    def _by_sample(self) -> dict[str, list[tuple[str, ComparedSystems]]]:
        if self._known is None:
            self._known = {}
            ids: list[str] = []
            for part in range(self._parts):
                ids += self._folder.read_part("samples", part, ["id"]).column("id").to_pylist()
            for identifier, compared in zip(ids, compared_systems(self._folder, self._parts), strict=True):
                if len(compared.others) == 1:
                    self._known.setdefault(compared.sample, []).append((identifier, compared))
                    self._systems.add((compared.system, compared.others[0]))
        return self._known

    def translated(self, label: HumanLabel) -> list[HumanLabel]:
        """The label as one of a sample of this run; none if the run compares other systems."""
        assert label.run is not None or label.baseline is not None
        system, other = label.run or "", label.baseline or ""
        for identifier, compared in self._by_sample().get(label.id, ()):
            if _is_same(system, compared.system) and _is_same(other, compared.others[0]):
                return [replace(label, id=identifier, run=None, baseline=None)]
            if _is_same(system, compared.others[0]) and _is_same(other, compared.system):
                return [replace(label, id=identifier, label=_mirrored(label), run=None, baseline=None)]
        is_of_these = any({_tail(system), _tail(other)} == {_tail(a), _tail(b)} for a, b in self._systems)
        return [label] if is_of_these else []  # the sample is not in this run, which is an error later on


def _mirrored(label: HumanLabel) -> str:
    word = str(label.label).strip().lower()
    if word not in MIRRORED:
        raise ConfigError(f"line {label.line}: the label of a comparison must be win, tie or loss. Got {shorten(word)}")
    return MIRRORED[word]


def _is_same(name: str, path: str) -> bool:
    """Whether a name, or the end of a path, names a folder."""
    ends = [text.rstrip("/").split("/") for text in (name, path)]
    length = min(map(len, ends))
    return ends[0][-length:] == ends[1][-length:]


def _tail(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]
