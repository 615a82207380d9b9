"""Write the generated parts of README and docs: python tests/docs/update_pages.py [metrics]

They are the output of the demo in docs/demo.md, which needs the fetched models, README's example in a terminal of 80
columns, and the table of metrics in docs/metrics.md (`metrics`: only the table).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from multimodal_eval import Metric
from multimodal_eval.evaluation.metrics_registry import list_available, resolve

ROOT = Path(__file__).parents[2]
README, DEMO_PAGE, METRICS_PAGE = ROOT / "README.md", ROOT / "docs" / "demo.md", ROOT / "docs" / "metrics.md"
DEMO = re.compile(r"(\n```\n).*?(\n```)", re.DOTALL)
METRICS = re.compile(r"(\| metric \| range \| what it says \|\n\|---\|---\|---\|\n)(?:\|[^\n]*\n)*")


def demo_output() -> str:
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "demo"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "\n".join(line.rstrip() for line in out.splitlines()).strip()


def with_demo(page: str) -> str:
    """The page with the output of the demo."""
    return DEMO.sub(lambda match: match[1] + demo_output() + match[2], page)


def with_metrics(page: str) -> str:
    """The page with one row per registered metric."""
    rows = "".join(row(resolve(name)) for name in list_available())
    return METRICS.sub(lambda match: match[1] + rows, page)


def row(metric: Metric) -> str:
    low, high = ("unbounded" if bound is None else f"{bound:.3g}" for bound in metric.bounds)
    direction = ", lower is better" if metric.direction == "lower" else ""
    summary = metric.summary.replace("|", r"\|")
    return f"| [`{metric.name}`](metrics/{metric.name}.md) | {low} to {high}{direction} | {summary} |\n"


def with_example(page: str) -> str:
    """README with the output of its example."""
    from tests.docs.transcripts import run_in_terminal, with_new_output, write_files

    with tempfile.TemporaryDirectory() as scratch:
        write_files(Path(scratch), page)
        return with_new_output(page, Path(scratch), run_in_terminal)


if __name__ == "__main__":
    METRICS_PAGE.write_text(with_metrics(METRICS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    if "metrics" not in sys.argv[1:]:
        sys.path.insert(0, str(ROOT))
        README.write_text(with_example(README.read_text(encoding="utf-8")), encoding="utf-8")
        DEMO_PAGE.write_text(with_demo(DEMO_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
