"""Write the generated parts of README.md: python tests/docs/update_readme.py [metrics]

They are the output of the demo, which needs the fetched models, and the table of metrics (`metrics`: only the table).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from multimodal_eval import Metric
from multimodal_eval.evaluation.metrics_registry import list_available, resolve

README = Path(__file__).parents[2] / "README.md"
DEMO = re.compile(r"(The demo scores[^\n]*\n\n```\n).*?(\n```)", re.DOTALL)
METRICS = re.compile(r"(\| metric \| range \| what it says \|\n\|---\|---\|---\|\n)(?:\|[^\n]*\n)*")


def demo_output() -> str:
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "demo"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "\n".join(line.rstrip() for line in out.splitlines()).strip()


def with_demo(readme: str) -> str:
    return DEMO.sub(lambda match: match[1] + demo_output() + match[2], readme)


def with_metrics(readme: str) -> str:
    """The README with one row per registered metric."""
    rows = "".join(row(resolve(name)) for name in list_available())
    return METRICS.sub(lambda match: match[1] + rows, readme)


def row(metric: Metric) -> str:
    low, high = ("unbounded" if bound is None else f"{bound:.3g}" for bound in metric.bounds)
    direction = ", lower is better" if metric.direction == "lower" else ""
    summary = metric.summary.replace("|", r"\|")
    return f"| [`{metric.name}`](docs/metrics/{metric.name}.md) | {low} to {high}{direction} | {summary} |\n"


if __name__ == "__main__":
    text = with_metrics(README.read_text(encoding="utf-8"))
    README.write_text(text if "metrics" in sys.argv[1:] else with_demo(text), encoding="utf-8")
