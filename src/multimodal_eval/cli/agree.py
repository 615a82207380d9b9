"""`mmeval agree`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Params, format_option
from multimodal_eval.cli.show import DASH, as_text, console, interval, number, table_of
from multimodal_eval.cli.terminal import warning
from multimodal_eval.core.levels import LEVELS

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.data.labels.annotations import Layout
    from multimodal_eval.stats.agreement_report import AgreementReport, Consensus
    from multimodal_eval.stats.resampling import Agreement

_WAYS = (
    "name the label columns in one of three ways: --annotators 'annotator*' (one column per annotator), "
    "--annotations COLUMN (all in one column), or --unit, --annotator and --label together (one rating per row)"
)


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--annotators", help="Name one column per annotator: ann1,ann2,ann3, or 'annotator*'.")
@click.option("--annotations", help="Name one column with all labels: an object annotator -> label, or a list.")
@click.option(
    "--unit", help="Name the column that identifies the unit; with --annotator and --label, each row is one rating."
)
@click.option("--annotator", help="Name the column with the annotator's name, if each row is one rating.")
@click.option("--label", help="Name the column with the label, if each row is one rating.")
@click.option(
    "--level", type=click.Choice(LEVELS), default="nominal", show_default=True, help="Set the level of measurement."
)
@click.option("--order", help="Give the order of ordinal labels, lowest first: low,mid,high.")
@click.option(
    "--weights",
    type=click.Choice(["none", "linear", "quadratic"]),
    help="Set the weights of Cohen's kappa at the ordinal level.  [default: quadratic]",
)
@click.option("--group", help="Name the column that groups dependent units, for the intervals.")
@click.option("--gold", help="Name a column with the correct label, and show each annotator's accuracy.")
@click.option(
    "--resamples", type=click.IntRange(0), default=1000, show_default=True, help="Draw this many bootstrap resamples."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Set the seed of the bootstrap.")
@format_option
def agree(data: Path, level: Any, format_: str, **params: Any) -> None:
    """Measure how well the annotators of DATA agree, and estimate the correct labels.

    Files: JSONL, JSON, CSV, TSV, Parquet, also .gz and .zst. An empty cell is a missing label.

    Without options, DATA is a file of labels of `mmeval view --label`: `id`, `annotator`, `label`, and `run` and
    `metric` if there are several. Of several labels of an annotator for an answer, the last one counts.
    """
    layout = _layout(params)
    order = _order(params["order"], level)
    weights = _weights(params["weights"], level)
    if params["gold"] and level not in ("nominal", "ordinal"):
        raise click.UsageError("--gold compares labels and needs --level nominal or ordinal")

    from multimodal_eval.core.errors import InputError
    from multimodal_eval.data.labels.annotations import read_annotations
    from multimodal_eval.stats.agreement_report import Settings, agreement_report
    from multimodal_eval.stats.ratings import Ratings

    try:
        read = read_annotations(data, layout, scale=level, order=order, group=params["group"], gold=params["gold"])
    except InputError as error:
        if layout is None and [problem.code for problem in error.problems] == ["EMPTY"]:
            raise click.UsageError(f"{data} has no column `label` with labels: {_WAYS}") from None
        raise
    ratings = Ratings(read.codes, read.labels, ordered=level != "nominal")
    settings = Settings(level, weights, read.groups, params["resamples"], params["seed"])
    report = agreement_report(ratings, read.annotators, settings, read.gold)
    _show(report, format_)


def _layout(params: Params) -> Layout | None:
    """Which columns hold the labels, in exactly one of three ways; None for a file of labels with its own columns."""
    from multimodal_eval.data.labels.annotations import Long, Nested, Wide

    named = [name for name in ("annotators", "annotations", "annotator", "label") if params[name]]
    other_columns = (params["group"], params["gold"])
    if named == ["annotators"]:
        columns = tuple(part.strip() for part in params["annotators"].split(",") if part.strip())
        return Wide(columns, params["unit"], other_columns)
    if named == ["annotations"]:
        return Nested(params["annotations"], params["unit"])
    if named == ["annotator", "label"] and params["unit"]:
        return Long(params["unit"], params["annotator"], params["label"])
    if not named and not params["unit"]:
        return None
    raise click.UsageError(_WAYS)


def _order(text: str | None, level: str) -> list[str] | None:
    if text is None:
        return None
    if level != "ordinal":
        raise click.UsageError("--order needs --level ordinal")
    labels = [part.strip() for part in text.split(",")]
    if len(labels) < 2 or len(set(labels)) < len(labels) or "" in labels:
        raise click.UsageError(f"--order must name at least two labels, each once. Got {text!r}.")
    return labels


def _weights(name: str | None, level: str) -> Any:
    if name is not None and level != "ordinal":
        raise click.UsageError("--weights needs --level ordinal")
    if level != "ordinal" or name == "none":
        return None
    return name or "quadratic"


def _show(report: AgreementReport, format_: str) -> None:
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json(report).decode(), nl=False)
    else:
        show_agreement(report)


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
