"""Systems in their order: a leaderboard, two systems by a judge, and ratings by its comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.analysis.failures import failures_in_words, rule_in_words
from multimodal_eval.analysis.preferences import Preference, conclusion
from multimodal_eval.core.display import DASH, number, p_comparison, p_value, printed
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import rates_by_the_judge
from multimodal_eval.display.blocks import (
    Block,
    FigureRow,
    Figures,
    Finding,
    Folded,
    Grid,
    GridCell,
    GridRow,
    Row,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.figure_tables import LOWER
from multimodal_eval.display.of_judges import FIRST, TURNED
from multimodal_eval.display.wording import counted, estimate, label, listed

if TYPE_CHECKING:
    from multimodal_eval.analysis.composite import RunSensitivity, Sensitivity
    from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable
    from multimodal_eval.analysis.leaderboard import Leaderboard, Standing
    from multimodal_eval.core.records import ComparedPair

__all__ = [
    "leaderboard_blocks",
    "leaderboard_verdict",
    "preference_blocks",
    "rating_table_blocks",
    "sensitivity_blocks",
    "standing_figure",
]


_OTHERS, _DIGITS = 4, 3  # columns of further metrics, which fit into 80 characters
_TESTED = (
    "Places are by score. ranks: the best and worst rank that chance leaves possible, for all together; tied with: "
    "places from which it does not differ beyond chance (max-T randomization of all pairs, p < .05)"
)
_UNTESTED = (
    "Ties are not tested: chance cannot be estimated from a single sample or group, overall or in one of the types"
)
_NOTES = 10  # lines about single submissions
_LINES = 3  # of the reason of a refusal


def leaderboard_blocks(board: Leaderboard) -> Iterator[Block]:
    """The verdict, the places, the other metrics, what is left out, and who is refused."""
    name = f"{printed(board.number)}{' ↓' if board.direction == 'lower' else ''}"
    title = f"{name}, {counted(len(board.standings), 'submission')}, {counted(board.samples, 'sample')}"
    if board.standings:
        yield leaderboard_verdict(board)
        rows = [_standing(row, board) for row in board.standings]
        note = _UNTESTED if board.standings[0].tied_with is None else _TESTED
        if any(row.calibrated is not None for row in board.standings):
            note += ". calibrated: corrected by human labels; places are by the metric alone"
        heads = ("ranks", "tied with", "behind", "p")
        yield Figures(rows, ("place", "submission"), (), heads, title=title, caption=note)
        if others := [each for each in board.standings[0].numbers if each != board.number][:_OTHERS]:
            yield _others(board, others)
    yield from map(Finding, board.notes)
    if board.left_out:
        unscored = board.failed_answers == "left-out"
        why = "unscored in a submission" if unscored else "no answer to them could be scored"
        yield Finding(f"samples are left out for all: {why}", count=board.left_out, total=board.samples)
    if failed := [row for row in board.standings if row.failures]:
        counts = [f"{row.name}: {failures_in_words(row.failures)}" for row in failed]
        more = [f"… {len(counts) - _NOTES:,} more in leaderboard.json"] if len(counts) > _NOTES else []
        yield Finding(f"{rule_in_words(board.failed_answers)}:", why="\n".join([*counts[:_NOTES], *more]))
    for refused in board.refused:
        lines = refused.reason.splitlines()
        more = [f"… {len(lines) - _LINES} more lines in leaderboard.json"] if len(lines) > _LINES else []
        yield Finding(lines[0] if lines else "", f"refused {refused.name}", why="\n".join([*lines[1:_LINES], *more]))
    yield Folded("signature", [Text(f"  {board.signature}", tone="quiet", is_code=True)])


def leaderboard_verdict(board: Leaderboard) -> Verdict:
    """Which submission is first, and whether others may be as good."""
    first, *others = board.standings
    equal = sum(row.place == 1 for row in others)
    place = "is first" if others else "is the only submission,"
    place = f"shares the first place with {counted(equal, 'other')}," if equal else place
    value, ranked = estimate(first.value, first.low, first.high), board.samples - board.left_out
    where = f"on {label(printed(board.number))}, over {ranked:,} of {counted(board.samples, 'sample')}"
    answer = f"{label(first.name)} {place} with {value} {where}"
    tied = first.tied_with
    if not others:
        answer += "."
    elif tied is None:
        answer += ". Whether the others are tied with it is not known: chance cannot be estimated from these samples."
    elif len(tied) == len(others):
        answer += ". It is tied with every other submission: none of the differences is beyond chance."
    elif tied:
        answer += f". It is tied with {listed(tied)}: these differences may be due to chance."
    else:
        second = others[0]
        behind = f"{number(second.behind)} behind ({p_comparison(second.p_value)})"
        answer += f", ahead of all others. The next, {label(second.name)}, is {behind}."
    return Verdict(answer, "Which submission is best?", "good" if others and tied == () else "")


def _others(board: Leaderboard, names: list[str]) -> Grid:
    """Further metrics of the submissions, in the order of the ranking."""
    shown = [
        [row.figures.get(name, Figure(row.numbers.get(name), None, None, None, "")) for name in names]
        for row in board.standings
    ]
    heads = [
        printed(name) + (f" {LOWER}" if figures[place].direction == "lower" else "")
        for figures in shown[:1]
        for place, name in enumerate(names)
    ]
    rows = [
        GridRow(row.name, [GridCell(figure) for figure in figures])
        for row, figures in zip(board.standings, shown, strict=True)
    ]
    note = "failed answers are counted as in the ranking" if any(row.failures for row in board.standings) else ""
    title = f"other metrics, {counted(board.samples, 'sample')}"
    return Grid("submission", heads, rows, title=title, caption=note, digits=_DIGITS)


def standing_figure(row: Standing, board: Leaderboard) -> Figure:
    """The score by which a submission is ranked."""
    return Figure(
        row.value,
        row.stderr,
        row.low,
        row.high,
        board.method,
        n_scored=board.samples - board.left_out,
        n_total=board.samples,
        calibrated=row.calibrated,
        direction="lower" if board.direction == "lower" else "higher",
        name=row.name,
        level=board.level,
    )


def _standing(row: Standing, board: Leaderboard) -> FigureRow:
    places = {other.name: other.place for other in board.standings}
    tied = DASH if row.tied_with is None else ", ".join(map(str, sorted(places[name] for name in row.tied_with)))
    behind = number(row.behind) if row is not board.standings[0] else ""
    ranks = DASH if row.ranks is None else f"{row.ranks[0]} … {row.ranks[1]}"
    after = [ranks, tied, behind, "" if row.p_value is None else p_value(row.p_value)]
    return FigureRow(standing_figure(row, board), (str(row.place), row.name), after=after)


def preference_blocks(preference: Preference) -> Iterator[Block]:
    """Which of two systems is better, the win rate, and what length and order change."""
    yield Verdict(conclusion(preference), "Which is better?", "" if preference.better is None else "good")
    shown = {
        "win rate of A": preference.win_rate,
        "  at equal lengths": preference.length_controlled,
        TURNED: preference.flips,
        FIRST: preference.first,
    }
    rows = [
        FigureRow(
            _counted(figure, preference, name),
            is_strong=figure is preference.win_rate,
        )
        for name, figure in shown.items()
        if figure is not None
    ]
    title = f"A = {preference.system}, B = {preference.baseline}, {counted(preference.pairs, 'pair')}"
    counts = f"A wins {preference.wins:,}, ties {preference.ties:,}, loses {preference.losses:,}"
    yield Figures(rows, (preference.metric,), title=title, caption=counts)
    if preference.identical:
        yield Text(f"pairs of equal answers, which are ties: {preference.identical:,}")
    stopped = preference.stopped
    if stopped is not None:
        needed = f"stopped after {stopped.compared:,} of {stopped.population:,} pairs: the others were not needed"
        yield Text(f"{needed}. The interval of the win rate accounts for the stop; the others do not")
    skipped = 0 if stopped is None else stopped.population - stopped.compared
    unscored = preference.pairs - preference.scored - skipped
    if unscored > 0:
        examples = [f"{failure.id}: {failure.reason}" for failure in preference.failures]
        yield Finding(
            "pairs unscored", about=[preference.metric], count=unscored, total=preference.pairs, examples=examples
        )


def _counted(figure: Figure, preference: Preference, name: str) -> Figure:
    """The shares of a comparison; those of the pairs have their counts."""
    from msgspec.structs import replace

    of_pairs = figure in (preference.win_rate, preference.length_controlled)
    counts = {"n_scored": preference.scored, "n_total": preference.pairs} if of_pairs and figure.n_total is None else {}
    direction = "higher" if of_pairs else None
    return replace(figure, name=name, direction=direction, bounds=(0.0, 1.0), **counts)


_MOST_PAIRS = 28  # of eight systems: more are only in the JSON
_RANKS = "rank: the ranks that a system can have, right for all systems together with 95% confidence"
_OUTCOMES = {"better": "A is better", "worse": "B is better", "equal": "within the margin", "open": "not decided"}


def rating_table_blocks(table: RatingTable) -> Iterator[Block]:
    """Ratings with intervals and the ranks that they allow, what is certain about pairs, and what is unknown."""
    compared = table.samples - table.unscored - table.skipped
    title = f"{table.metric}, {counted(len(table.systems), 'system')}, {counted(compared, 'comparison')}"
    rows = [_rated(system, table, compared) for system in table.systems]
    yield Figures(
        rows,
        ("rank", "system"),
        (),
        ("wins", "ties", "losses"),
        "rating",
        title,
        f"{_RANKS}. {table.model}",
        counts="comparisons",
        digits=0 if table.scale == "elo" else 3,
    )
    if 0 < len(table.pairs) <= _MOST_PAIRS:
        pairs = [_pair(pair) for pair in table.pairs]
        right = "pairs, with intervals that are right at any stopping time"
        yield Figures(
            pairs, ("A", "B"), (), ("certain",), "win rate of A", right, counts="compared", interval="interval"
        )
    elif table.pairs:
        yield Text(f"{len(table.pairs):,} pairs of systems: --format json shows them")
    if table.skipped:
        yield Finding("comparisons were not needed", level="note", count=table.skipped, total=table.samples)
    if table.unscored:
        yield Finding("comparisons have no verdict", count=table.unscored, total=table.samples)
    yield from map(Finding, (*table.notes, rates_by_the_judge(table.metric)))
    yield Folded("signature", [Text(f"  {table.signature}", tone="quiet", is_code=True)])


def _rated(system: RatedSystem, table: RatingTable, compared: int) -> FigureRow:
    is_certain = system.best_rank == system.worst_rank
    ranks = f"{system.best_rank}" if is_certain else f"{system.best_rank}–{system.worst_rank}"
    figure = Figure(
        system.rating,
        system.stderr,
        system.low,
        system.high,
        table.method,
        n_scored=compared,
        n_total=table.samples,
        direction="higher",
        name=system.name,
    )
    wins = [f"{count:,.10g}" for count in (system.wins, system.ties, system.losses)]
    return FigureRow(figure, (ranks, system.name), after=wins)


def _pair(pair: ComparedPair) -> FigureRow:
    figure = Figure(
        pair.win_rate,
        None,
        pair.low,
        pair.high,
        "",
        n_scored=pair.compared,
        n_total=pair.population,
        direction="higher",
        bounds=(0.0, 1.0),
    )
    return FigureRow(figure, (pair.system, pair.baseline_system), after=[_OUTCOMES[pair.outcome]])


# The composite under varied weights.


def sensitivity_blocks(result: Sensitivity) -> Iterator[Block]:
    """The parts of each run, the composites, and who swaps ranks."""
    for run in result.runs:
        yield _parts(run, is_last=run is result.runs[-1])
    yield Figures(
        [FigureRow(_composite(run, result)) for run in result.runs],
        ("run",),
        value="composite",
        title=f"composite under varied weights, {counted(result.samples, 'sample')}",
        caption=f"weights drawn around the configured ones (Dirichlet, concentration {result.concentration:g}, "
        f"seed {result.seed})",
    )
    if len(result.runs) > 1:
        heads = ["run", *(f"rank {rank}" for rank in range(1, len(result.runs) + 1))]
        ordered = sorted(result.runs, key=lambda run: -run.value)
        rows = [Row([run.run, *(_percent(share) for share in run.ranks)]) for run in ordered]
        yield Table(heads, rows, 1, "ranks under varied weights")
    for first, second, share in result.flips:
        yield Text(f"{first} and {second} swap ranks in {_percent(share)} of the draws")
    if result.left_out:
        total = result.samples + result.left_out
        yield Finding("samples without a composite are excluded", count=result.left_out, total=total)


def _composite(run: RunSensitivity, result: Sensitivity) -> Figure:
    return Figure(
        run.value,
        None,
        run.low,
        run.high,
        f"the interval holds 95% of {result.draws:,} draws",
        n_scored=result.samples,
        n_total=result.samples + result.left_out,
        direction="higher",
        name=run.run,
        bounds=(0.0, 1.0),
    )


def _parts(run: RunSensitivity, *, is_last: bool) -> Table:
    rows = [
        Row(
            [
                printed(part.part),
                _percent(part.weight),
                _percent(part.effective),
                number(part.mean),
                number(part.without),
            ]
        )
        for part in run.parts
    ]
    explained = (
        "effective weight: the part's share of the composite's variance; without: the composite if the part's weight "
        "is distributed over the others"
    )
    heads = ["part", "weight", "effective weight", "mean", "without"]
    return Table(heads, rows, 1, f"parts of the composite, {run.run}", explained if is_last else "")


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{share:.1%}"
