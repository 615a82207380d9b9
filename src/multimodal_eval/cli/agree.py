"""`mmeval agree`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Given
from multimodal_eval.core.levels import LEVELS

if TYPE_CHECKING:
    from multimodal_eval.data.readers.layouts import Layout
    from multimodal_eval.stats.agreement_report import AgreementReport


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--annotators", help="One column an annotator: ann1,ann2,ann3, or 'annotator*'.")
@click.option("--annotations", help="One column with all labels: an object annotator -> label, or a list.")
@click.option("--unit", help="The column that names the unit; with --annotator and --label, one rating a row.")
@click.option("--annotator", help="The column that names the annotator, where a row is one rating.")
@click.option("--label", help="The column that holds the label, where a row is one rating.")
@click.option("--level", type=click.Choice(LEVELS), default="nominal", show_default=True, help="What labels are.")
@click.option("--order", help="Ordinal labels, the lowest first: low,mid,high.")
@click.option(
    "--weights",
    type=click.Choice(["none", "linear", "quadratic"]),
    help="Of Cohen's kappa at the ordinal level.  [default: quadratic]",
)
@click.option("--group", help="The column that says which units belong together, for the intervals.")
@click.option("--gold", help="A column with the right label: also show how accurate everybody is.")
@click.option("--resamples", type=click.IntRange(0), default=1000, show_default=True, help="Of the bootstrap.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the bootstrap.")
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def agree(data: Path, level: Any, format_: str, **given: Any) -> None:
    """Say how far the annotators of DATA agree, and what the right labels seem to be.

    Files: JSONL, JSON, CSV, TSV, Parquet, also .gz and .zst. An empty cell is a missing label.
    """
    layout = _layout(given)
    order = _order(given["order"], level)
    weights = _weights(given["weights"], level)
    if given["gold"] and level not in ("nominal", "ordinal"):
        raise click.UsageError("--gold compares labels and goes with --level nominal or ordinal")

    from multimodal_eval.data.labels.annotations import read_annotations
    from multimodal_eval.stats.agreement_report import Settings, agreement_report
    from multimodal_eval.stats.ratings import Ratings

    read = read_annotations(data, layout, scale=level, order=order, group=given["group"], gold=given["gold"])
    ratings = Ratings(read.codes, read.labels, ordered=level != "nominal")
    settings = Settings(level, weights, read.groups, given["resamples"], given["seed"])
    report = agreement_report(ratings, read.annotators, settings, read.gold)
    _show(report, format_)


def _layout(given: Given) -> Layout:
    """Where the labels are: exactly one of three ways."""
    from multimodal_eval.data.readers.layouts import Long, Nested, Wide

    named = [name for name in ("annotators", "annotations", "annotator", "label") if given[name]]
    besides = (given["group"], given["gold"])
    if named == ["annotators"]:
        columns = tuple(part.strip() for part in given["annotators"].split(",") if part.strip())
        return Wide(columns, given["unit"], besides)
    if named == ["annotations"]:
        return Nested(given["annotations"], given["unit"])
    if named == ["annotator", "label"] and given["unit"]:
        return Long(given["unit"], given["annotator"], given["label"])
    raise click.UsageError(
        "say where the labels are, in one of three ways: --annotators 'annotator*' (a column each), "
        "--annotations COLUMN (all in one), or --unit, --annotator and --label together (one rating a row)"
    )


def _order(text: str | None, level: str) -> list[str] | None:
    if text is None:
        return None
    if level != "ordinal":
        raise click.UsageError("--order goes with --level ordinal")
    labels = [part.strip() for part in text.split(",")]
    if len(labels) < 2 or len(set(labels)) < len(labels) or "" in labels:
        raise click.UsageError(f"--order must name two labels or more, each once. Got {text!r}.")
    return labels


def _weights(name: str | None, level: str) -> Any:
    if name is not None and level != "ordinal":
        raise click.UsageError("--weights goes with --level ordinal")
    if level != "ordinal" or name == "none":
        return None
    return name or "quadratic"


def _show(report: AgreementReport, format_: str) -> None:
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json(report).decode(), nl=False)
    else:
        from multimodal_eval.cli.show_agreement import show_agreement

        show_agreement(report)
