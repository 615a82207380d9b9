"""`mmeval judge pairs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.judge_options import judge_options, judge_settings
from multimodal_eval.cli.options import (
    Command,
    Params,
    RunLocation,
    media_root_option,
    output_options,
    overwrite_option,
    refuse_overwrite_alone,
)

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.analysis.preferences import Preference
    from multimodal_eval.core.judge_config import JudgeConfig
    from multimodal_eval.core.records import ComparedPair, Figure
    from multimodal_eval.data.runs.run import Run


def comparing_options(command: Command) -> Command:
    """The judge that compares two answers, and how it is asked."""
    for option in reversed(
        (
            click.option(
                "--metrics",
                "metric",
                default="judge:preference",
                show_default=True,
                help="The judge: judge:FILE.yaml with the form pairwise.",
            ),
            judge_options,
            click.option(
                "--orders",
                type=click.Choice(["both", "given", "random"]),
                help="Show every pair in both orders, A first, or in a random order.  [default: both]",
            ),
            click.option("--skip-identical", is_flag=True, help="Count equal answers as ties without asking."),
        )
    ):
        command = option(command)
    return command


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN_A [RUN_B]")
@click.option("--baseline", help="Compare RUN_A with the answers in this file, or in this column, instead of RUN_B.")
@comparing_options
@click.option("--allow-partial", is_flag=True, help="Leave out samples that only one of the runs has.")
@click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the run of the comparisons in this folder. The default is runs/<time>-metrics.",
)
@overwrite_option
@media_root_option
@output_options
def pairs(runs: tuple[Any, ...], baseline: str | None, metric: str, **params: Any) -> None:
    """Let a judge compare the answers of RUN_A with those of RUN_B, sample by sample.

    The score is the win rate of RUN_A: a win counts 1, a tie 0.5, a loss 0. Every pair is judged in both orders, and a
    pair whose verdicts disagree is a tie. Pairs with a failed answer are unscored.
    """
    from multimodal_eval.cli.finish import check_gates
    from multimodal_eval.cli.running import started
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.comparisons import answered
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.judged_pairs import judged_pairs
    from multimodal_eval.run.opening import default_folder

    if len(runs) > 2:
        raise click.UsageError("pairs compares two runs; `mmeval judge rank` compares more")
    if (len(runs) == 2) == (baseline is not None):
        raise click.UsageError("name two runs, or one run and --baseline")
    refuse_overwrite_alone(params)
    opened = [answered(location) for location in runs]
    compared = judged_pairs(
        opened[0],
        opened[1] if len(opened) == 2 else None,
        judge_with(metric, params),
        baseline=baseline,
        allow_partial=params["allow_partial"],
        media_roots=params["media_roots"],
    )
    check_gates(params, compared.plan)
    path = params["output"] or default_folder(compared.plan)
    started(compared.plan, compared.source, path, Engine(), overwrite=params["overwrite"])
    _conclude(Run(path), params)


def judge_with(metric: str, params: Params) -> JudgeConfig:
    """The judge with the settings of the command line."""
    from multimodal_eval.run.judged_pairs import judge_named
    from multimodal_eval.run.judging.settings import changed, with_settings

    settings = {"orders": params["orders"], "skip_identical": params["skip_identical"] or None}
    judge = changed(judge_named(metric), {name: value for name, value in settings.items() if value is not None})
    return with_settings(judge, judge_settings(params))


def _conclude(run: Run, params: Params) -> None:
    """Show the comparison, write the requested files, and fail if a threshold is missed."""
    from multimodal_eval.analysis.preferences import preferences_of
    from multimodal_eval.cli.finish import check_thresholds
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.core.records import to_json

    if params["jsonl"]:
        run.write_jsonl()
    report = write_report(run, enabled=params["wants_report"], media_roots=params["media_roots"])
    preferences = preferences_of(run)
    if params["format_"] == "json":
        click.echo(to_json({"run": run.folder.label, "pairs": preferences}).decode(), nl=False)
    else:
        for preference in preferences:
            show_preference(run, preference)
        if report is not None:
            click.echo(f"report: {report}")
    check_thresholds(run, params)


def show_preference(run: Run, preference: Preference) -> None:
    """Print the table of a comparison, what it means, and the pairs that are unscored."""
    from multimodal_eval.analysis.preferences import conclusion
    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.cli.show_judges import show_injections, show_judges
    from multimodal_eval.cli.terminal import warning
    from multimodal_eval.report.remarks import claims

    out = console()
    out.print(_table(preference))
    out.print(as_text(conclusion(preference)), style="bold", soft_wrap=True)
    if preference.identical:
        out.print(f"pairs of equal answers, which are ties: {preference.identical:,}", soft_wrap=True)
    if preference.stopped is not None:
        out.print(_stop(preference.stopped), soft_wrap=True)
    unscored = preference.pairs - preference.scored - _skipped(preference)
    if unscored > 0:
        out.print(warning(f"{unscored:,} of {preference.pairs:,} pairs unscored:"), soft_wrap=True)
        for failure in preference.failures:
            out.print(f"  {as_text(failure.id)}: {as_text(failure.reason)}", soft_wrap=True)
        if unscored > len(preference.failures):
            out.print("  …")
    for line in claims(run, preference.metric):
        out.print(warning(line), soft_wrap=True)
    show_injections(run)
    show_judges(run, preference.metric)
    out.print("\nsignature", style="bold")
    out.print(f"  {as_text(run.info.signatures[preference.metric].text)}", style="dim", soft_wrap=True)
    if run.is_kept:
        out.print(f"\nrun folder: {as_text(run.folder.label)}", soft_wrap=True)


def _table(preference: Preference) -> Table:
    from multimodal_eval.cli.show import as_text, interval, number, table_of

    title = f"A = {as_text(preference.system)}, B = {as_text(preference.baseline)}, {preference.pairs:,} pairs"
    table = table_of(title, [preference.metric], ["score", "95 % interval"])

    def add(name: str, figure: Figure | None, style: str = "") -> None:
        if figure is not None:
            table.add_row(name, number(figure.value), interval(figure.low, figure.high), style=style)

    add("win rate of A", preference.win_rate, "bold")
    add("  at equal lengths", preference.length_controlled)
    counts = f"{preference.wins:,} / {preference.ties:,} / {preference.losses:,}"
    table.add_row("wins / ties / losses", counts, "")
    add("flips with the order", preference.flips)
    add("first answer preferred", preference.first)
    return table


def _skipped(preference: Preference) -> int:
    stopped = preference.stopped
    return 0 if stopped is None else stopped.population - stopped.compared


def _stop(pair: ComparedPair) -> str:
    needed = f"stopped after {pair.compared:,} of {pair.population:,} pairs: the others were not needed"
    return f"{needed}. The interval of the win rate accounts for the stop; the others do not"
