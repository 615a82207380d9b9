"""An imported run: the harness, and its own results beside the means of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Folded, Row, Table, Text
from multimodal_eval.display.names import printed

if TYPE_CHECKING:
    from multimodal_eval.analysis.harness_scores import SideBySide
    from multimodal_eval.data.runs.run import Run

__all__ = ["beside_blocks", "import_blocks"]


def import_blocks(run: Run) -> Iterator[Block]:
    """Where the scores are from, and how the means of the run compare with the results of the harness."""
    info = run.info.imported
    if info is None:
        return
    from multimodal_eval.run.import_log import own_means

    facts = {"": info.version, "model ": info.model, "task ": info.task}
    listed = "".join(f", {name}{value}" if name else f" {value}" for name, value in facts.items() if value)
    yield Text(f"imported from {info.harness}{listed}", tone="strong")
    means = own_means(run)
    for mean in means:
        where = f"{mean.log}: " if mean.log else ""
        line = f"{where}{mean.metric}: {mean.explanation}"
        yield Text(f"  {line}") if mean.is_equal else Finding(line)
    yield from map(Finding, info.notes)
    rows = [
        FigureRow(replace(each.entry, name=each.metric), (each.metric, each.log or ""), after=[f"{each.stated:,.6g}"])
        for each in means
    ]
    if rows:
        table = Figures(rows, ("metric", "log"), (), ("harness",), "here", with_parts=False)
        yield Folded("results of the harness beside the means here", [table])
    settings = [Row(["files", ", ".join(info.files)]), *(Row([n, str(v)]) for n, v in info.settings.items())]
    yield Folded("files and settings of the harness", [Table(["setting", "value"], settings, 2)])


def beside_blocks(pairs: list[SideBySide]) -> Iterator[Block]:
    """The scores of the harness beside those of our metrics for the same answers."""
    rows = [
        FigureRow(
            replace(pair.difference, n_scored=pair.samples, n_total=pair.samples),
            (pair.harness_metric, printed(pair.our_metric)),
            before=[f"{each.value:.4f}" if each.value is not None else "" for each in (pair.harness, pair.ours)],
            after=[f"{pair.differing:,}"],
        )
        for pair in pairs
    ]
    if rows:
        yield Figures(
            rows,
            ("score of the harness", "our metric"),
            ("harness", "ours"),
            ("differ",),
            "ours - harness",
            "scores of the harness beside our metrics",
            "means over the samples that have both scores; differ: samples with different scores",
            is_difference=True,
            counts="samples",
        )
