"""How well annotators agree, and what the correct labels are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Row, Table, Text
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.stats.agreement_report import AgreementReport, Consensus
    from multimodal_eval.stats.resampling import Agreement

__all__ = ["agreement_figure", "agreement_report_blocks", "coefficient_row", "consensus_line"]

_LABELS = 20
_SHARES = 8  # annotators whose shares are shown next to the label counts
_ANNOTATORS = 50


def agreement_figure(agreement: Agreement, name: str = "", total: int | None = None) -> Figure:
    """A coefficient as a figure; its units are what it counts."""
    return Figure(
        agreement.value,
        agreement.stderr,
        agreement.low,
        agreement.high,
        agreement.method,
        n_scored=agreement.n_units,
        n_total=total,
        direction="higher",
        name=name or agreement.name,
    )


def coefficient_row(agreement: Agreement, name: str = "", total: int | None = None) -> FigureRow:
    """A coefficient, defined or not."""
    shown = name or agreement.name
    shown = shown if agreement.value is not None else f"{shown} (undefined)"
    return FigureRow(agreement_figure(agreement, shown, total))


def agreement_report_blocks(report: AgreementReport) -> Iterator[Block]:
    """The coefficients, annotators, pairs, labels and estimated accuracies."""
    units, people = report.units, report.annotators[:_ANNOTATORS]
    people_counted = counted(len(report.annotators), "annotator")
    title = f"agreement, {counted(units.total, 'unit')}, {people_counted}, {report.level} labels"
    seed = f"seed {report.settings.seed}"
    rows = [
        replace(coefficient_row(figure, total=units.total), after=[str(figure.n_annotators)])
        for figure in report.figures
    ]
    yield Figures(rows, ("coefficient",), (), ("annotators",), "value", title, seed, counts="units")
    shown = [
        FigureRow(agreement_figure(person.agreement, person.name), before=[f"{person.n_ratings:,}"])
        for person in people
    ]
    yield Figures(shown, ("annotator",), ("labels",), (), "agrees with others", "annotators", counts="units")
    if report.pairs:
        pairs = [FigureRow(agreement_figure(pair.kappa, " and ".join(pair.annotators))) for pair in report.pairs]
        yield Figures(pairs, ("annotators",), value=report.pairs[0].kappa.name, title="pairs", counts="units")
    if report.labels is not None:
        yield _labels(report)
    if report.consensus is not None:
        yield from _accuracy(report, report.consensus)
        iterations = f"Dawid-Skene ({report.consensus.iterations} iterations)"
        yield Text(consensus_line(report.consensus, "unit", iterations))
    yield Text(
        f"units: {units.compared:,} compared, {units.unanimous:,} of them unanimous; "
        f"excluded: {units.one_rating:,} with one label, {units.no_rating:,} with none"
    )
    yield from map(Finding, _notes(report))


def consensus_line(consensus: Consensus, unit: str, estimate: str = "Dawid-Skene") -> str:
    """How often the estimated labels differ from the majority vote."""
    return (
        f"one label per {unit}: {estimate} differs from the majority vote in {consensus.differs_from_majority:,} of "
        f"{consensus.n_units:,} {unit}s; the vote is tied in {consensus.majority_ties:,}"
    )


def _accuracy(report: AgreementReport, consensus: Consensus) -> Iterator[Figures]:
    """The accuracies estimated by Dawid-Skene, and those against the gold labels."""
    people = report.annotators[:_ANNOTATORS]
    estimated = [
        FigureRow(agreement_figure(person.estimated_accuracy, person.name))
        for person in people
        if person.estimated_accuracy is not None
    ]
    title = "accuracy, estimated by Dawid-Skene"
    yield Figures(estimated, ("annotator",), value="accuracy", title=title, counts="units")
    votes = {"majority vote": consensus.majority_gold_accuracy, "Dawid-Skene": consensus.dawid_skene_gold_accuracy}
    if consensus.majority_gold_accuracy is not None:
        by_name = {person.name: person.gold_accuracy for person in people}
        rows = [FigureRow(agreement_figure(each, name)) for name, each in by_name.items() if each is not None]
        rows += [
            FigureRow(agreement_figure(each, name), is_strong=True) for name, each in votes.items() if each is not None
        ]
        yield Figures(rows, ("",), value="accuracy", title="accuracy against the gold labels", counts="units")


def _labels(report: AgreementReport) -> Table:
    people = report.annotators if len(report.annotators) <= _SHARES else []
    rows = []
    for label, count in list((report.labels or {}).items())[:_LABELS]:
        shares = [f"{person.labels.get(label, 0) / max(person.n_ratings, 1):.1%}" for person in people]
        rows.append(Row([label, f"{count:,}", *shares]))
    return Table(["label", "count", *(person.name for person in people)], rows, title="labels")


def _notes(report: AgreementReport) -> list[str]:
    figures = [*report.figures, *(pair.kappa for pair in report.pairs)]
    notes = [f"{figure.name}: {figure.reason}" for figure in figures if figure.reason]
    if report.labels is not None and len(report.labels) > _LABELS:
        notes.append(f"{len(report.labels) - _LABELS:,} rarer labels are not shown; --format json has them")
    if len(report.annotators) > _ANNOTATORS:
        more = len(report.annotators) - _ANNOTATORS
        notes.append(f"{more:,} more annotators are not shown; --format json has them")
    return list(dict.fromkeys([*notes, *report.notes]))
