"""`mmeval judge ratings`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Command, RunLocation, format_option

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable
    from multimodal_eval.core.records import ComparedPair
    from multimodal_eval.data.runs.run import Run

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
    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.cli.show_judges import show_injections, show_judges
    from multimodal_eval.cli.terminal import warning
    from multimodal_eval.core.judge_records import rates_by_the_judge

    out = console()
    out.print(_table(board))
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


def _table(board: RatingTable) -> Table:
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
