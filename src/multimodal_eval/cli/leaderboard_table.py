"""The table of `mmeval leaderboard` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multimodal_eval.analysis.leaderboard import Leaderboard, Standing

SHOWN_REASON = 3  # lines
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


def _shared_notes(board: Leaderboard, path: Any) -> list[str]:
    """The notes that all runs have: those about the gold data."""
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.data.runs.storage import below

    runs = (Run(below(path, row.name)) for row in board.standings)
    first, *others = ([*run.outcome.notes, *run.info.input_notes] for run in runs)
    return [line for line in first if all(line in lines for lines in others)]


def show_board(board: Leaderboard, path: Any) -> None:
    """Print the ranking, the notes that all submissions share, and the refused submissions."""
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
