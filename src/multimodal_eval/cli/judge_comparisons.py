"""`mmeval judge pairs`, `ratings` and `rank`: systems that a judge compares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.model_options import judge_options, judge_settings
from multimodal_eval.cli.options import (
    Command,
    Params,
    RunLocation,
    format_option,
    media_root_option,
    output_options,
    overwrite_option,
    refuse_overwrite_alone,
    report_option,
)

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable
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


output_folder_option = click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the run of the comparisons in this folder. The default is runs/<time>-metrics.",
)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN_A [RUN_B]")
@click.option("--baseline", help="Compare RUN_A with the answers in this file, or in this column, instead of RUN_B.")
@comparing_options
@click.option("--allow-partial", is_flag=True, help="Leave out samples that only one of the runs has.")
@output_folder_option
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
    from multimodal_eval.cli.show import as_text, console, show_injections, show_judges
    from multimodal_eval.cli.terminal import warning
    from multimodal_eval.report.run_warnings import claims

    out = console()
    out.print(_preference_table(preference))
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


def _preference_table(preference: Preference) -> Table:
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


# `mmeval judge ratings`.


_MOST_PAIRS = 28  # of eight systems: more are only in the JSON


def rating_options(command: Command) -> Command:
    """How ratings are computed and shown."""
    options = (
        click.option(
            "--ties",
            type=click.Choice(["half", "davidson"]),
            default="half",
            show_default=True,
            help="Count a tie as half a win of each system, or estimate how often equal systems tie (Davidson).",
        ),
        click.option(
            "--scale",
            type=click.Choice(["elo", "log"]),
            default="elo",
            show_default=True,
            help="Elo's scale (mean 1000, 400 points are odds of 10 to 1), or natural logarithms of odds (mean 0).",
        ),
        click.option("--anchor", metavar="SYSTEM", help="Fix the rating of this system instead of the mean."),
        click.option(
            "--prior",
            type=click.FloatRange(0),
            default=0.0,
            metavar="N",
            help="Add N comparisons to every system, half won and half lost, so that no rating is infinite.",
        ),
        format_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN…")
@click.option("--metric", help="The judge whose verdicts are used, if the runs have several.")
@rating_options
def ratings(runs: tuple[Any, ...], metric: str | None, **params: Any) -> None:
    """Rate the systems that finished runs compare, by the Bradley-Terry model.

    RUN is a run of `mmeval judge rank` or `mmeval judge pairs`, or any run that a judge compared with a baseline.
    Several runs are rated together if their judges have the same signature. Nothing is asked.
    """
    from multimodal_eval.data.runs.run import Run

    show_ratings([Run(location) for location in runs], metric, params)


def show_ratings(runs: list[Run], metric: str | None, params: dict[str, Any]) -> None:
    """Rate the systems and print the result."""
    from multimodal_eval.analysis.judge_ratings import rate
    from multimodal_eval.core.records import to_json

    options = {name: params[name] for name in ("ties", "scale", "anchor", "prior")}
    board = rate(runs, metric=metric, **options)
    if params["format_"] == "json":
        labels = [run.folder.label for run in runs]
        click.echo(to_json({**board.to_dict(), "runs": labels}).decode(), nl=False)
    else:
        show_board(board, runs)


def show_board(board: RatingTable, runs: list[Run]) -> None:
    """Print the ratings, what is certain about pairs, how they were computed, and what is known about the judge."""
    from multimodal_eval.cli.show import as_text, console, show_injections, show_judges
    from multimodal_eval.cli.terminal import warning
    from multimodal_eval.core.judge_records import rates_by_the_judge

    out = console()
    out.print(_rating_table(board))
    ranks = "the ranks that a system can have, right for all systems together with 95 % confidence"
    out.print(f"rank: {ranks}. {board.model}; {board.method}.", style="dim", soft_wrap=True)
    if 0 < len(board.pairs) <= _MOST_PAIRS:
        out.print(_pair_table(board.pairs))
    elif board.pairs:
        out.print(f"{len(board.pairs):,} pairs of systems: --format json shows them", soft_wrap=True)
    if board.skipped:
        share = f"{board.skipped:,} of {board.samples:,} comparisons ({100 * board.skipped / board.samples:.0f} %)"
        out.print(f"{share} were not needed", soft_wrap=True)
    if board.unscored:
        out.print(warning(f"{board.unscored:,} of {board.samples:,} comparisons have no verdict"), soft_wrap=True)
    for note in board.notes:
        out.print(warning(as_text(note)), soft_wrap=True)
    out.print(warning(rates_by_the_judge(board.metric)), soft_wrap=True)
    for run in runs:
        if len(runs) > 1:
            out.print(f"{as_text(run.folder.label)}:", soft_wrap=True)
        show_injections(run)
        show_judges(run, board.metric)
    out.print(f"\n{as_text(board.signature)}", style="dim", soft_wrap=True)


def _rating_table(board: RatingTable) -> Table:
    from multimodal_eval.cli.show import DASH, as_text, table_of

    decimals = 0 if board.scale == "elo" else 3
    table = table_of(
        f"{board.metric}, {len(board.systems)} systems, {board.samples - board.unscored - board.skipped:,} comparisons",
        ["rank", "system"],
        ["rating", "95 % interval", "wins", "ties", "losses"],
    )
    for system in board.systems:
        ends = system.low, system.high
        interval = DASH if None in ends else " … ".join(f"{end:.{decimals}f}" for end in ends)
        counts = (f"{count:,.10g}" for count in (system.wins, system.ties, system.losses))
        table.add_row(_ranks(system), as_text(system.name), f"{system.rating:.{decimals}f}", interval, *counts)
    return table


def _ranks(system: RatedSystem) -> str:
    if system.best_rank == system.worst_rank:
        return str(system.best_rank)
    return f"{system.best_rank}–{system.worst_rank}"


def _pair_table(pairs: tuple[ComparedPair, ...]) -> Table:
    from multimodal_eval.cli.show import as_text, interval, number, table_of

    words = {"better": "A is better", "worse": "B is better", "equal": "within the margin", "open": "not decided"}
    heads = ["win rate of A", "interval", "compared", "certain"]
    table = table_of("pairs, with intervals that are right at any stopping time", ["A", "B"], heads)
    for pair in pairs:
        compared = f"{pair.compared:,} of {pair.population:,}"
        rate = number(pair.win_rate), interval(pair.low, pair.high)
        names = as_text(pair.system), as_text(pair.baseline_system)
        table.add_row(*names, *rate, compared, words[pair.outcome])
    return table


# `mmeval judge rank`.


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN RUN…")
@comparing_options
@click.option(
    "--pairs",
    default="all",
    show_default=True,
    metavar="all|baseline|random:N",
    help="Compare all pairs of runs, every run with the first one, or N random pairs of each sample.",
)
@click.option(
    "--until",
    "width",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    metavar="WIDTH",
    help="Stop comparing two runs when their win rate is known to ± WIDTH, such as 0.05.",
)
@click.option("--until-ranked", is_flag=True, help="Stop comparing two runs when it is certain which is better.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    help="With --until-ranked: also stop when their win rate is certainly within 0.5 ± MARGIN.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Determines the random order and random pairs.")
@click.option("--allow-partial", is_flag=True, help="Leave out samples that one of the runs does not have.")
@output_folder_option
@overwrite_option
@media_root_option
@report_option
@rating_options
def rank(runs: tuple[Any, ...], metric: str, **params: Any) -> None:
    """Let a judge compare the answers of several runs, and rate the runs by the Bradley-Terry model.

    Every pair is judged in both orders, and a pair whose verdicts disagree is a tie. The comparisons are a run of their
    own: `mmeval judge ratings` rates it again, alone or with other runs, without asking.
    """
    import msgspec

    from multimodal_eval.cli.report import write_report
    from multimodal_eval.cli.running import started
    from multimodal_eval.core.judge_config import JudgeUntil
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.comparisons import answered
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.opening import default_folder
    from multimodal_eval.run.ranking import PairChoice, ranking

    if len(runs) < 2:
        raise click.UsageError("name at least two runs")
    if params["width"] is not None and params["until_ranked"]:
        raise click.UsageError("--until and --until-ranked exclude each other")
    if params["margin"] is not None and not params["until_ranked"]:
        raise click.UsageError("--margin belongs to --until-ranked")
    refuse_overwrite_alone(params)
    judge = judge_with(metric, params)
    if params["width"] is not None or params["until_ranked"]:
        until = JudgeUntil(width=params["width"], ranked=params["until_ranked"], margin=params["margin"])
        judge = msgspec.structs.replace(judge, until=until)
    compared = ranking(
        [answered(location) for location in runs],
        judge,
        PairChoice.parse(params["pairs"]),
        allow_partial=params["allow_partial"],
        media_roots=params["media_roots"],
        seed=params["seed"],
    )
    path = params["output"] or default_folder(compared.plan)
    started(compared.plan, compared.source, path, Engine(), overwrite=params["overwrite"])
    run = Run(path)
    report = write_report(run, enabled=params["wants_report"], media_roots=params["media_roots"])
    show_ratings([run], judge.name, params)
    if params["format_"] != "json":
        click.echo(f"run folder: {run.folder.label}")
        if report is not None:
            click.echo(f"report: {report}")
