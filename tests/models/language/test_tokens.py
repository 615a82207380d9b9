"""Windows over a long text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.models.language.causal import Reading, windows


@given(tokens=st.integers(0, 60), first=st.integers(0, 60), window=st.integers(2, 20), data=st.data())
def test_each_token_is_scored_once_with_enough_context(tokens, first, window, data):
    reading = Reading(window, data.draw(st.integers(1, window - 1)))
    scored = []
    for piece in windows(tokens, first, reading):
        assert 0 <= piece.begin < piece.first < piece.end <= tokens
        assert piece.end - piece.begin <= window
        for token in range(piece.first, piece.end):
            assert token - piece.begin >= min(token, window - reading.stride)
            scored.append(token)
    assert scored == list(range(max(1, first), tokens))
