"""Batches of equally long sequences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.models.batching import equal_lengths


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
