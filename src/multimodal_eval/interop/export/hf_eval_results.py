"""A result of a run for a model's page on the Hugging Face Hub: the file `.eval_results/NAME.yaml` of its repository.

A leaderboard on the Hub has one value per task of a dataset. The format has no place for an interval: it is in the
notes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.files import claim_of, method_of, published, yaml_text
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.score_tables import not_shares

__all__ = ["OPTIONS", "EvalResult", "export"]

OPTIONS = Options(
    dataset=Option(str | None, None, help="the dataset on the Hub: OWNER/NAME; needed"),
    task=Option(str | None, None, help="the id of the task in the dataset's eval.yaml; needed"),
    metrics=Option(list[str] | None, None, help="one metric; by default the one that leads"),
    revision=Option(str | None, None, help="the revision of the dataset"),
    percent=Option(bool, False, help="write a score between 0 and 1 as a percentage"),
    url=Option(str | None, None, help="where the evaluation can be seen"),
    source=Option(str | None, None, help="the name of that place; needs url"),
    user=Option(str | None, None, help="the user of the Hub who evaluated; needs url"),
    org=Option(str | None, None, help="the organization of the Hub that evaluated; needs url"),
    notes=Option(str | None, None, help="further notes, such as the setting"),
)
_ID = re.compile(r"[\w.-]+/[\w.-]+")


class Dataset(msgspec.Struct, omit_defaults=True):
    """The task that was evaluated."""

    id: str
    task_id: str
    revision: str | None = None


class Source(msgspec.Struct, omit_defaults=True):
    """Where the evaluation can be seen."""

    url: str
    name: str | None = None
    user: str | None = None
    org: str | None = None


class EvalResult(msgspec.Struct, omit_defaults=True):
    """One entry of the file."""

    dataset: Dataset
    value: float
    date: str | None = None
    source: Source | None = None
    notes: str | None = None


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """One entry per run."""
    return Exported(text=yaml_text([msgspec.to_builtins(_entry(run, options)) for run in runs]))


def _entry(run: Run, options: OptionValues) -> EvalResult:
    dataset, task = options["dataset"], options["task"]
    if dataset is None or task is None:
        raise ConfigError("name the benchmark on the Hub: --set dataset=OWNER/NAME --set task=ID")
    if not _ID.fullmatch(dataset):
        raise ConfigError(f"the option `dataset` must be written OWNER/NAME. Got {dataset!r} instead.")
    name, figure = _chosen(run, options["metrics"])
    value = published(figure)[0].value
    if value is None:
        raise ConfigError(f"{run.folder.label}: {name} has no score")
    factor = 1
    if options["percent"]:
        metric, part = metric_and_part(name, run.entries)
        if part or run.info.bounds_of(metric) != (0, 1):
            raise ConfigError(not_shares([name]))
        factor = 100
    return EvalResult(
        Dataset(dataset, task, options["revision"]),
        value * factor,
        date=run.info.finished or run.info.created,
        source=_source(options),
        notes="; ".join(filter(None, [options["notes"], *_notes(run, name, figure, factor)])),
    )


def _chosen(run: Run, metrics: Sequence[str] | None) -> tuple[str, Figure]:
    names = [run.headline] if metrics is None else list(metrics)
    if len(names) != 1 or names[0] is None:
        known = ", ".join(run.entries)
        raise ConfigError(f"a task has one value: choose one metric with --metrics. The run has {known}")
    name = names[0]
    metric, part = metric_and_part(name, run.entries)
    entry = run.entries.get(metric)
    figure: Figure | None = entry if entry is None or not part else entry.parts.get(part)
    if figure is None:
        raise UnknownNameError("metric of this run", name, run.entries)
    return name, figure


def _source(options: OptionValues) -> Source | None:
    if options["url"] is None:
        given = next((name for name in ("source", "user", "org") if options[name] is not None), None)
        if given is not None:
            raise ConfigError(f"the option `{given}` needs `url`: where the evaluation can be seen")
        return None
    if urlsplit(options["url"]).scheme not in ("http", "https"):
        raise ConfigError(f"the option `url` must be an http address. Got {options['url']!r} instead.")
    return Source(options["url"], options["source"], options["user"], options["org"])


def _notes(run: Run, name: str, whole: Figure, factor: int) -> list[str]:
    figure, notes = published(whole)[0], [name]
    if figure.low is not None and figure.high is not None:
        notes.append(f"{method_of(run, figure)}: {factor * figure.low:.6g} to {factor * figure.high:.6g}")
    if figure.n_scored != figure.n_total:
        notes.append(f"{figure.n_scored} of {figure.n_total} samples scored")
    raw = published(whole)[1]
    if raw is not None and raw.value is not None:
        notes.append(f"corrected by {figure.labels} human labels; without them: {factor * raw.value:.6g}")
    if (claim := claim_of(run, name)) is not None:
        notes.append(claim)
    signature = run.info.signatures.get(metric_and_part(name, run.entries)[0])
    version = run.info.versions.get("multimodal_eval", "")
    return [*notes, *([] if signature is None else [signature.text]), f"multimodal-eval {version}".strip()]
