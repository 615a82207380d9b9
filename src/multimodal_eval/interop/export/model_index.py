"""The results of runs as `model-index`, the older form in the front matter of a model card on the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePath

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.logs.lm_eval import IMAGE_HASHES
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.files import (
    IDENTITY,
    UNCORRECTED,
    claim_of,
    identity_of,
    method_of,
    published,
    tasks_of,
    yaml_text,
)
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.row_tables import metrics_of

__all__ = ["OPTIONS", "ModelIndexEntry", "export"]

OPTIONS = Options(
    IDENTITY,
    metrics=Option(list[str] | None, None, help="the metrics; null for all"),
    task_type=Option(str | None, None, help="the task on the Hub, such as image-to-text; by default from the task"),
    hf_dataset=Option(str | None, None, help="the data on the Hub: OWNER/NAME"),
    hf_config=Option(str | None, None, help="its configuration"),
    hf_split=Option(str | None, None, help="its split"),
    url=Option(str | None, None, help="where the evaluation can be seen"),
)
# Our tasks -> those of the Hub. Other tasks have a name by their media.
_TASKS = {"captioning": "image-to-text", "vqa": "visual-question-answering"}
_FIELDS = {"image": ("image", "images"), "video": ("video",), "audio": ("audio",)}
_LOOKED_AT = 1000  # samples whose messages and metadata are looked at
Value = str | float | int


class Task(msgspec.Struct, omit_defaults=True):
    """What the model does."""

    type: str
    name: str | None = None


class Dataset(msgspec.Struct, omit_defaults=True):
    """The data."""

    type: str
    name: str
    config: str | None = None
    split: str | None = None
    args: dict[str, Value] | None = None


class MetricValue(msgspec.Struct, omit_defaults=True):
    """A metric; its interval is in `args`."""

    type: str
    value: float
    name: str | None = None
    args: dict[str, Value] | None = None


class Source(msgspec.Struct, omit_defaults=True):
    """Where the evaluation can be seen."""

    url: str
    name: str | None = None


class IndexResult(msgspec.Struct, omit_defaults=True):
    """A run."""

    task: Task
    dataset: Dataset
    metrics: list[MetricValue]
    source: Source | None = None


class ModelIndexEntry(msgspec.Struct):
    """A model with its results."""

    name: str
    results: list[IndexResult]


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """One entry per model, with one result per run."""
    entries: dict[str, ModelIndexEntry] = {}
    notes: dict[str, None] = {}
    for run in runs:
        identity = identity_of(run, options)
        notes |= dict.fromkeys(identity.notes)
        entry = entries.setdefault(identity.model, ModelIndexEntry(identity.model_name, []))
        entry.results += _results(run, identity.dataset, options)
    content = {"model-index": [msgspec.to_builtins(entry) for entry in entries.values()]}
    return Exported(text=yaml_text(content), notes=tuple(notes))


def _results(run: Run, dataset: str, options: OptionValues) -> list[IndexResult]:
    """The result over all samples, then that of each task, if the run was imported from the logs of several."""
    metrics = metrics_of(run, options["metrics"])
    digests: dict[str, Value] = {
        f"sha256 of {PurePath(file.path).name}": file.sha256
        for file in run.info.input
        if file.path is not None and file.sha256 is not None
    }
    scopes: dict[str, tuple[Mapping[str, Figure], dict[str, Value]]] = {
        dataset: (run.entries, {"samples": run.outcome.n, **digests})
    }
    for task, below in tasks_of(run).items():
        scopes.setdefault(task, (below.metrics, {"samples": below.n}))
    kind = options["task_type"] or _TASKS.get(run.info.task or "") or _task_type(run)
    results = []
    for name, (entries, args) in scopes.items():
        values = [value for metric in metrics for value in _values(run, metric, entries.get(metric))]
        if values:
            data = Dataset(options["hf_dataset"] or name, name, options["hf_config"], options["hf_split"], args)
            source = None if options["url"] is None else Source(options["url"], "multimodal-eval")
            results.append(IndexResult(Task(kind, run.info.task), data, values, source))
    if not results:
        raise ConfigError(f"{run.folder.label} has no score to export")
    return results


def _task_type(run: Run) -> str:
    """The task on the Hub by the media that the samples, or their messages, have."""
    for medium, fields in _FIELDS.items():
        if any(run.folder.has_values("samples", part, fields) for part in range(len(run.info.parts))):
            return f"{medium}-text-to-text"
    shown = {medium for sample in islice(run.samples(), _LOOKED_AT) for medium in _media_beside(sample)}
    return next((f"{medium}-text-to-text" for medium in _FIELDS if medium in shown), "text-generation")


def _media_beside(sample: Sample) -> Iterator[str]:
    """The kinds of media in the messages of a sample; images of which a log has only hashes."""
    if IMAGE_HASHES in sample.metadata:
        yield "image"
    yield from (part.type for message in sample.messages or () for part in message.parts)


def _values(run: Run, metric: str, entry: Figure | None) -> list[MetricValue]:
    """The metric and its parts, without those that have no value."""
    if entry is None:
        return []
    signature = run.info.signatures.get(metric)
    value, raw = published(entry)
    figures: dict[str, Figure] = {metric: value, **({} if raw is None else {f"{metric}.{UNCORRECTED}": raw})}
    figures |= {f"{metric}.{part}": entry.part(part) for part in entry.parts}
    text, claim = None if signature is None else signature.text, claim_of(run, metric)
    by_labels = entry.calibrated.signed if raw is not None and entry.calibrated is not None else None
    return [
        MetricValue(name, figure.value, name, _args(run, figure, text, claim, by_labels if name == metric else None))
        for name, figure in figures.items()
        if figure.value is not None
    ]


def _args(
    run: Run, figure: Figure, signature: str | None, claim: str | None, by_labels: str | None
) -> dict[str, Value]:
    args: dict[str, Value | None] = {
        "stderr": figure.stderr,
        "low": figure.low,
        "high": figure.high,
        "interval": method_of(run, figure),
        "scored": figure.n_scored,
        "total": figure.n_total,
        "labels": figure.labels,
        "signature": signature,
        "corrected by human labels": by_labels,
        "note": claim,
    }
    return {name: value for name, value in args.items() if value is not None}
