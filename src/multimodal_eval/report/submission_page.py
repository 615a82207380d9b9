"""The page that a participant of a shared task sees: the report of a submission, or its mistakes."""

from __future__ import annotations

from html import escape

from multimodal_eval import __version__
from multimodal_eval.contests.shared_task.judging import Outcome, Refused
from multimodal_eval.core.visible import visible
from multimodal_eval.report.build import report_html

__all__ = ["submission_page"]

_REFUSAL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'">
<title>{title}</title>
</head>
<body>
<h1>{title}</h1>
<ul>
{items}
</ul>
</body>
</html>
"""


def submission_page(outcome: Outcome) -> str:
    """The page. References are on it only if the organiser shows samples."""
    if isinstance(outcome, Refused):
        items = "\n".join(f"<li>{escape(visible(line.strip()))}</li>" for line in outcome.lines)
        return _REFUSAL.format(title=escape(outcome.title), items=items)
    shows_samples = outcome.rules.details == "samples"
    return report_html([outcome.run], [outcome.rules.title], version=__version__, with_samples=shows_samples)
