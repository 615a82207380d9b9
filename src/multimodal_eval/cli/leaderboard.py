"""`mmeval leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.clarity import column_options, columns_of
from multimodal_eval.cli.dialogue_options import contest_of, contest_options
from multimodal_eval.cli.options import MetricOption, RunLocation, format_option, options_by_metric

if TYPE_CHECKING:
    from multimodal_eval.analysis.leaderboard import Leaderboard, Standing
    from multimodal_eval.contests.protocol import Contest

SHOWN_REASON = 3  # lines
MAX_OTHER_METRICS = 5  # columns of further metrics
WHAT = {"dialogue": "dialogues", "clarity": "CLARITY's data", "samples": "samples"}
CLARITY_FIELDS = {"clarity_label", "evasion_label", "clarity_pred", "evasion_pred"}  # names in --map
# Options that would have no effect, by kind of gold.
_DIALOGUE_OPTIONS = ("questions", "weights", "rule", "language", "synonyms", "present_types_only")
UNFIT = {
    "dialogue": ("metrics", "task", "options", "mapping", "annotators"),
    "clarity": (*_DIALOGUE_OPTIONS, "options", "config", "plugins"),
    "samples": _DIALOGUE_OPTIONS,
}


@click.command(short_help="Rank submissions against one gold file, with intervals and ties.")
@click.argument("gold", type=click.Path(path_type=Path))
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option("--task", help="clarity or evasion (default) for CLARITY; captioning, vqa … for other data.")
@click.option("--metrics", help="For other data: cider,bleu. Default: the task's.")
@click.option("--option", "options", type=MetricOption(), multiple=True, help="An option of a metric.")
@click.option("--by", help="The metric to rank by. Default: the headline, which is the composite if there is one.")
@click.option("-o", "--output", type=RunLocation(), help="Folder or URL of the runs. Default: below runs/.")
@contest_options
@column_options
@click.option("--allow-partial", is_flag=True, help="Also rank submissions that lack over 1 % of the samples.")
@click.option("--workers", type=click.IntRange(1), help="Processes. Default: one per core.")
@format_option
def leaderboard(gold: Path, submissions: Path, output: Any, format_: str, **params: Any) -> None:
    """Rank submissions against one gold file, with intervals and ties; each submission becomes a run.

    The content of GOLD determines what a submission is. For dialogues of the contest, SUBMISSIONS has one folder per
    submission with output.json and ppl_output.json, or one zip of both; for CLARITY's data, one table or zip of
    predictions; for other data (a COCO annotation file, or samples with references), one file of answers, joined by id.

    Places 1, 2, 3 … are by score. Beside each is shown with which places it is tied, because the difference may be due
    to chance. A refused submission is listed with the reason and has no place; the exit code is then 1.
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

    mapping, by = dict(params["mapping"]), params["by"]
    kind = "clarity" if CLARITY_FIELDS & mapping.keys() else kind_of(gold)
    if kind == "clarity" and (params["metrics"] or params["task"] not in (None, "clarity", "evasion")):
        kind = "samples"
    unfit = next((name for name in UNFIT[kind] if params[name]), None)
    if unfit is not None:
        singular = {"weights": "weight", "options": "option", "plugins": "plugin", "mapping": "map"}
        option = singular.get(unfit, unfit.replace("_", "-"))
        raise click.UsageError(f"--{option} has no effect on {gold}, which is scored as {WHAT[kind]}")
    if kind == "dialogue":
        return contest_of(gold, params, skip_lint=True), by
    if kind == "clarity":
        return ClarityContest(gold, params["task"] or "evasion", columns=columns_of(params)), by
    config = overlaid(
        params["config"],
        task=params["task"],
        metrics=params["metrics"],
        options=options_by_metric(params["options"]),
        plugins=list(params["plugins"]) or None,
        allow_partial=params["allow_partial"],
        map=mapping or None,
        annotators=params["annotators"],
        skip_lint=True,
    )
    contest = SampleContest(gold, config)
    return contest, by or contest.headline


def _default_folder() -> Path:
    from datetime import datetime

    return Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-leaderboard"


def _cells(row: Standing, board: Leaderboard) -> list[str]:
    from multimodal_eval.cli.show import DASH, as_text, interval, number
    from multimodal_eval.core.display import p_value

    places = {other.name: other.place for other in board.standings}
    tied = DASH if row.tied_with is None else ", ".join(map(str, sorted(places[name] for name in row.tied_with)))
    gap = f"{row.behind:.4f}" if row is not board.standings[0] else ""
    return [
        str(row.place),
        as_text(row.name),
        number(row.value),
        interval(row.low, row.high),
        tied,
        gap,
        "" if row.p_value is None else p_value(row.p_value),
    ]


def _calibrated(row: Standing) -> str:
    """The score that human labels correct."""
    from multimodal_eval.cli.show import DASH, number

    if row.calibrated is None or row.calibrated.value is None:
        return DASH
    error = row.calibrated.stderr
    return number(row.calibrated.value) + ("" if error is None else f" ± {error:.4f}")


def _shared_notes(board: Leaderboard, path: Any) -> list[str]:
    """The notes that all runs have: those about the gold data."""
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.data.runs.storage import below

    runs = (Run(below(path, row.name)) for row in board.standings)
    first, *others = ([*run.outcome.notes, *run.info.input_notes] for run in runs)
    return [line for line in first if all(line in lines for lines in others)]


def _show(board: Leaderboard, path: Any) -> None:
    from multimodal_eval.cli.show import as_text, console, number, table_of
    from multimodal_eval.cli.terminal import fits, styled, warning

    out = console()
    arrow = " ↓" if board.direction == "lower" else ""
    other_metrics = [name for name in board.standings[0].numbers if name != board.number][:MAX_OTHER_METRICS]
    has_labels = any(row.calibrated is not None for row in board.standings)
    title = f"{board.number}{arrow}, {len(board.standings)} submissions, {board.samples:,} samples"
    heads = ["score", "95 % interval", "tied with", "behind", "p", *(["calibrated"] if has_labels else [])]
    rows = [[*_cells(row, board), *([_calibrated(row)] if has_labels else [])] for row in board.standings]
    others = [[number(row.numbers[name]) for name in other_metrics] for row in board.standings]
    table = table_of(title, ["place", "submission"], [*heads, *other_metrics])
    for cells, values in zip(rows, others, strict=True):
        table.add_row(*cells, *values)
    if fits(out, table) or not other_metrics:
        out.print(table)
    else:  # the other metrics in a table of their own
        table = table_of(title, ["place", "submission"], heads)
        second = table_of("other metrics", ["place", "submission"], other_metrics)
        for cells, values in zip(rows, others, strict=True):
            table.add_row(*cells)
            second.add_row(*cells[:2], *values)
        out.print(table)
        out.print(second)
    if board.standings[0].tied_with is None:
        single = "a single sample or group, overall or in one of the types"
        note = f"Ties are not tested: chance cannot be estimated from {single}"
    else:
        tests = "paired t tests of all pairs, Holm-corrected p < .05"
        note = f"Places are by score. tied with: places from which it does not differ beyond chance ({tests})"
    out.print(f"{note}.", style="dim", soft_wrap=True)
    if has_labels:
        note = "calibrated: the score corrected by human labels, ± its standard error. Places are by the metric alone."
        out.print(note, style="dim", soft_wrap=True)
    if board.left_out:
        out.print(warning(f"{board.left_out:,} samples are unscored in a submission and excluded from all"))
    for line in _shared_notes(board, path):
        out.print(warning(line), soft_wrap=True)
    for refused in board.refused:
        lines = refused.reason.splitlines()
        out.print(styled(("refused", "red"), f" {as_text(refused.name)}: {as_text(lines[0])}"), soft_wrap=True)
        for line in lines[1:SHOWN_REASON]:
            out.print(f"  {as_text(line)}", soft_wrap=True)
        if len(lines) > SHOWN_REASON:
            out.print(f"  … {len(lines) - SHOWN_REASON} more lines in {path}/leaderboard.json", soft_wrap=True)
    out.print(f"\n{as_text(board.signature)}", style="dim", soft_wrap=True)
    out.print(f"runs: {as_text(str(path))}", soft_wrap=True)
