"""`mmeval crosswalk`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import (
    KeyValue,
    data_format_option,
    engine_of,
    engine_options,
    input_options,
    overwrite_option,
    plugin_option,
    progress_bar,
    refuse_overwrite_alone,
    register_plugins,
    report_option,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from multimodal_eval.analysis.crosswalk import Crosswalk
    from multimodal_eval.data.runs.run import Run

SHOWN_TEXT = 60  # letters of an answer


@click.command()
@click.argument("data", type=click.Path(path_type=Path), metavar="RUN|DATA")
@click.argument("predictions", required=False, type=click.Path(path_type=Path))
@click.option("--metric", required=True, help="The metric whose rules are compared, such as multiple_choice.")
@click.option("--rules", help="Compare these rules, separated by commas. The default is all of the metric.")
@click.option(
    "--option", "options", type=KeyValue(), multiple=True, help="Set another option of the metric: random=expected."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Store the run in this folder. The default is runs/<time>."
)
@click.option(
    "--samples", type=click.IntRange(0), default=5, show_default=True, help="Show this many samples that differ."
)
@overwrite_option
@plugin_option
@input_options
@engine_options
@report_option
@data_format_option
def crosswalk(data: Path, predictions: Path | None, **params: Any) -> None:
    """Score the same answers under every rule of a metric.

    RUN is a run folder, whose samples are used; DATA and PREDICTIONS are files as for `mmeval score`. Caption metrics
    are scored under every tokenizer: `whitespace` is what programs do that pass raw captions.
    """
    from multimodal_eval.analysis.crosswalk import SHOWN, crosswalk_of
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.cli.show import console
    from multimodal_eval.core.records import to_json

    refuse_overwrite_alone(params)
    register_plugins(params["plugins"])
    run = _scored(data, predictions, params)
    content = crosswalk_of(run, examples=max(SHOWN, params["samples"]))
    report = write_report(run, enabled=params["wants_report"])
    if params["format_"] == "json":
        click.echo(to_json({**content.to_dict(), "run": run.folder.label}).decode(), nl=False)
        return
    out = console()
    _show(content, out, params["samples"])
    out.print(f"\nrun folder: {run.folder.label}", soft_wrap=True, markup=False)
    if report is not None:
        click.echo(f"report: {report}")


def _scored(data: Path, predictions: Path | None, params: dict[str, Any]) -> Run:
    import yaml

    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.crosswalk import crosswalk as run_crosswalk
    from multimodal_eval.run.opening import timed_folder

    rules = None if params["rules"] is None else [name.strip() for name in params["rules"].split(",") if name.strip()]
    output = params["output"] or timed_folder("crosswalk")
    is_run = (data / "run.json").is_file()
    if is_run and (predictions is not None or params["limit"] or params["mapping"] or params["allow_partial"]):
        raise click.UsageError("a run has its samples: it takes no PREDICTIONS, --limit, --map or --allow-partial")
    if is_run and params["log_format"]:
        raise click.UsageError(f"a run is not a log: it takes no --format {params['log_format']}")
    settings: dict[str, Any] = {"plugins": list(params["plugins"])} if params["plugins"] else {}
    if not is_run:
        settings |= {
            "limit": params["limit"],
            "map": dict(params["mapping"]) or None,
            "allow_partial": params["allow_partial"],
            "format": params["log_format"],
        }
    with progress_bar() as progress:
        return run_crosswalk(
            Run(data) if is_run else data,
            None if predictions is None else str(predictions),
            metric=params["metric"],
            rules=rules,
            options={name: yaml.safe_load(value) for name, value in params["options"]},
            output=output,
            overwrite=params["overwrite"],
            progress=progress,
            engine=engine_of(params),
            **settings,
        )


def _show(content: Crosswalk, out: Console, samples: int) -> None:
    out.print(_scores(content))
    out.print(
        f"Δ: difference to {content.rules[0].rule}, over the samples that both score\n"
        "unread: answers in which the rule found nothing; they have the value that its origin gives",
        style="dim",
        soft_wrap=True,
    )
    out.print(_matrix(content))
    out.print(
        f"{content.differing:,} of {content.samples:,} samples are not scored equally by all rules",
        style="bold" if content.differing else "",
    )
    if samples and content.examples:
        for table in _samples(content, samples):
            out.print(table)


def _scores(content: Crosswalk) -> Table:
    from multimodal_eval.cli.show import as_text, interval, number, table_of
    from multimodal_eval.core.display import DASH

    title = f"{content.metric} by {content.option}, {content.samples:,} samples"
    table = table_of(title, ["", content.option], ["score", "95 % interval", "Δ", "95 % of Δ", "unread", "unscored"])
    for place, rule in enumerate(content.rules, 1):
        change = rule.difference
        table.add_row(
            str(place),
            as_text(rule.rule),
            number(rule.score.value),
            interval(rule.score.low, rule.score.high),
            DASH if change is None or change.value is None else f"{change.value:+.4f}",
            DASH if change is None or change.low is None else f"{change.low:+.4f} … {change.high:+.4f}",
            f"{rule.unread:,}",
            f"{rule.unscored:,}",
        )
    return table


def _matrix(content: Crosswalk) -> Table:
    from multimodal_eval.cli.show import as_text, table_of

    numbers = [str(place) for place in range(1, len(content.rules) + 1)]
    table = table_of("samples that two rules score differently", ["", content.option], numbers)
    for place, (rule, counts) in enumerate(zip(content.rules, content.disagreements, strict=True)):
        cells = ["·" if other == place else f"{count:,}" for other, count in enumerate(counts)]
        table.add_row(str(place + 1), as_text(rule.rule), *cells)
    return table


def _samples(content: Crosswalk, count: int) -> list[Table]:
    from multimodal_eval.cli.show import as_text, table_of

    tables = []
    for sample in content.examples[:count]:
        answer = " ".join(sample.answer.split())
        shown = answer if len(answer) <= SHOWN_TEXT else f"… {answer[-SHOWN_TEXT:]}"
        table = table_of(as_text(f"{sample.id}: {shown} (gold: {sample.gold[:SHOWN_TEXT]})"), ["read", "by"], [])
        by_reading: dict[str, list[str]] = {}
        for rule, reading in zip(content.rules, sample.readings, strict=True):
            by_reading.setdefault(reading, []).append(rule.rule)
        for reading, rules in by_reading.items():
            table.add_row(as_text(reading), as_text(", ".join(rules)))
        tables.append(table)
    return tables
