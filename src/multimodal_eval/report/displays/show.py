"""The display of a result, found by its class. `core.displayed` calls this module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from multimodal_eval.report.displays.as_html import as_html
from multimodal_eval.report.displays.as_text import as_text
from multimodal_eval.report.displays.blocks import Block

__all__ = ["MODULES", "blocks_of", "html_of", "text_of"]

# The module of each class; it has a function `blocks` of one argument.
MODULES = {
    "AnswerScores": "list_scores",
    "CalibratedRun": "calibrated_run",
    "Calibration": "calibration",
    "CaptionScores": "list_scores",
    "Crosswalk": "crosswalk",
    "GeneratedRun": "generated_run",
    "JudgeFindings": "judge_findings",
    "JudgesReport": "judges_report",
    "LabelPlan": "label_plan",
    "LabelScores": "label_scores",
    "Leaderboard": "leaderboard",
    "LintReport": "lint_report",
    "MetaEvaluation": "meta_evaluation",
    "MetricComparison": "metric_comparison",
    "Preference": "preference",
    "RatingTable": "rating_table",
    "Run": "run",
    "RunComparison": "run_comparison",
    "Sample": "sample",
    "SampleRow": "sample_row",
    "SampleRows": "sample_rows",
    "Score": "score",
    "ScoreValue": "score_value",
    "Sensitivity": "sensitivity",
}


def blocks_of(result: object) -> Sequence[Block]:
    """The blocks of a result of this package, or of a class derived from one."""
    name = next(each.__name__ for each in type(result).__mro__ if each.__name__ in MODULES)
    blocks: Callable[[object], Sequence[Block]] = import_module(f"{__package__}.{MODULES[name]}").blocks
    return blocks(result)


def html_of(result: object) -> str:
    """For a notebook."""
    return as_html(blocks_of(result))


def text_of(result: object) -> str:
    """For a terminal."""
    return as_text(blocks_of(result))
