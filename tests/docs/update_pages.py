"""Write the table of metrics in docs/metrics.md: python tests/docs/update_pages.py metrics"""

from __future__ import annotations

import re
from pathlib import Path

from multimodal_eval import Metric
from multimodal_eval.core.metric import summary_of
from multimodal_eval.evaluation.metrics_registry import list_available, resolve

METRICS_PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
METRICS = re.compile(r"(\| metric \| range \| what it says \|\n\|---\|---\|---\|\n)(?:\|[^\n]*\n)*")


def with_metrics(page: str) -> str:
    """The page with one row per registered metric."""
    rows = "".join(row(resolve(name)) for name in list_available())
    return METRICS.sub(lambda match: match[1] + rows, page)


def row(metric: Metric) -> str:
    low, high = ("unbounded" if bound is None else f"{bound:.3g}" for bound in metric.bounds)
    direction = ", lower is better" if metric.direction == "lower" else ""
    summary = summary_of(metric).replace("|", r"\|")
    return f"| [`{metric.name}`](metrics/{metric.name}.md) | {low} to {high}{direction} | {summary} |\n"


if __name__ == "__main__":
    METRICS_PAGE.write_text(with_metrics(METRICS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
