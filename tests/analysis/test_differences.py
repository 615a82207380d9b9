"""Differences between the submissions of a leaderboard."""

from __future__ import annotations

import pytest

from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.leaderboard import read_leaderboard
from tests.report.site.boards import ranked

SYSTEMS = {"alba": 9, "boreas": 8, "cirrus": 5, "dune": 2}


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    return folder, ranked(folder, SYSTEMS)


def test_each_is_compared_with_the_first_and_its_neighbours(board):
    first, second, third, fourth = (row.name for row in board[1].standings)
    assert [[each.other for each in row.differences] for row in board[1].standings] == [
        [second],
        [first, third],
        [first, second, fourth],
        [first, third],
    ]


def test_values_and_intervals_are_those_of_a_comparison(board):
    """`mmeval compare` of two of the submissions has the same B - A, and a narrower interval: it is for one pair."""
    folder, ranking = board
    for row in ranking.standings:
        for difference in row.differences:
            runs = [folder / difference.other, folder / row.name]
            (metric,) = compare_runs(runs, metrics=["rouge_l"], allow_partial=True).numbers
            pair = metric.pairs[0]
            # The failed answer of `cirrus` counts on the leaderboard, and is left out of a comparison.
            if "cirrus" not in (row.name, difference.other):
                assert difference.value == pytest.approx(pair.difference, abs=1e-12)
                assert difference.low < pair.low < pair.high < difference.high
                assert (difference.p_value < 0.05) == (not difference.low <= 0 <= difference.high)


def test_both_sides_of_a_pair_agree(board):
    rows = {row.name: row for row in board[1].standings}
    for row in rows.values():
        for difference in row.differences:
            opposite = [each for each in rows[difference.other].differences if each.other == row.name]
            for other in opposite:
                assert (other.value, other.low, other.high) == (-difference.value, -difference.high, -difference.low)
                assert other.p_value == difference.p_value


def test_they_agree_with_the_table(board):
    for row in board[1].standings[1:]:
        difference = row.differences[0]
        assert (difference.value, difference.p_value) == (-row.behind, row.p_value)
        assert (difference.other in (row.tied_with or ())) == (difference.p_value >= 0.05)


def test_a_stored_leaderboard_is_read_back(board):
    folder, ranking = board
    assert read_leaderboard(folder) == ranking


def test_lower_can_be_better(tmp_path):
    ranking = ranked(tmp_path, {"alba": 9, "cirrus": 3}, by="wer", failed_answers="blank")
    assert [row.name for row in ranking.standings] == ["alba", "cirrus"]
    worse = ranking.standings[1].differences[0]
    assert worse.value == pytest.approx(ranking.standings[1].value - ranking.standings[0].value)
    assert 0 < worse.low < worse.value < worse.high
