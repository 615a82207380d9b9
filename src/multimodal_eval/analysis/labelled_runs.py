"""Classes, confusions and annotators of a run of labels: as the run keeps them, or told by its samples."""

from __future__ import annotations

from typing import Any

from multimodal_eval.analysis.classification import classification_report
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.label_metric import LabelMetric
from multimodal_eval.evaluation.metrics_registry import resolve

MOST_LABELS = 50  # of a matrix that somebody can read
LABEL_METRICS = ("f1_strict", "f1_any_match", "f1_majority", "soft_score")
_FIELDS = ("generated_answer", "expected_answer", "annotations", "group")


def classification_of(run: Run) -> dict[str, Any] | None:
    """What the run keeps of its classes, else what its samples say; None where it has no labels, or too many."""
    stored = run.folder.read_classification()
    name = next((name for name in LABEL_METRICS if name in run.metrics), None)
    if stored is not None or name is None:
        return stored
    metric = resolve(name)
    if (signature := run.info.signatures.get(name)) is not None and (options := signature.options):
        metric = metric.configure(options)
    if not isinstance(metric, LabelMetric):
        return None
    samples = _answered(run, name)
    taxonomy = metric.given or metric.fit(samples).taxonomy
    if taxonomy is None or len(taxonomy.labels) > MOST_LABELS:
        return None
    has_gold = any(sample.expected_answer is not None for sample in samples)
    return classification_report(samples, taxonomy, switches=not has_gold, seed=run.info.seed)


def _answered(run: Run, name: str) -> list[Sample]:
    """The samples but those that the generator failed on: they have no label, not a wrong one."""
    found: list[Sample] = []
    for part in range(len(run.info.parts)):
        status = run.folder.read_part("scores", part, [f"{name}:status"]).column(0).to_pylist()
        samples = run.folder.read_samples(part, _FIELDS)
        found += [sample for sample, own in zip(samples, status, strict=True) if own != "error"]
    return found
