"""`mmeval leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.dialogue import contest_of, contest_options
from multimodal_eval.cli.options import MetricOption, RunLocation, options_by_metric

if TYPE_CHECKING:
    from multimodal_eval.analysis.leaderboard import Leaderboard
    from multimodal_eval.contests.protocol import Contest

SHOWN_REASON = 3  # lines
MOST_NUMBERS = 5
WHAT = {"dialogue": "dialogues", "clarity": "CLARITY's data", "samples": "samples"}
# Options that would be of no effect.
_OF_DIALOGUES = ("questions", "weights", "rule", "language", "synonyms", "present_types_only")
UNFIT = {
    "dialogue": ("metrics", "task", "options"),
    "clarity": (*_OF_DIALOGUES, "options", "config", "plugins"),
    "samples": _OF_DIALOGUES,
}


@click.command(short_help="Rank many submissions to one gold, with intervals and ties.")
@click.argument("gold", type=click.Path(path_type=Path))
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option("--task", help="clarity or evasion (default) for CLARITY; captioning, vqa … for other data.")
@click.option("--metrics", help="For other data: cider,bleu. Default: the task's.")
@click.option("--option", "options", type=MetricOption(), multiple=True, help="An option of a metric.")
@click.option("--by", help="The number to rank by. Default: the composite, the official score, or the only one.")
@click.option("-o", "--output", type=RunLocation(), help="Folder or URL of the runs. Default: below runs/.")
@contest_options
@click.option("--allow-partial", is_flag=True, help="Rank submissions too that lack over 1 % of the samples.")
@click.option("--workers", type=click.IntRange(1), help="Processes. Default: one a core.")
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def leaderboard(gold: Path, submissions: Path, output: Any, format_: str, **given: Any) -> None:
    """Rank many submissions to one gold, with intervals and ties; each becomes a run.

    What GOLD holds says what a submission is. Dialogues of the contest: SUBMISSIONS has a folder each with
    output.json and ppl_output.json. CLARITY's data: a table or a zip of predictions each. Other data (a COCO
    annotation file, or samples with references): a file of answers each, joined by id.

    Submissions of which none is better beyond chance share a rank. One that is refused is listed with the reason
    and has no place; the exit code is then 1.
    """
    from multimodal_eval.analysis.leaderboard import leaderboard as ranked
    from multimodal_eval.analysis.leaderboard import number_to_rank_by
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.contests.submissions import passed_over, score_all, submissions_in

    contest, by = _contest(gold, given)
    by = number_to_rank_by(contest.numbers, by)  # before anything is scored
    found = submissions_in(submissions, contest.accepts)
    if others := passed_over(submissions, contest.accepts):
        click.echo(f"passed over, since it is no submission of this kind: {', '.join(others)}", err=True)
    path = output or _default_folder()
    with progress_bar() as progress:
        names, refused = score_all(found, contest, path, workers=given["workers"], progress=progress)
    board = ranked(path, names, refused, by=by, allow_partial=given["allow_partial"])
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json({**board.to_dict(), "runs": str(path)}).decode(), nl=False)
    else:
        _show(board, path)
    if board.refused:
        raise click.exceptions.Exit(1)


def _contest(gold: Path, given: dict[str, Any]) -> tuple[Contest, str | None]:
    """How submissions are scored, and the number that they are ranked by."""
    from multimodal_eval.contests.clarity.contest import ClarityContest
    from multimodal_eval.contests.submissions import SampleContest, kind_of
    from multimodal_eval.run.config import overlaid

    kind, by = kind_of(gold), given["by"]
    if kind == "clarity" and (given["metrics"] or given["task"] not in (None, "clarity", "evasion")):
        kind = "samples"
    unfit = next((name for name in UNFIT[kind] if given[name]), None)
    if unfit is not None:
        option = unfit.removesuffix("s") if unfit in ("weights", "options", "plugins") else unfit.replace("_", "-")
        raise click.UsageError(f"--{option} does not go with {gold}: it is scored as {WHAT[kind]}")
    if kind == "dialogue":
        return contest_of(gold, given, skip_lint=True), by
    if kind == "clarity":
        return ClarityContest(gold, given["task"] or "evasion"), by
    config = overlaid(
        given["config"],
        task=given["task"],
        metrics=given["metrics"],
        options=options_by_metric(given["options"]),
        plugins=list(given["plugins"]) or None,
        allow_partial=given["allow_partial"],
        skip_lint=True,
    )
    named = config.task or config.metrics
    return SampleContest(gold, config), by or (None if named else "cider_d")


def _default_folder() -> Path:
    from datetime import datetime

    return Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-leaderboard"


def _show(board: Leaderboard, path: Any) -> None:
    from multimodal_eval.cli.show import as_text, console, interval, number, table_of

    out = console()
    arrow = " ↓" if board.direction == "lower" else ""
    others = [name for name in board.standings[0].numbers if name != board.number][:MOST_NUMBERS]
    title = f"{board.number}{arrow}, {len(board.standings)} submissions, {board.samples:,} samples"
    table = table_of(title, ["rank", "submission"], [board.number, "95 % interval", "behind", "p", *others])
    for own in board.standings:
        rank = "–" if own.rank is None else str(own.rank)
        p_value = "" if own.p_value is None else "< .0001" if own.p_value < 0.0001 else f"{own.p_value:.4f}"
        gap = f"{own.behind:.4f}" if own is not board.standings[0] else ""
        cells = [number(own.value), interval(own.low, own.high), gap, p_value]
        table.add_row(rank, as_text(own.name), *cells, *(number(own.numbers[name]) for name in others))
    out.print(table)
    if board.standings[0].rank is None:
        told = "No ranks: chance cannot be judged by a single sample or group, overall or in one of the types"
    else:
        tests = "paired t tests of all pairs, Holm-corrected p < .05"
        told = f"Submissions of one rank: none is better beyond chance ({tests})"
    out.print(f"{told}.", style="dim", soft_wrap=True)
    if board.left_out:
        out.print(f"[yellow]![/] {board.left_out:,} samples are unscored in a submission and left out of all")
    for one in board.refused:
        lines = one.reason.splitlines()
        out.print(f"[red]refused[/] {as_text(one.name)}: {as_text(lines[0])}", soft_wrap=True)
        for line in lines[1:SHOWN_REASON]:
            out.print(f"  {as_text(line)}", soft_wrap=True)
        if len(lines) > SHOWN_REASON:
            out.print(f"  … {len(lines) - SHOWN_REASON} lines more in {path}/leaderboard.json", soft_wrap=True)
    out.print(f"\n[dim]{as_text(board.signature)}[/]", soft_wrap=True)
    out.print(f"runs: {as_text(str(path))}", soft_wrap=True)
