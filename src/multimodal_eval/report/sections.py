"""The sections of a report, as blocks: scores and comparison, then what explains them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_config import DECIDED
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Folded, Row, Table, Text, Verdict
from multimodal_eval.display.of_comparison import crosswalk_blocks, run_comparison_blocks, why_blocks
from multimodal_eval.display.of_generation import generation_blocks
from multimodal_eval.display.of_judges import asked_table, figures_of_judge, judge_findings_blocks
from multimodal_eval.display.of_rankings import rating_table_blocks, sensitivity_blocks
from multimodal_eval.display.of_run import beside_blocks, composite_table, import_blocks, remark_of
from multimodal_eval.display.of_scores import classification_blocks, dialogue_report_blocks
from multimodal_eval.display.run_findings import findings_of_runs, warnings_of
from multimodal_eval.report.one_run import JudgeView, OneRun

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.analysis.composite import Sensitivity
    from multimodal_eval.analysis.run_slices import Slices
    from multimodal_eval.analysis.why import Why

__all__ = ["Section", "details_of", "judge_section", "results_of", "slice_blocks"]

_OF_PART = 5  # samples of a part of a difference


@dataclass(frozen=True)
class Section:
    """A section of the page; `name` is what the menu calls it."""

    id: str
    name: str
    title: str
    blocks: Sequence[Block]


def results_of(
    runs: Sequence[OneRun], metrics: Sequence[str], main: str, comparison: RunComparison | None
) -> Iterator[Section]:
    """What is before the samples: the scores, ratings and the comparison."""
    yield Section("numbers", "Scores", "Scores", list(_scores(runs, metrics, main)))
    if ratings := list(_ratings(runs)):
        yield Section("ratings", "Ratings", "Ratings", ratings)
    if comparison is not None:
        shown = run_comparison_blocks(comparison, with_scores=False)
        blocks = [block for block in shown if not isinstance(block, Verdict)]
        yield Section("comparison", "Comparison", "Comparison", blocks)


def details_of(
    runs: Sequence[OneRun], metrics: Sequence[str], main: str, sensitivity: Sensitivity | None, why: Why | None = None
) -> Iterator[Section]:
    """What is after the samples: warnings, and what explains the scores."""
    if why is not None and why.difference:
        yield Section("why", "Difference", "Where the difference comes from", list(why_blocks(why, _OF_PART)))
    yield Section("warnings", "Warnings", "Warnings", list(_warnings(runs)))
    if sensitivity is not None:
        title = "How the composite depends on its weights"
        yield Section("weights", "Weights", title, list(sensitivity_blocks(sensitivity)))
    parts = {
        ("imports", "Harness", "Scores of the harness"): _imports,
        ("crosswalk", "Rules", "The same answers under different rules"): _crosswalks,
        ("classes", "Classes", "Classes and annotators"): _classes,
        ("dialogues", "Dialogues", "Dialogues by type"): _dialogues,
        ("generation", "Generation", "Generation"): _generation,
        ("judges", "Judges", "Judges"): _judges,
    }
    if slices := list(_slices(runs, metrics, main)):
        yield Section("slices", "Slices", "Slices", slices)
    for (name, menu, title), blocks_of in parts.items():
        if blocks := list(blocks_of(runs)):
            yield Section(name, menu, title, blocks)


def _scores(runs: Sequence[OneRun], metrics: Sequence[str], main: str) -> Iterator[Block]:
    several = len(runs) > 1
    with_parts = not several or any(run.entries[name].value is None for run in runs for name in metrics)
    yield _table(runs, metrics, main, with_parts=with_parts)
    if several and not with_parts and any(runs[0].entries[name].parts for name in metrics):
        having = [name for name in metrics if runs[0].entries[name].parts]
        yield Folded("Parts of the metrics", [_table(runs, having, main, with_parts=True)])
    for run in runs:
        for compared in run.comparisons.values():
            of = f" of {run.name}" if several else ""
            yield Text(f"{compared.metric}{of}: {compared.what}. {compared.conclusion}".rstrip())
    yield from _composites(runs)
    if rows := list(_unscored(runs, metrics)):
        heads = ["metric", *(["run"] if several else []), "status", "most frequent reasons", "unscored"]
        yield Folded("Unscored samples by metric", [Table(heads, rows, len(heads) - 1)])


def _table(runs: Sequence[OneRun], metrics: Sequence[str], main: str, *, with_parts: bool) -> Figures:
    """Every metric of every run with its interval; a metric is named once."""
    several = len(runs) > 1
    rows = []
    for name in metrics:
        for place, run in enumerate(runs):
            figure = run.run.figures[name]
            names = ("" if place else name, run.name) if several else (name,)
            compared = run.comparisons.get(name)
            is_main = name == main and (compared is None or compared.is_score)
            rows.append(
                FigureRow(
                    figure,
                    names,
                    remark=remark_of(run.run, name),
                    is_main=is_main,
                    is_strong=is_main,
                    series=place % 6 + 1 if several else 1,
                )
            )
    return Figures(rows, ("metric", "run") if several else ("metric",), with_parts=with_parts)


def _composites(runs: Sequence[OneRun]) -> Iterator[Block]:
    """The parts of the composites, one table for the runs with the same parts and weights."""
    groups: dict[tuple[tuple[str, float], ...], list[OneRun]] = {}
    for run in runs:
        if run.composite is not None:
            weights = tuple((part.enters_as, part.weight) for part in run.composite.parts)
            groups.setdefault(weights, []).append(run)
    for group in groups.values():
        parts = {run.name: run.composite for run in group if run.composite is not None}
        means = [
            f"{name}: {known.explanation}" if len(runs) > 1 else known.explanation for name, known in parts.items()
        ]
        how = "each part enters a sample's composite with its normalised value times its weight"
        table = replace(composite_table(parts), caption="; ".join([*means, how]))
        yield Folded("The parts of the composite", [table])


def _unscored(runs: Sequence[OneRun], metrics: Sequence[str]) -> Iterator[Row]:
    """Why samples are unscored, by metric and run."""
    for name in metrics:
        for run in runs:
            entry, judging = run.entries[name], run.run.info.judging.get(name)
            skipped = 0 if judging is None else judging.skipped
            left = entry.coverage.missing - skipped
            if not left and not skipped:
                continue
            kinds = (
                ", ".join(f"{count:,} {status}" for status, count in entry.coverage.unscored.items()) if left else ""
            )
            reasons = [f"{each.count:,} × {each.reason}" for each in entry.coverage.reasons if each.reason != DECIDED]
            early = [f"not needed after an early stop: {skipped:,}"] if skipped else []
            where = [run.name] if len(runs) > 1 else []
            yield Row([name, *where, kinds, "; ".join([*early, *reasons]), f"{left:,} of {entry.n_total:,}"])


def _ratings(runs: Sequence[OneRun]) -> Iterator[Block]:
    for run in runs:
        for compared in run.comparisons.values():
            if compared.ratings is not None:
                if len(runs) > 1:
                    yield Text(run.name, tone="strong")
                yield from rating_table_blocks(compared.ratings)


def _warnings(runs: Sequence[OneRun]) -> Iterator[Block]:
    findings = findings_of_runs({run.name: warnings_of(run.run, run.findings or (), explained=True) for run in runs})
    yield from findings
    if not findings:
        yield Text("None.")
    if unlinted := [run.name for run in runs if run.findings is None]:
        which = f"Not linted: {', '.join(unlinted)}." if len(runs) > 1 else "The answers were not linted."
        yield Text(f"{which} `mmeval lint` checks them.", tone="quiet")


def _slices(runs: Sequence[OneRun], metrics: Sequence[str], main: str) -> Iterator[Block]:
    """The slices by every column that all runs have."""
    for first in runs[0].slices:
        by_run = {run.name: next((s for s in run.slices if s.column == first.column), None) for run in runs}
        known = {name: slices for name, slices in by_run.items() if slices is not None}
        if len(known) == len(runs):
            yield Text(f"By {first.column}{'' if first.asked else ' (computed for this report)'}", tone="strong")
            yield from slice_blocks(known, runs[0].entries, metrics, main)


def slice_blocks(
    slices: Mapping[str, Slices], entries: Mapping[str, Figure], metrics: Sequence[str], main: str
) -> Iterator[Block]:
    """The headline in every slice, then the other metrics."""
    shown = [name for name in metrics if any(name in v for s in slices.values() for v in s.values.values())]
    leading = main if main in shown else shown[-1] if shown else ""
    for name in sorted(shown, key=lambda name: name != leading):
        table = _sliced(slices, entries, name)
        yield table if name == leading else Folded(f"{name} by {next(iter(slices.values())).column}", [table])


def _sliced(slices: Mapping[str, Slices], entries: Mapping[str, Figure], metric: str) -> Figures:
    several = len(slices) > 1
    column = next(iter(slices.values())).column
    rows = []
    for value in dict.fromkeys(value for each in slices.values() for value in each.values):
        label = value
        for place, (run, each) in enumerate(slices.items(), 1):
            figure = each.values.get(value, {}).get(metric)
            if figure is None or (figure.value is None and not figure.parts):
                continue
            names = (label, run) if several else (label,)
            described = changed(figure, name=metric, direction=entries[metric].better, kind=None)
            rows.append(FigureRow(described, names, series=place % 6 or 6 if several else 1))
            label = ""
    return Figures(rows, (column, "run") if several else (column,), title=metric, with_parts=False)


def _imports(runs: Sequence[OneRun]) -> Iterator[Block]:
    for run in runs:
        if run.imported is not None:
            if len(runs) > 1:
                yield Text(run.name, tone="strong")
            if run.imported.info is None:
                yield Text("The samples come from a log, which also has scores of its harness.")
            yield from import_blocks(run.run)
            yield from beside_blocks(run.imported.beside)


def _crosswalks(runs: Sequence[OneRun]) -> Iterator[Block]:
    """The rules of all runs side by side, then each run."""
    crossed = {run.name: run.crosswalk for run in runs if run.crosswalk is not None}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, each in crossed.items():
        groups.setdefault((each.metric, each.option, *(rule.rule for rule in each.rules)), []).append(name)
    for (metric, option, *rules), names in groups.items():
        if len(names) < 2:
            continue
        rows = []
        for place, rule in enumerate(rules):
            for number_of_run, name in enumerate(names):
                score = crossed[name].rules[place]
                figure = changed(score.score, n_scored=score.scored, n_total=crossed[name].samples, direction="higher")
                rows.append(FigureRow(figure, ("" if number_of_run else rule, name), series=number_of_run % 6 + 1))
        yield Figures(rows, (option, "run"), title=f"{metric} by {option}, runs side by side")
    for name, each in crossed.items():
        if len(runs) > 1:
            yield Text(name, tone="strong")
        yield from crosswalk_blocks(each)


def _classes(runs: Sequence[OneRun]) -> Iterator[Block]:
    for run in runs:
        if run.classification is not None:
            if len(runs) > 1:
                yield Text(run.name, tone="strong")
            for block in classification_blocks(run.classification):
                yield from block.blocks if isinstance(block, Folded) else [block]


def _dialogues(runs: Sequence[OneRun]) -> Iterator[Block]:
    for run in runs:
        if run.dialogue is not None:
            if len(runs) > 1:
                yield Text(run.name, tone="strong")
            yield from dialogue_report_blocks(run.dialogue)


def _generation(runs: Sequence[OneRun]) -> Iterator[Block]:
    if summaries := {run.name: run.generation for run in runs if run.generation is not None}:
        yield from generation_blocks(summaries)


def _judges(runs: Sequence[OneRun]) -> Iterator[Block]:
    """The judges side by side, then each of them."""
    views = [(run, judge) for run in runs for judge in run.judges]
    if len(views) > 1:
        by_name: dict[str, list[FigureRow]] = {}
        for run, judge in views:
            for row in figures_of_judge(judge.findings):
                name = row.figure.name or ""
                named = replace(row, names=("" if name in by_name else name, f"{judge.metric}, {run.name}"))
                by_name.setdefault(name, []).append(named)
        rows = [row for rows in by_name.values() for row in rows]
        yield Figures(rows, ("finding", "judge"), value="value", title="the judges side by side", counts="of")
    for run, judge in views:
        yield Text(f"{judge.metric}{f' of {run.name}' if len(runs) > 1 else ''}", tone="strong")
        yield from judge_section(judge)


def judge_section(judge: JudgeView) -> Iterator[Block]:
    """What was asked, and what is known about the verdicts."""
    yield asked_table(judge.findings, judge.judging, judge.form)
    yield from judge_findings_blocks(judge.findings)
    if judge.findings.flips is not None:
        yield Text(
            "A judge without a preference for a place gives half of its verdicts to the answer that is shown first. "
            "Pairs whose two verdicts disagree count as ties.",
            tone="quiet",
        )
