"""A renderer writes blocks in one language. `rendered` finds the renderer of a `--format`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Generic, TypeVar

from multimodal_eval.display.blocks import (
    Block,
    Chart,
    Drawing,
    Figures,
    Finding,
    Folded,
    Gallery,
    Grid,
    Notes,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.figure_tables import as_figures, figure_table, grid_table

__all__ = ["DISPLAYS", "FORMATS", "Renderer", "blocks_of", "html_of", "rendered", "renderer_of", "text_of"]

T = TypeVar("T")
# Format -> its renderer, imported when it is used.
FORMATS = {
    "table": "terminal.TerminalRenderer",
    "json": "json_text.JsonRenderer",
    "latex": "latex.LatexRenderer",
    "markdown": "markdown.MarkdownRenderer",
    "html": "html.HtmlRenderer",
}


class Renderer(ABC, Generic[T]):
    """One method per kind of block. Figures, grids and charts have a default in terms of the others."""

    def block(self, block: Block) -> T:
        """The block, by its method."""
        method = getattr(self, type(block).__name__.lower())
        written: T = method(block)
        return written

    @abstractmethod
    def text(self, block: Text) -> T:
        """A paragraph."""

    @abstractmethod
    def table(self, block: Table) -> T:
        """A table of texts, with its title and caption."""

    def figures(self, block: Figures) -> T:
        """Numbers with their intervals."""
        return self.table(figure_table(block))

    def grid(self, block: Grid) -> T:
        """Figures of names by columns."""
        return self.table(grid_table(block))

    @abstractmethod
    def finding(self, block: Finding) -> T:
        """Its code and sentence, why it matters, its figure and its examples."""

    @abstractmethod
    def verdict(self, block: Verdict) -> T:
        """The question, the sentence and the evidence."""

    def chart(self, block: Chart) -> T:
        """The figures of the chart."""
        return self.figures(as_figures(block))

    @abstractmethod
    def gallery(self, block: Gallery) -> T:
        """Samples."""

    @abstractmethod
    def notes(self, block: Notes) -> T:
        """Warnings."""

    @abstractmethod
    def folded(self, block: Folded) -> T:
        """What a reader opens."""

    @abstractmethod
    def drawing(self, block: Drawing) -> T:
        """A drawing, in HTML only."""

    @abstractmethod
    def page(self, blocks: Sequence[Block]) -> str:
        """All blocks as one text."""


def renderer_of(format_: str) -> Renderer[object]:
    """The renderer of a `--format`."""
    module, _, name = FORMATS[format_].partition(".")
    renderer: Renderer[object] = getattr(import_module(f"multimodal_eval.display.{module}"), name)()
    return renderer


def rendered(blocks: Sequence[Block], format_: str) -> str:
    """The blocks as text."""
    return renderer_of(format_).page(blocks)


# The blocks of a result, found by its class, and the result in every format. `core.display` calls this module.

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
