"""Registration of metrics: by decorator, by plug-in file, by entry point."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.corpus import CorpusGroups
from multimodal_eval.core.errors import ConfigError, DuplicateNameError
from multimodal_eval.core.function_metric import FunctionMetric
from multimodal_eval.core.metric import Bounds, Direction, Metric, Placement, check_name
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.core.metric_table import MetricTable, origin
from multimodal_eval.core.score import Estimate, Rows, Score

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ENTRY_POINT_GROUP", "load_plugin", "metric", "register"]

ENTRY_POINT_GROUP = "multimodal_eval.metrics"
PLUGIN = "mmeval_plugin_"  # prefix of the module names of plug-in files

# The built-in metrics, and those added by decorators and `register`. `metrics_registry._METRICS` starts as this table.
registered = MetricTable.of_built_in_metrics()


def register(metric: Metric) -> Metric:
    """Add a metric under its name. The same definition may be registered again (a notebook cell)."""
    check_name(metric.name)
    registered.register(metric.name, metric)
    return metric


def metric(
    name: str,
    *,
    needs: tuple[str, ...] = (),
    bounds: Bounds = (None, None),
    direction: Direction = "higher",
    placement: Placement | None = None,
    version: str | None = None,
    blank: float | None = None,
    headline: str | None = None,
    corpus: Callable[..., Any] | None = None,
    corpus_groups: Callable[..., CorpusGroups | None] | None = None,
    default_corpus: Callable[..., Any] | None = None,
    batch: Callable[..., Sequence[Score]] | bool | None = None,
    aggregate: Callable[[Rows], Estimate] | None = None,
    part_aggregates: Mapping[str, Callable[[Rows], Estimate]] | None = None,
    part_bounds: Mapping[str, Bounds] | None = None,
    problem: Callable[..., str | None] | None = None,
) -> Callable[[Callable[..., Any]], FunctionMetric]:
    """Turn a function `f(sample, *, option=…) -> float | dict` into a registered metric.

    `needs` names the sample fields without which a sample is unscored; `bounds` are checked on every
    value; `blank` is the value of a blank answer; `headline` the value's key in a dict-valued result.
    `corpus(samples)` returns an additive state that the function gets as `corpus=`; `default_corpus()` is
    the state for a single sample; `corpus_groups()` finds the samples that must be in one call of `corpus`.
    `batch(samples, …)` scores many samples in one call if that is faster; with `batch=True`, the function itself does.
    `placement` is "process" for Python code, or "thread" for fast code and for compiled code that releases the GIL.
    The default is "thread" if there is a `batch`, else "process".
    `problem(sample, …)` says why a sample cannot be scored, so that the input is refused with its line, or None.
    `aggregate` replaces the mean, `part_aggregates` the means of the parts; `part_bounds` are where intervals of parts
    end. Without a `version`, the signature contains a digest of the function's source.
    """

    def build(function: Callable[..., Any]) -> FunctionMetric:
        built = FunctionMetric(
            function,
            name,
            needs=needs,
            blank=blank,
            problem=problem,
            bounds=bounds,
            part_bounds=part_bounds,
            direction=direction,
            placement=placement,
            version=version,
            headline=headline,
            corpus=corpus,
            corpus_groups=corpus_groups,
            default_corpus=default_corpus,
            batch=batch,
            aggregate=aggregate,
            part_aggregates=part_aggregates,
        )
        register(built)
        return built

    return build


def load_plugin(path: str | Path) -> None:
    """Import a Python file whose decorators register metrics."""
    file = Path(path).resolve()
    if not file.is_file():
        raise ConfigError(f"the plug-in {str(path)!r} is not a file")
    if is_loaded(file):
        return
    name, content = _module_name(file), file.read_bytes()
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"the plug-in {str(path)!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    module.__content__ = hashlib.sha256(content).hexdigest()  # type: ignore[attr-defined]
    sys.modules[name] = module
    try:
        with blamed_on(f"the plug-in {path}", "being imported"):
            # Not `exec_module`: that may run cached bytecode of a file that was edited within a second.
            exec(compile(content, str(file), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise


def is_loaded(path: str | Path) -> bool:
    """Whether this process has imported the plug-in file with its current content."""
    file = Path(path).resolve()
    loaded = getattr(sys.modules.get(_module_name(file)), "__content__", None)
    return loaded is not None and file.is_file() and loaded == _content_digest(file)


def content_of_plugin(module: str) -> tuple[str, str]:
    """The file of an imported plug-in module, and the SHA-256 of the content that was imported."""
    loaded = sys.modules[module]
    return str(loaded.__file__), loaded.__content__


def plugin_digests(paths: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of imported plug-in files, by path."""
    return {path: content_of_plugin(_module_name(Path(path).resolve()))[1] for path in paths}


def _module_name(file: Path) -> str:
    """Named after the file's path, so that two files never clash and an edited file replaces its own metrics."""
    return f"{PLUGIN}{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"


def _content_digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@cache
def entry_points() -> dict[str, EntryPoint]:
    """The metrics of installed distributions by name, not yet imported."""
    return installed_entry_points(ENTRY_POINT_GROUP, "metric", registered)


def installed_entry_points(group: str, kind: str, taken: Mapping[str, Callable[..., Any]]) -> dict[str, EntryPoint]:
    """The entry points of a group by name; a name that another module has already taken is an error."""
    from importlib.metadata import entry_points as installed

    points: dict[str, EntryPoint] = {}
    for entry in installed(group=group):
        clash = entry.name in taken and origin(taken[entry.name])[0] != entry.module
        if clash or points.get(entry.name, entry) != entry:
            raise DuplicateNameError(
                f"the entry point {entry.value!r} offers a {kind} named {entry.name!r}, which is already taken. "
                "Uninstall one of the two distributions."
            )
        points[entry.name] = entry
    return points
