"""`mmeval agree`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.finish import print_result
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import Params, result_format_option
from multimodal_eval.core.levels import LEVELS

if TYPE_CHECKING:
    from multimodal_eval.data.labels.annotations import Layout

_WAYS = (
    "name the label columns in one of three ways: --annotators 'annotator*' (one column per annotator), "
    "--annotations COLUMN (all in one column), or --unit, --annotator and --label together (one rating per row)"
)


@click.command(cls=LayeredCommand)
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
@result_format_option
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
    print_result(report, format_, lambda: report)


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
