"""An agreement report as tables on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multimodal_eval.cli.show import DASH, as_text, console, interval, number, table_of
from multimodal_eval.cli.terminal import warning

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.stats.agreement_report import AgreementReport, Consensus
    from multimodal_eval.stats.resampling import Agreement

SHOWN_LABELS = 20
SHOWN_SHARES = 8  # annotators whose shares are shown next to the label counts
SHOWN_ANNOTATORS = 50


def show_agreement(report: AgreementReport) -> None:
    """Print the coefficients, annotators, pairs, labels and estimated accuracies."""
    out = console()
    units = report.units
    title = f"agreement, {units.total:,} units, {len(report.annotators):,} annotators, {report.level} labels"
    out.print(_figures(title, report.figures))
    out.print(_annotators(report))
    if report.pairs:
        out.print(_pairs(report))
    if report.labels is not None:
        out.print(_labels(report))
    consensus = report.consensus
    if consensus is not None:
        out.print(_accuracy(report, consensus))
        out.print(
            f"one label per unit: Dawid-Skene ({consensus.iterations} iterations) differs from the majority vote in "
            f"{consensus.differs_from_majority:,} of {consensus.n_units:,} units; "
            f"the vote is tied in {consensus.majority_ties:,}",
            soft_wrap=True,
        )
    out.print(
        f"units: {units.compared:,} compared, {units.unanimous:,} of them unanimous; "
        f"excluded: {units.one_rating:,} with one label, {units.no_rating:,} with none",
        soft_wrap=True,
    )
    for note in _notes(report):
        out.print(warning(note), soft_wrap=True)
    method = f"{report.figures[0].method}, seed {report.settings.seed}"
    out.print(f"\nintervals: {as_text(method)}", style="dim", soft_wrap=True)


def _table(title: str, first: str, *others: str) -> Table:
    return table_of(title, [first], list(others))


def _cells(figure: Agreement | None) -> list[str]:
    return [DASH, DASH] if figure is None else [number(figure.value), interval(figure.low, figure.high)]


def _figures(title: str, figures: list[Agreement]) -> Table:
    table = _table(title, "coefficient", "value", "std. error", "95 % interval", "units", "annotators")
    for figure in figures:
        value, between = _cells(figure)
        name = figure.name if figure.value is not None else f"{figure.name} (undefined)"
        table.add_row(name, value, number(figure.stderr), between, f"{figure.n_units:,}", str(figure.n_annotators))
    return table


def _annotators(report: AgreementReport) -> Table:
    table = _table("annotators", "annotator", "labels", "agrees with others", "95 % interval")
    for person in report.annotators[:SHOWN_ANNOTATORS]:
        table.add_row(as_text(person.name), f"{person.n_ratings:,}", *_cells(person.agreement))
    return table


def _accuracy(report: AgreementReport, consensus: Consensus) -> Table:
    """The accuracies estimated by Dawid-Skene, and those against the gold labels."""
    gold = consensus.majority_gold_accuracy is not None
    heads = ["estimated", "95 % interval", *(["against gold", "95 % interval"] if gold else [])]
    table = _table("accuracy", "", *heads)
    for person in report.annotators[:SHOWN_ANNOTATORS]:
        against = _cells(person.gold_accuracy) if gold else []
        table.add_row(as_text(person.name), *_cells(person.estimated_accuracy), *against)
    if gold:
        table.add_row("majority vote", "", "", *_cells(consensus.majority_gold_accuracy), style="bold")
        table.add_row("Dawid-Skene", "", "", *_cells(consensus.dawid_skene_gold_accuracy), style="bold")
    return table


def _pairs(report: AgreementReport) -> Table:
    table = _table("pairs", "annotators", report.pairs[0].kappa.name, "95 % interval", "units")
    for pair in report.pairs:
        names = as_text(" and ".join(pair.annotators))
        table.add_row(names, *_cells(pair.kappa), f"{pair.kappa.n_units:,}")
    return table


def _labels(report: AgreementReport) -> Table:
    people = report.annotators if len(report.annotators) <= SHOWN_SHARES else []
    table = _table("labels", "label", "count", *(as_text(person.name) for person in people))
    labels = report.labels or {}
    for label, count in list(labels.items())[:SHOWN_LABELS]:
        shares = [f"{person.labels.get(label, 0) / max(person.n_ratings, 1):.1%}" for person in people]
        table.add_row(as_text(label), f"{count:,}", *shares)
    return table


def _notes(report: AgreementReport) -> list[str]:
    figures = [*report.figures, *(pair.kappa for pair in report.pairs)]
    notes = [f"{figure.name}: {figure.reason}" for figure in figures if figure.reason]
    if report.labels is not None and len(report.labels) > SHOWN_LABELS:
        notes.append(f"{len(report.labels) - SHOWN_LABELS:,} rarer labels are not shown; --format json has them")
    if len(report.annotators) > SHOWN_ANNOTATORS:
        more = len(report.annotators) - SHOWN_ANNOTATORS
        notes.append(f"{more:,} more annotators are not shown; --format json has them")
    return list(dict.fromkeys([*notes, *report.notes]))
