"""Batches of equally long sequences, and of many tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.models.batching import MIN_FILLED, by_tokens, equal_lengths


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 30))
def test_each_sequence_is_in_one_batch_and_a_batch_has_one_length(lengths, tokens):
    sequences = [[0] * length for length in lengths]
    seen = []
    for positions, rows in equal_lengths(sequences, tokens=tokens):
        assert len({len(row) for row in rows}) == 1
        assert len(rows) == max(2, len(positions))
        assert all(rows[i] is sequences[position] for i, position in enumerate(positions))
        seen += positions
    assert sorted(seen) == list(range(len(lengths)))


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(1, 200), st.booleans())
def test_batches_by_tokens_are_bounded_and_hold_each_row_once(lengths, tokens, padded):
    seen = []
    for batch in by_tokens(lengths, tokens=tokens, padded=padded):
        rows = [lengths[position] for position in batch]
        used = len(rows) * max(rows) if padded else sum(rows)
        assert used <= tokens or len(rows) == 1
        assert not padded or min(rows) >= MIN_FILLED * max(rows)
        seen += batch
    assert sorted(seen) == list(range(len(lengths)))
    assert [lengths[position] for position in seen] == sorted(lengths, reverse=True)


def test_a_batch_is_as_full_as_it_can_be():
    lengths = [3, 9, 4, 4, 2, 9]
    assert list(by_tokens(lengths, tokens=12)) == [[1], [5], [2, 3, 0], [4]]  # 9 | 9 | 4 + 4 + 3 | 2
    assert list(by_tokens(lengths, tokens=18, padded=True)) == [[1, 5], [2, 3, 0], [4]]  # 3 < 4 fills; 2 < 0.75 * 4
