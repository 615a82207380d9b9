"""`mmeval meta`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import (
    MetricOption,
    RunLocation,
    data_format_option,
    input_options,
    options_by_metric,
    plugin_option,
    progress_bar,
)

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.analysis.meta import MetaEvaluation, MetricPair

# The same as in stats.correlation, which imports NumPy; a test compares the two.
COEFFICIENTS = {"tau_b": "tau-b", "tau_c": "tau-c", "spearman": "Spearman", "pearson": "Pearson", "acc_eq": "acc_eq"}


@click.command()
@click.argument("data", type=RunLocation())
@click.option("--human", help="Name the columns of human scores, separated by commas: one per annotator.")
@click.option("--metrics", help="Score the samples with these metrics: bleu,bleu.bleu_1,cider_d.")
@click.option("--scores", help="Name the columns with metric values that are already computed.")
@click.option("--lower", help="Name the columns of --scores for which lower is better.")
@click.option(
    "--format-in",
    type=click.Choice(["flickr8k-expert", "flickr8k-cf"]),
    help="Read these judgments of a Flickr8k folder. The default is those in the folder.",
)
@click.option("--coefficient", type=click.Choice(list(COEFFICIENTS)), help="Compare the metrics by this coefficient.")
@click.option(
    "--option",
    "options",
    type=MetricOption(),
    multiple=True,
    help="Set an option of a metric, such as meteor.variant=fmean.",
)
@plugin_option
@data_format_option
@input_options
def meta(data: Any, format_: str, **params: Any) -> None:
    """Measure how well metrics agree with the human judgments in DATA.

    DATA is a file with a column of human scores, a run folder whose samples have one (for a judge, this also shows
    kappa and a calibration curve; --human may then be a file of labels), or a folder with the judgments of
    Flickr8k (ExpertAnnotations.txt or CrowdFlowerAnnotations.txt, and Flickr8k.token.txt; plain or .gz).
    """
    from multimodal_eval.data.readers import limits
    from multimodal_eval.run.meta import Request, meta_evaluate

    request = Request(
        **{key: _names(params[key]) for key in ("human", "metrics", "scores", "lower")},
        format_in=params["format_in"],
        coefficient=params["coefficient"],
        options=options_by_metric(params["options"]),
        plugins=params["plugins"],
        map=dict(params["mapping"]) or None,
        limit=params["limit"],
        allow_partial=params["allow_partial"],
        format=params["log_format"],
    )
    with limits.using(params["max_expansion"], params["max_record_mb"]), progress_bar() as progress:
        results = meta_evaluate(data, request, progress=progress)
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json(results.to_dict()).decode(), nl=False)
    else:
        _show(results)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))


def _show(results: MetaEvaluation) -> None:
    from multimodal_eval.cli.show import as_text, console, fits, show_calibration
    from multimodal_eval.cli.terminal import warning

    out = console()
    wide = _coefficients_table(results)
    out.print(wide if fits(out, wide) else _coefficients_list(results))
    if len(results.metrics) > 1:
        wide = _comparison_table(results)
        out.print(wide if fits(out, wide) else _comparison_list(results))
        out.print("* differs beyond chance: Holm-corrected p at most 0.05", style="dim")
    for name, calibration in results.calibrations.items():
        show_calibration(name, calibration, out)
    lines = [f"{left.judgments:,} judgments excluded: {left.reason}" for left in results.left_out]
    for line in [*lines, *results.notes, *_undefined(results)]:
        out.print(warning(line), soft_wrap=True)
    signatures = dict.fromkeys(text for text in results.signatures.values() if text)
    if signatures:
        out.print("\nsignatures", style="bold")
    for signature in signatures:
        out.print(f"  {as_text(signature)}", style="dim", soft_wrap=True)


def _coefficients_table(results: MetaEvaluation) -> Table:
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, interval, number

    table = Table(title=_title(results), title_justify="left", title_style="bold", show_lines=True)
    table.add_column("metric")
    for head in COEFFICIENTS.values():
        table.add_column(head, justify="right")
    table.add_column("epsilon", justify="right")
    for name, figures in results.metrics.items():
        shown = [figures[kind] for kind in COEFFICIENTS]
        cells = [f"{number(figure.value)}\n{interval(figure.low, figure.high)}" for figure in shown]
        epsilon = figures["acc_eq"].epsilon
        table.add_row(as_text(name), *cells, "" if epsilon is None else f"{epsilon:.4g}")
    return table


def _title(results: MetaEvaluation) -> str:
    return (
        f"agreement with {results.n_judgments:,} human judgments of {results.n_samples:,} samples "
        f"in {results.n_clusters:,} clusters, with {results.level:.0%} intervals"
    )


def _coefficients_list(results: MetaEvaluation) -> Table:
    """The same for a narrow terminal: one row per metric and coefficient."""
    from multimodal_eval.cli.show import as_text, interval, number, table_of

    table = table_of(_title(results), ["metric", "coefficient"], ["value", f"{results.level:.0%} interval", "epsilon"])
    for name, figures in results.metrics.items():
        shown = as_text(name)
        for kind, head in COEFFICIENTS.items():
            figure = figures[kind]
            epsilon = "" if figure.epsilon is None else f"{figure.epsilon:.4g}"
            table.add_row(shown, head, number(figure.value), interval(figure.low, figure.high), epsilon)
            shown = ""
        table.add_section()
    return table


def _comparison_list(results: MetaEvaluation) -> Table:
    """The same for a narrow terminal: one row per pair."""
    from multimodal_eval.cli.show import as_text, number, table_of
    from multimodal_eval.core.display import p_value

    title = f"{COEFFICIENTS[results.coefficient]} of A minus that of B, and the corrected p"
    table = table_of(title, ["A", "B"], ["A - B", "p (Holm)", ""])
    for pair in results.pairs:
        difference = number(None) if pair.difference is None else f"{pair.difference:+.4f}"
        mark = "*" if pair.better else ""
        table.add_row(as_text(pair.metric), as_text(pair.other), difference, p_value(pair.p_holm), mark)
    return table


def _comparison_table(results: MetaEvaluation) -> Table:
    """The differences, row minus column."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text

    title = f"{COEFFICIENTS[results.coefficient]} of the row minus that of the column, and the corrected p"
    table = Table(title=title, title_justify="left", title_style="bold", show_lines=True)
    names = list(results.metrics)
    table.add_column("")
    for name in names:
        table.add_column(as_text(name), justify="right")
    cells = {}
    for pair in results.pairs:
        cells[pair.metric, pair.other] = _difference(pair, 1)
        cells[pair.other, pair.metric] = _difference(pair, -1)
    for row in names:
        table.add_row(as_text(row), *(cells.get((row, column), "") for column in names))
    return table


def _difference(pair: MetricPair, sign: int) -> str:
    from multimodal_eval.core.display import DASH, p_comparison

    if pair.difference is None:
        return DASH
    mark = " *" if pair.better else ""
    corrected = DASH if pair.p_holm is None else p_comparison(pair.p_holm)
    return f"{sign * pair.difference:+.4f}{mark}\n{corrected}"


def _undefined(results: MetaEvaluation) -> list[str]:
    """Why cells of the table are empty; cells with the same reason share a line."""
    reasons: dict[str, list[str]] = {}
    for name, figures in results.metrics.items():
        for kind, head in COEFFICIENTS.items():
            if figures[kind].low is None:
                reasons.setdefault(f"{name}: {figures[kind].method}", []).append(head)
    return [f"{line} ({', '.join(heads)})" for line, heads in reasons.items()]
