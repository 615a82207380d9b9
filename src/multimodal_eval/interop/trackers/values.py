"""Scores as flat numbers for trackers: `wer`, `wer_low`, `wer_high`, `wer_stderr`, `wer_coverage`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import isfinite

from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.accumulator import ScoreValue
from multimodal_eval.interop.export.files import UNCORRECTED, published

__all__ = ["flat_values", "run_values"]


def flat_values(scores: Mapping[str, float], prefix: str = "") -> dict[str, float]:
    """Every score with its interval, standard error and coverage, the share of the samples that are scored.

    A score that is NaN, because nothing is scored, is left out; its coverage of 0 is not. Plain numbers stay plain.
    """
    return {f"{prefix}{name}": value for name, value in _values(scores) if isfinite(value)}


def _values(scores: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    for name, score in scores.items():
        yield name, float(score)
        if not isinstance(score, ScoreValue):
            continue
        for bound in ("low", "high", "stderr"):
            value = getattr(score, bound)
            if value is not None:
                yield f"{name}_{bound}", float(value)
        if score.n_total:
            yield f"{name}_coverage", (score.n_scored or 0) / score.n_total


def run_values(run: Run, metrics: Collection[str] | None = None) -> dict[str, float]:
    """The flat numbers of a run, or of some of its metrics, with their parts as `metric.part`.

    A score that human labels correct is the value; that of the judge is `metric.uncorrected`.
    """
    scores: dict[str, ScoreValue] = {}
    for metric, entry in run.entries.items():
        if metrics is None or metric in metrics:
            value, raw = published(entry)
            scores[metric] = ScoreValue.of(value)
            if raw is not None:
                scores[f"{metric}.{UNCORRECTED}"] = ScoreValue.of(raw)
        for part, figure in entry.parts.items():
            if metrics is None or metric in metrics or f"{metric}.{part}" in metrics:
                scores[f"{metric}.{part}"] = ScoreValue.of(figure)
    return flat_values(scores)


def unknown_metric(run: Run, metrics: Collection[str]) -> str | None:
    """The first name that is neither a metric of the run nor one of its parts."""
    for name in metrics:
        metric, part = metric_and_part(name, run.entries)
        if metric not in run.entries or (part and part not in run.entries[metric].parts):
            return name
    return None
