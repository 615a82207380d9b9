"""What the page about methods shows: signatures, versions, settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict

from multimodal_eval.core.records import to_json
from multimodal_eval.report.site.content import SiteContent

__all__ = ["Methods", "MetricMethods", "methods_of"]


@dataclass(frozen=True)
class MetricMethods:
    """How a metric was computed. Several signatures are those of different submissions."""

    name: str
    direction: str
    signatures: list[str]
    method: str
    least_scored: int
    total: int


class Methods(TypedDict):
    """What the template needs beside the site."""

    metrics: list[MetricMethods]
    all_versions: list[str]
    seeds: list[int]
    configs: list[str]
    notes: list[str]
    pairs: int
    alpha: float


def methods_of(site: SiteContent) -> Methods:
    """The methods. What all submissions share is listed once."""
    runs = [submission.run for submission in site.submissions]
    count = len(runs)
    return {
        "metrics": list(_metrics(site)),
        "all_versions": list(dict.fromkeys(_versions(run.info.versions) for run in runs)),
        "seeds": list(dict.fromkeys(run.info.seed for run in runs)),
        "configs": list(dict.fromkeys(to_json(run.info.config).decode() for run in runs)),
        "notes": list(dict.fromkeys(note for run in runs for note in run.outcome.notes)),
        "pairs": count * (count - 1) // 2,
        "alpha": round(1 - site.board.level, 12),
    }


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _metrics(site: SiteContent) -> Iterator[MetricMethods]:
    runs = [submission.run for submission in site.submissions]
    for name in dict.fromkeys(name for run in runs for name in run.entries):
        entries = [run.entries[name] for run in runs if name in run.entries]
        signatures = [run.info.signatures[name].text for run in runs if name in run.info.signatures]
        yield MetricMethods(
            name,
            entries[0].direction,
            list(dict.fromkeys(signatures)),
            entries[0].method,
            min(entry.n_scored for entry in entries),
            max(entry.n_total for entry in entries),
        )
