"""Runs as records of Every Eval Ever: `data/COLLECTION/DEVELOPER/MODEL/<uuid>.json` and `<uuid>_samples.jsonl`.

Every metric, and every part of one, is a result with standard error and interval; every score of a sample is an
instance. The schema has no unscored samples and no media: they are in additional details and metadata, under keys that
start with `mmeval.`, so that an import of the files has the same scores as the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from math import fsum, isfinite, sqrt
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

import msgspec

from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.display import counted
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import Kind, metric_and_part
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.records import RECORDED, RunInfo, Slice, to_json
from multimodal_eval.data.logs.eee import OUR_LIBRARY
from multimodal_eval.data.logs.eee_records import (
    BY_SAMPLE,
    OF_LOG,
    ORDER,
    ORIGIN,
    SCHEMA_VERSION,
    UNSCORED,
    UNSCORED_SAMPLES,
    Aggregate,
    Detailed,
    Engine,
    EvaluationSource,
    GenerationArguments,
    GenerationConfig,
    Interval,
    Library,
    MetricConfig,
    ModelInfo,
    Origin,
    Result,
    ScoreDetails,
    SourceData,
    StandardError,
    Uncertainty,
)
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.eee_instances import Instances, ScoreColumn, score_columns
from multimodal_eval.interop.export.files import (
    IDENTITY,
    Identity,
    claim_of,
    identity_of,
    method_of,
    portable,
    published,
    tasks_of,
    whole_file,
)
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.row_tables import metrics_of

__all__ = ["OPTIONS", "aggregate_of", "evaluation_id", "export", "seconds"]


LEVEL = 0.95
_UNKNOWN = "unknown"
_NO_CORRECTNESS = "true for the best possible score; the metric does not say which answers are correct"
_CORRECTNESS = "true for the best possible score"


def seconds(info: RunInfo) -> int:
    """When the run finished, in seconds since 1970."""
    return int(datetime.fromisoformat(info.finished or info.created).timestamp())


def evaluation_id(run: Run, identity: Identity) -> str:
    """`name/model/time`, as the schema asks for."""
    return f"{identity.dataset}/{identity.model.replace('/', '_')}/{seconds(run.info)}"


def aggregate_of(
    run: Run, identity: Identity, instances: Instances, detailed: Detailed | None, options: OptionValues
) -> Aggregate:
    """The aggregate: one result per metric and part."""
    info = run.info
    return Aggregate(
        schema_version=SCHEMA_VERSION,
        evaluation_id=instances.evaluation_id,
        retrieved_timestamp=str(seconds(info)),
        evaluation_timestamp=info.created,
        source_metadata=EvaluationSource(
            source_name=OUR_LIBRARY,
            source_type="evaluation_run",
            source_organization_name=options["organization"],
            evaluator_relationship=options["relationship"],
        ),
        eval_library=_library(run, instances),
        model_info=_model(identity, options),
        evaluation_results=[
            *(_result(run, identity, column, instances, options) for column in instances.columns),
            *(
                result
                for task, below in tasks_of(run).items()
                for column in instances.columns
                if (result := _task_result(run, task, below, column, options)) is not None
            ),
        ],
        detailed_evaluation_results=detailed,
    )


def _library(run: Run, instances: Instances) -> Library:
    """The program that gave the scores: the harness, if all of them are from its log."""
    imported, variants = run.info.imported, run.info.config.variants
    name, version = OUR_LIBRARY, run.info.versions.get("multimodal_eval", _UNKNOWN)
    if imported is not None and all(variants.get(column.metric) == RECORDED for column in instances.columns):
        name, version = imported.harness, imported.version or _UNKNOWN
    return Library(name=name, version=version, additional_details=_library_details(run))


def _library_details(run: Run) -> dict[str, str]:
    info = run.info
    without_value = [name for name, entry in run.entries.items() if entry.value is None]
    details = {
        "headline": run.headline,
        ORIGIN: _origin(info),
        "seed": str(info.seed),
        "versions": _json(info.versions),
        "notes": _json(run.outcome.notes) if run.outcome.notes else None,
        "unavailable_metrics": _json(info.unavailable) if info.unavailable else None,
        "metrics_without_a_score": _json(without_value) if without_value else None,
    }
    return {key: value for key, value in details.items() if value is not None}


def _origin(info: RunInfo) -> str | None:
    if info.imported is None:
        return None
    fields = {name: getattr(info.imported, name) for name in Origin.__struct_fields__}
    return _json(Origin(**fields))


def _model(identity: Identity, options: OptionValues) -> ModelInfo:
    return ModelInfo(
        name=identity.model_name,
        id=identity.model,
        developer=identity.developer,
        inference_platform=identity.platform,
        inference_engine=None if identity.engine is None else Engine(name=identity.engine),
        additional_details={
            "deployment_type": options["deployment"],
            "model_availability": options["availability"],
        },
    )


def _result(run: Run, identity: Identity, column: ScoreColumn, instances: Instances, options: OptionValues) -> Result:
    entry = run.entries[column.metric]
    is_binary = instances.are_binary.get(column.name, False)
    score = published(column.figure)[0].value
    assert score is not None
    return Result(
        evaluation_name=instances.evaluation_name,
        evaluation_result_id=column.name,
        source_data=_source(run, identity, instances, options),
        metric_config=_metric(run, column, entry, is_binary=is_binary),
        score_details=ScoreDetails(
            score=score,
            details=_score_details(run, column, entry, instances),
            uncertainty=_uncertainty(run, column, entry),
        ),
        generation_config=_generation(run.info),
    )


def _task_result(run: Run, task: str, below: Slice, column: ScoreColumn, options: OptionValues) -> Result | None:
    """The result of a metric, or of a part of one, in one task of several; None if it has no score there."""
    entry = below.metrics.get(column.metric)
    _, part = metric_and_part(column.name, run.entries)
    figure = entry.parts.get(part) if entry is not None and part else entry
    if entry is None or figure is None or figure.value is None:
        return None
    metric = _metric(run, column, run.entries[column.metric], is_binary=False)
    metric.additional_details = {OF_LOG: task, "kind": str(run.kind_of(column.name))}
    return Result(
        evaluation_name=task,
        evaluation_result_id=f"{task}/{column.name}",
        source_data=SourceData(dataset_name=task, source_type="other", additional_details={"samples": str(below.n)}),
        metric_config=metric,
        score_details=ScoreDetails(
            score=figure.value,
            details=_counts(entry),
            uncertainty=_with_interval(run, figure, None, entry.coverage.scored),
        ),
        generation_config=_generation(run.info),
    )


def _metric(run: Run, column: ScoreColumn, entry: Figure, *, is_binary: bool) -> MetricConfig:
    is_part = column.name != column.metric
    low, high = (None, None) if is_part else run.info.bounds_of(column.metric)
    stored = run.info.signatures.get(column.metric)
    kind: Kind | None = run.kind_of(column.name)
    details = {
        "signature": None if stored is None else stored.text,
        "origin_signature": entry.origin_signature,
        "kind": kind,
        "is_correct": _CORRECTNESS if is_binary else _NO_CORRECTNESS,
    }
    return MetricConfig(
        metric_id=column.name,
        metric_name=column.name,
        metric_unit="proportion" if (low, high) == (0, 1) else None,
        metric_parameters={} if stored is None else _scalars(stored.options or {}),
        lower_is_better=entry.direction == "lower",
        score_type="binary" if is_binary and (low, high) == (0, 1) else "continuous",
        min_score="-Infinity" if low is None else low,
        max_score="Infinity" if high is None else high,
        additional_details={key: value for key, value in details.items() if value is not None},
    )


def _scalars(options: dict[str, Any]) -> dict[str, str | float | bool | None]:
    return {
        name: value if value is None or isinstance(value, str | float | bool) else _json(value)
        for name, value in options.items()
    }


def _score_details(run: Run, column: ScoreColumn, entry: Figure, instances: Instances) -> dict[str, str]:
    unscored = instances.unscored.get(column.name, {})
    details = _counts(entry)
    if unscored:
        details[UNSCORED] = _json(unscored)
    if entry.warnings:
        details["warnings"] = _json(entry.warnings)
    if entry.calibrated is not None and column.name == column.metric:
        details["corrected_by_human_labels"] = _json(entry.calibrated)
        details["uncorrected"] = _json(entry.bare)
    if (claim := claim_of(run, column.metric)) is not None:
        details["note"] = claim
    return details


def _counts(entry: Figure) -> dict[str, str]:
    return {
        "samples_scored": str(entry.n_scored),
        "samples_total": str(entry.n_total),
        "unscored": _json(entry.unscored),
    }


def _uncertainty(run: Run, column: ScoreColumn, entry: Figure) -> Uncertainty:
    values = _values(run, column.name)
    count = len(values) if column.name != column.metric else entry.coverage.scored
    return _with_interval(run, published(column.figure)[0], _deviation(values), count)


def _with_interval(run: Run, figure: Figure, deviation: float | None, count: int) -> Uncertainty:
    error = None if figure.stderr is None else StandardError(value=figure.stderr, method="analytic")
    interval = None
    if figure.low is not None and figure.high is not None:
        method = method_of(run, figure)
        interval = Interval(lower=figure.low, upper=figure.high, confidence_level=LEVEL, method=method)
    return Uncertainty(
        standard_error=error, confidence_interval=interval, standard_deviation=deviation, num_samples=count
    )


def _values(run: Run, name: str) -> list[float]:
    values = float_values(run.scores([name]).column(name))
    return [float(value) for value in values if isfinite(value)]


def _deviation(values: Sequence[float]) -> float | None:
    """The standard deviation of a sample: divided by n - 1."""
    if len(values) < 2:
        return None
    mean = fsum(values) / len(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _source(run: Run, identity: Identity, instances: Instances, options: OptionValues) -> SourceData:
    details = {
        f"sha256 of {PurePath(file.path).name}": file.sha256
        for file in run.info.input
        if file.path is not None and file.sha256 is not None
    }
    if instances.media:
        details["samples_with_media"] = str(instances.media)
    if options["hf_dataset"] is not None:
        return SourceData(
            dataset_name=identity.dataset,
            source_type="hf_dataset",
            hf_repo=options["hf_dataset"],
            hf_split=options["hf_split"],
            samples_number=run.outcome.n,
            additional_details=details,
        )
    details["samples"] = str(run.outcome.n)
    return SourceData(dataset_name=identity.dataset, source_type="other", additional_details=details)


def _generation(info: RunInfo) -> GenerationConfig | None:
    config, asked = info.config.generation, info.generation
    if config is None or asked is None:
        return None
    details = {"signature": asked.signature}
    if config.prompt is not None:
        details["prompt"] = config.prompt
    return GenerationConfig(
        generation_args=GenerationArguments(
            temperature=config.parameters.temperature,
            top_p=config.parameters.top_p,
            max_tokens=config.parameters.max_tokens,
            prompt_template=config.template,
        ),
        additional_details=details,
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


OPTIONS = Options(
    IDENTITY,
    metrics=Option(list[str] | None, None, help="the metrics; null for all"),
    organization=Option(str, _UNKNOWN, help="who evaluated"),
    relationship=Option(
        str,
        "other",
        choices=("first_party", "third_party", "collaborative", "other"),
        help="of the evaluator to the model",
    ),
    deployment=Option(
        str, _UNKNOWN, choices=("self_deployed", "externally_managed", _UNKNOWN), help="who ran the model"
    ),
    availability=Option(
        str, _UNKNOWN, choices=("open_weights", "closed_weights", _UNKNOWN), help="of the model's weights"
    ),
    hf_dataset=Option(str | None, None, help="the data on the Hugging Face Hub: OWNER/NAME"),
    hf_split=Option(str | None, None, help="its split"),
)
DATA = "data"  # the first folder of a collection


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """Write two files per run below `path/data`; `path` may be the folder `data` itself."""
    assert path is not None  # a format of folders has a path
    root = path if path.name == DATA else path / DATA
    paths: list[Path] = []
    notes: dict[str, None] = {}
    for run in runs:
        exported = _export(run, root, options)
        paths += exported.paths
        notes |= dict.fromkeys(exported.notes)
    return Exported(paths=tuple(paths), notes=tuple(notes))


def _export(run: Run, root: Path, options: OptionValues) -> Exported:
    identity = identity_of(run, options)
    columns = score_columns(run, metrics_of(run, options["metrics"]))
    if not columns:
        raise ConfigError(f"{run.folder.label} has no score to export")
    inner = (portable(identity.dataset), portable(identity.developer), portable(identity.model_name))
    instances = Instances(run, columns, evaluation_id(run, identity), identity.model, identity.dataset)
    name = _uuid(run, instances, options)
    folder = root.joinpath(*inner)
    lines, results = folder / f"{name}_samples.jsonl", folder / f"{name}.json"
    with whole_file(lines) as partial:
        instances.write(partial)
    detailed = Detailed(
        format="jsonl",
        file_path="/".join((DATA, *inner, lines.name)),
        hash_algorithm="sha256",
        checksum=instances.checksum,
        total_rows=instances.rows,
        additional_details=_details(instances),
    )
    with whole_file(results) as partial:
        partial.write_bytes(to_json(aggregate_of(run, identity, instances, detailed, options)))
    return Exported(paths=(results, lines), notes=(*identity.notes, *_notes(run, instances)))


def _uuid(run: Run, instances: Instances, options: OptionValues) -> UUID:
    """A random-looking UUID that is the same for the same run and options."""
    content = (instances.evaluation_id, run.results, dict(options))
    digest = hashlib.sha256(msgspec.json.encode(content, order="deterministic")).digest()
    return UUID(bytes=digest[:16], version=4)


def _details(instances: Instances) -> dict[str, str]:
    details = {ORDER: BY_SAMPLE}
    if instances.without_scores:
        details[UNSCORED_SAMPLES] = msgspec.json.encode(instances.without_scores).decode()
    return details


def _notes(run: Run, instances: Instances) -> list[str]:
    """What the schema has no place for, and results that are of several tasks."""
    notes = []
    if tasks := tasks_of(run):
        name = instances.evaluation_name
        notes.append(f"the run has {len(tasks)} tasks. Each has its own results, and those over all are named {name!r}")
    without_value = [name for name, entry in run.entries.items() if entry.value is None]
    if without_value:
        notes.append(f"a result needs a score, so these are left out: {', '.join(without_value)}")
    if instances.without_scores:
        count = len(instances.without_scores)
        notes.append(
            f"{counted(count, 'sample')} without any score: in the additional details, not among the instances"
        )
    if instances.media_bytes:
        notes.append(f"the media of {counted(instances.media_bytes, 'sample')} are bytes, which the format cannot have")
    return notes
