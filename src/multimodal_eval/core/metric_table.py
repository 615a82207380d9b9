"""The metrics by name: a dict that imports the module of a built-in metric on first access.

Each file in `evaluation/metrics` is a metric and has its name, or a family of metrics that differ by a parameter, so
all names are known without an import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from multimodal_eval.core.errors import ConfigError, DuplicateNameError

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values

Entry: TypeAlias = Callable[..., Any]  # a Metric, or a plain function of a sample

BUILT_IN = "multimodal_eval.evaluation.metrics"
_FOLDER = Path(__file__).parents[1] / "evaluation" / "metrics"
_FAMILIES = {
    "anls": ("anls", "anls_star"),
    "boxes": ("acc_at_iou", "iou", "point_in_box"),
    "chair": ("chair_i", "chair_s"),
    "cider": ("cider", "cider_d", "cider_r"),
    "clipscore": ("clip_score", "clipscore", "ref_clipscore"),
    "error_rates": ("wer", "cer", "mer", "wil"),
    "exact_match": ("contains", "exact_match", "token_f1"),
    "labels": ("f1_any_match", "f1_majority", "f1_strict", "soft_score"),
    "reference_matches": ("gqa", "ocrbench", "relaxed_accuracy"),
    "rouge": ("rouge_1", "rouge_2", "rouge_lsum"),
    "sacrebleu": ("chrf", "sacrebleu", "ter"),
    "semantic_similarity": ("contextual_relevance", "semantic_similarity"),
    "spice": ("spice", "spider"),
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}


class _NotImported:
    """Placeholder for a built-in metric whose module is not imported yet."""

    def __init__(self, name: str) -> None:
        self.name, self.__module__, self.__qualname__ = name, module_of(name), f"compute_{name}"

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.imported()(*arguments, **options)

    def __repr__(self) -> str:
        return f"<metric {self.name}, not imported yet>"

    def imported(self) -> Entry:
        """The metric itself."""
        entry: Entry | None = getattr(import_module(self.__module__), self.__qualname__, None)
        if entry is None:
            raise ConfigError(f"{self.__module__} must define `{self.__qualname__}`, the metric that it is named after")
        return entry


class MetricTable(dict[str, Entry]):
    """A dict of metrics by name."""

    @classmethod
    def of_built_in_metrics(cls) -> MetricTable:
        """The metrics of the package."""
        modules = (file.stem for file in _FOLDER.glob("*.py") if not file.stem.startswith("_"))
        names = sorted(name for module in modules for name in _FAMILIES.get(module, (module,)))
        return cls({name: _NotImported(name) for name in names})

    def __getitem__(self, name: str) -> Entry:
        entry = super().__getitem__(name)
        if isinstance(entry, _NotImported):
            entry = entry.imported()
            super().__setitem__(name, entry)
        return entry

    def __iter__(self) -> Iterator[str]:
        """Defined here so that `dict(table)` and `{**table}` get their values from `__getitem__`."""
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:
        """The metric, or the default."""
        if name not in self:
            return default
        return self[name]

    def pop(self, name: str, *default: Any) -> Any:
        """Remove the metric and return it."""
        if name in self:
            _ = self[name]
        return super().pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The metric; if there is none, the default is inserted."""
        if name not in self:
            self[name] = default
        return self[name]

    def popitem(self) -> tuple[str, Entry]:
        """Remove the last name and metric and return them."""
        name = next(reversed(self))
        return name, self.pop(name)

    def values(self) -> dict_values[str, Entry]:
        """All metrics."""
        self._import_all()
        return super().values()

    def items(self) -> dict_items[str, Entry]:
        """All names with their metrics."""
        self._import_all()
        return super().items()

    def copy(self) -> dict[str, Entry]:
        """A plain dict of all metrics."""
        return {**self}

    def __or__(self, other: Any) -> Any:
        return {**self, **other}

    def __ror__(self, other: Any) -> Any:
        return {**other, **self}

    def _import_all(self) -> None:
        for name in list(self):
            _ = self[name]

    def register(self, name: str, metric: Entry) -> None:
        """Add a metric. The same definition may be registered again (a notebook cell); a different one may not.

        A built-in metric that was replaced or removed stays so when its module is imported.
        """
        old = super().get(name)
        is_built_in = origin(metric)[0] == module_of(name)
        is_same = old is not None and origin(old) == origin(metric)
        if is_same or (isinstance(old, _NotImported) if is_built_in else old is None):
            self[name] = metric
        elif old is not None and not is_built_in:
            raise DuplicateNameError(
                f"a metric named {name!r} is already registered, by {'.'.join(origin(old))}. Give yours another name."
            )


def module_of(name: str) -> str:
    """The module of a built-in metric."""
    return f"{BUILT_IN}.{_FAMILY_OF.get(name, name)}"


def origin(entry: Entry) -> tuple[str, str]:
    """The module and the name of a definition."""
    return getattr(entry, "__module__", "?"), getattr(entry, "__qualname__", type(entry).__qualname__)
