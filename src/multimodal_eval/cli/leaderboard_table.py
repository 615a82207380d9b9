"""The table of `mmeval leaderboard` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multimodal_eval.analysis.leaderboard import Leaderboard, Standing

SHOWN_REASON = 3  # lines
SHOWN_NOTES = 10  # lines about single submissions
MAX_OTHER_METRICS = 5  # columns of further metrics


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


def _notes(board: Leaderboard, path: Any) -> tuple[list[str], list[str]]:
    """The notes that all runs have: those about the gold data. Then those about the input of single submissions."""
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.data.runs.storage import below

    runs = [Run(below(path, row.name)) for row in board.standings]
    first, *others = ([*run.outcome.notes, *run.info.input_notes] for run in runs)
    shared = [line for line in first if all(line in lines for lines in others)]
    by_run = ((run.folder.name, line) for run in runs for line in run.info.input_notes if line not in shared)
    return shared, [f"{name}: {line}" for name, line in by_run]


def _why_left_out(board: Leaderboard) -> str:
    if board.failed_answers == "left-out":
        return "they are unscored in a submission"
    return "no answer to them could be scored"


def _print_more(out: Any, count: int, path: Any) -> None:
    if count > 0:
        out.print(f"  … {count:,} more: see {path}", soft_wrap=True)


def show_board(board: Leaderboard, path: Any) -> None:
    """Print the ranking, the notes that all submissions share, and the refused submissions."""
    from multimodal_eval.analysis.failures import failures_in_words, rule_in_words
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
        out.print(warning(f"{board.left_out:,} samples are left out for all: {_why_left_out(board)}"), soft_wrap=True)
    if failed := [row for row in board.standings if row.failures]:
        out.print(warning(f"{rule_in_words(board.failed_answers)}:"), soft_wrap=True)
        for row in failed[:SHOWN_NOTES]:
            out.print(f"  {as_text(row.name)}: {failures_in_words(row.failures)}", soft_wrap=True)
        _print_more(out, len(failed) - SHOWN_NOTES, path)
    shared, individual = _notes(board, path)
    for line in [*shared, *individual[:SHOWN_NOTES]]:
        out.print(warning(line), soft_wrap=True)
    _print_more(out, len(individual) - SHOWN_NOTES, path)
    for refused in board.refused:
        lines = refused.reason.splitlines()
        out.print(styled(("refused", "red"), f" {as_text(refused.name)}: {as_text(lines[0])}"), soft_wrap=True)
        for line in lines[1:SHOWN_REASON]:
            out.print(f"  {as_text(line)}", soft_wrap=True)
        if len(lines) > SHOWN_REASON:
            out.print(f"  … {len(lines) - SHOWN_REASON} more lines in {path}/leaderboard.json", soft_wrap=True)
    out.print(f"\n{as_text(board.signature)}", style="dim", soft_wrap=True)
    out.print(f"runs: {as_text(str(path))}", soft_wrap=True)
