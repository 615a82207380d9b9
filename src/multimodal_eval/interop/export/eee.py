"""Runs as records of Every Eval Ever: `data/COLLECTION/DEVELOPER/MODEL/<uuid>.json` and `<uuid>_samples.jsonl`.

Every metric, and every part of one, is a result with standard error and interval; every score of a sample is an
instance. The schema has no unscored samples and no media: they are in additional details and metadata, under keys that
start with `mmeval.`, so that an import of the files has the same scores as the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.records import to_json
from multimodal_eval.data.logs.eee_records import BY_SAMPLE, ORDER, UNSCORED_SAMPLES, Detailed
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.eee_aggregate import aggregate_of, evaluation_id
from multimodal_eval.interop.export.eee_identity import IDENTITY, identity_of, portable, tasks_of
from multimodal_eval.interop.export.eee_instances import Instances, score_columns
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.tables import metrics_of
from multimodal_eval.interop.export.whole_files import whole_file

__all__ = ["OPTIONS", "export"]

_UNKNOWN = "unknown"
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
        notes.append(f"no result can be without a score, so that these are left out: {', '.join(without_value)}")
    if instances.without_scores:
        count = len(instances.without_scores)
        notes.append(f"{count:,} samples without any score are in the additional details, not among the instances")
    if instances.media_bytes:
        notes.append(f"the media of {instances.media_bytes:,} samples are bytes, which the format cannot have")
    return notes
