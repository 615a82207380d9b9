"""`mmeval leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.dialogue import contest_of, contest_options
from multimodal_eval.cli.options import MetricOption, RunLocation, format_option, options_by_metric

if TYPE_CHECKING:
    from multimodal_eval.analysis.leaderboard import Leaderboard
    from multimodal_eval.contests.protocol import Contest

SHOWN_REASON = 3  # lines
MAX_OTHER_METRICS = 5  # columns of further metrics
WHAT = {"dialogue": "dialogues", "clarity": "CLARITY's data", "samples": "samples"}
# Options that would have no effect, by kind of gold.
_DIALOGUE_OPTIONS = ("questions", "weights", "rule", "language", "synonyms", "present_types_only")
UNFIT = {
    "dialogue": ("metrics", "task", "options"),
    "clarity": (*_DIALOGUE_OPTIONS, "options", "config", "plugins"),
    "samples": _DIALOGUE_OPTIONS,
}


@click.command(short_help="Rank submissions against one gold file, with intervals and ties.")
@click.argument("gold", type=click.Path(path_type=Path))
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option("--task", help="clarity or evasion (default) for CLARITY; captioning, vqa … for other data.")
@click.option("--metrics", help="For other data: cider,bleu. Default: the task's.")
@click.option("--option", "options", type=MetricOption(), multiple=True, help="An option of a metric.")
@click.option("--by", help="The metric to rank by. Default: the composite, the official score, or the only metric.")
@click.option("-o", "--output", type=RunLocation(), help="Folder or URL of the runs. Default: below runs/.")
@contest_options
@click.option("--allow-partial", is_flag=True, help="Also rank submissions that lack over 1 % of the samples.")
@click.option("--workers", type=click.IntRange(1), help="Processes. Default: one per core.")
@format_option
def leaderboard(gold: Path, submissions: Path, output: Any, format_: str, **params: Any) -> None:
    """Rank submissions against one gold file, with intervals and ties; each submission becomes a run.

    The content of GOLD determines what a submission is. For dialogues of the contest, SUBMISSIONS has one folder per
    submission with output.json and ppl_output.json; for CLARITY's data, one table or zip of predictions; for other
    data (a COCO annotation file, or samples with references), one file of answers, joined by id.

    Submissions share a rank if none is better beyond chance. A refused submission is listed with the reason and has no
    rank; the exit code is then 1.
    """
    from multimodal_eval.analysis.leaderboard import leaderboard as ranked
    from multimodal_eval.analysis.leaderboard import metric_to_rank_by
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.contests.submissions import score_all, skipped_entries, submissions_in

    contest, by = _contest(gold, params)
    by = metric_to_rank_by(contest.numbers, by)  # before anything is scored
    accepted = submissions_in(submissions, contest.accepts)
    if skipped := skipped_entries(submissions, contest.accepts):
        click.echo(f"skipped, not a submission of this kind: {', '.join(skipped)}", err=True)
    path = output or _default_folder()
    with progress_bar() as progress:
        names, refused = score_all(accepted, contest, path, workers=params["workers"], progress=progress)
    board = ranked(path, names, refused, by=by, allow_partial=params["allow_partial"])
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json({**board.to_dict(), "runs": str(path)}).decode(), nl=False)
    else:
        _show(board, path)
    if board.refused:
        raise click.exceptions.Exit(1)


def _contest(gold: Path, params: dict[str, Any]) -> tuple[Contest, str | None]:
    """The contest that scores the submissions, and the metric that ranks them."""
    from multimodal_eval.contests.clarity.contest import ClarityContest
    from multimodal_eval.contests.submissions import SampleContest, kind_of
    from multimodal_eval.run.config import overlaid

    kind, by = kind_of(gold), params["by"]
    if kind == "clarity" and (params["metrics"] or params["task"] not in (None, "clarity", "evasion")):
        kind = "samples"
    unfit = next((name for name in UNFIT[kind] if params[name]), None)
    if unfit is not None:
        option = unfit.removesuffix("s") if unfit in ("weights", "options", "plugins") else unfit.replace("_", "-")
        raise click.UsageError(f"--{option} has no effect on {gold}, which is scored as {WHAT[kind]}")
    if kind == "dialogue":
        return contest_of(gold, params, skip_lint=True), by
    if kind == "clarity":
        return ClarityContest(gold, params["task"] or "evasion"), by
    config = overlaid(
        params["config"],
        task=params["task"],
        metrics=params["metrics"],
        options=options_by_metric(params["options"]),
        plugins=list(params["plugins"]) or None,
        allow_partial=params["allow_partial"],
        skip_lint=True,
    )
    named = config.task or config.metrics
    return SampleContest(gold, config), by or (None if named else "cider_d")


def _default_folder() -> Path:
    from datetime import datetime

    return Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-leaderboard"


def _p_value(value: float | None) -> str:
    if value is None:
        return ""
    return "< .0001" if value < 0.0001 else f"{value:.4f}"


def _show(board: Leaderboard, path: Any) -> None:
    from multimodal_eval.cli.show import as_text, console, interval, number, table_of

    out = console()
    arrow = " ↓" if board.direction == "lower" else ""
    other_metrics = [name for name in board.standings[0].numbers if name != board.number][:MAX_OTHER_METRICS]
    title = f"{board.number}{arrow}, {len(board.standings)} submissions, {board.samples:,} samples"
    table = table_of(title, ["rank", "submission"], [board.number, "95 % interval", "behind", "p", *other_metrics])
    for row in board.standings:
        rank = "–" if row.rank is None else str(row.rank)
        gap = f"{row.behind:.4f}" if row is not board.standings[0] else ""
        cells = [number(row.value), interval(row.low, row.high), gap, _p_value(row.p_value)]
        table.add_row(rank, as_text(row.name), *cells, *(number(row.numbers[name]) for name in other_metrics))
    out.print(table)
    if board.standings[0].rank is None:
        note = "No ranks: chance cannot be estimated from a single sample or group, overall or in one of the types"
    else:
        tests = "paired t tests of all pairs, Holm-corrected p < .05"
        note = f"Submissions with the same rank: none is better beyond chance ({tests})"
    out.print(f"{note}.", style="dim", soft_wrap=True)
    if board.left_out:
        out.print(f"[yellow]![/] {board.left_out:,} samples are unscored in a submission and excluded from all")
    for refused in board.refused:
        lines = refused.reason.splitlines()
        out.print(f"[red]refused[/] {as_text(refused.name)}: {as_text(lines[0])}", soft_wrap=True)
        for line in lines[1:SHOWN_REASON]:
            out.print(f"  {as_text(line)}", soft_wrap=True)
        if len(lines) > SHOWN_REASON:
            out.print(f"  … {len(lines) - SHOWN_REASON} more lines in {path}/leaderboard.json", soft_wrap=True)
    out.print(f"\n[dim]{as_text(board.signature)}[/]", soft_wrap=True)
    out.print(f"runs: {as_text(str(path))}", soft_wrap=True)
