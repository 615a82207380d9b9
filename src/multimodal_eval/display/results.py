"""The blocks of a result, found by its class, and the result in every format. `core.displayed` calls this module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from multimodal_eval.display.blocks import Block
from multimodal_eval.display.renderer import rendered

__all__ = ["DISPLAYS", "blocks_of", "html_of", "text_of"]

# Class of a result -> the function from it to its blocks, which is imported when a result is shown. Results of upper
# layers are here by name too: nothing above is imported.
DISPLAYS = {
    "AgreementReport": "display.of_scores.agreement_report_blocks",
    "AnswerScores": "display.of_scores.list_scores_blocks",
    "CalibratedRun": "display.of_labels.calibrated_run_blocks",
    "Calibration": "display.of_labels.calibration_blocks",
    "CaptionScores": "display.of_scores.list_scores_blocks",
    "Checked": "display.of_scores.checked_blocks",
    "Classification": "display.of_scores.classification_blocks",
    "Crosswalk": "display.of_comparison.crosswalk_blocks",
    "DialogueReport": "display.of_scores.dialogue_report_blocks",
    "GeneratedRun": "report.run_blocks.generated_run_blocks",
    "JudgeFindings": "display.of_judges.judge_findings_blocks",
    "JudgesReport": "display.of_judges.judges_report_blocks",
    "LabelPlan": "display.of_labels.label_plan_blocks",
    "LabelScores": "display.of_scores.label_scores_blocks",
    "Leaderboard": "display.of_rankings.leaderboard_blocks",
    "LintReport": "display.of_run.lint_report_blocks",
    "MetaEvaluation": "display.of_labels.meta_evaluation_blocks",
    "MetaSuite": "display.of_labels.meta_suite_blocks",
    "MetricComparison": "display.of_comparison.metric_comparison_blocks",
    "PowerTable": "display.of_comparison.power_blocks",
    "Preference": "display.of_rankings.preference_blocks",
    "RatingTable": "display.of_rankings.rating_table_blocks",
    "Reproduction": "display.of_reproduction.reproduction_blocks",
    "Run": "display.of_run.run_blocks",
    "RunComparison": "display.of_comparison.run_comparison_blocks",
    "Sample": "report.run_blocks.sample_blocks",
    "SampleRow": "report.run_blocks.sample_row_blocks",
    "SampleRows": "report.run_blocks.sample_rows_blocks",
    "Score": "display.of_scores.score_blocks",
    "ScoreValue": "display.of_scores.score_value_blocks",
    "SuiteTable": "display.of_suite.suite_table_blocks",
    "Sensitivity": "display.of_rankings.sensitivity_blocks",
    "Why": "display.of_comparison.why_blocks",
}


def blocks_of(result: object) -> Sequence[Block]:
    """The blocks of a result of this package, or of a class derived from one."""
    name = next(each.__name__ for each in type(result).__mro__ if each.__name__ in DISPLAYS)
    module, _, function = DISPLAYS[name].rpartition(".")
    blocks: Callable[[object], Sequence[Block]] = getattr(import_module(f"multimodal_eval.{module}"), function)
    return blocks(result)


def html_of(result: object) -> str:
    """For a notebook."""
    return rendered(blocks_of(result), "html")


def text_of(result: object) -> str:
    """For a terminal, without colours."""
    from multimodal_eval.display.console import console
    from multimodal_eval.display.terminal import TerminalRenderer

    return TerminalRenderer(console(color_system=None)).page(blocks_of(result)).rstrip("\n")
