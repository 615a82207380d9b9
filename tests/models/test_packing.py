"""Rows of tokens as one list, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.models import batching
from multimodal_eval.models.batching import Bucket, Rows


def test_rows_are_taken_in_any_order():
    rows = Rows.of([[1, 2, 3], [], [4], [5, 6]])
    assert rows.lengths.tolist() == [3, 0, 1, 2]
    chosen = rows.take([3, 0, 3, 1])
    assert chosen.flat.tolist() == [5, 6, 1, 2, 3, 5, 6]
    assert chosen.lengths.tolist() == [2, 3, 2, 0]
    assert batching.places(chosen.lengths).tolist() == [0, 1, 0, 1, 2, 0, 1]
    assert Rows.of([]).take([]).flat.tolist() == []


def test_many_rows_of_one_length_are_not_padded(monkeypatch):
    monkeypatch.setattr(batching, "TOKENS_PER_BUCKET", 12)
    # 5 rows of 4 are 20 tokens, more than 12: alone. 3 and 2 and 2 and 1 fit: 4 rows of 3.
    lengths = np.array([4, 4, 4, 4, 4, 3, 2, 2, 1])
    assert list(batching._buckets(lengths)) == [Bucket(5, 4, is_padded=False), Bucket(4, 3, is_padded=True)]
    assert list(batching._buckets(lengths[5:6])) == [Bucket(1, 3, is_padded=False)]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.integers(1, 100))
def test_buckets_hold_every_row_once_and_are_bounded(lengths, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "TOKENS_PER_BUCKET", limit)
        buckets = list(batching._buckets(np.array(sorted(lengths, reverse=True))))
    assert sum(bucket.rows for bucket in buckets) == len(lengths)
    assert all(bucket.rows * bucket.length <= limit for bucket in buckets if bucket.is_padded)
    start = 0
    for bucket in buckets:
        inside = sorted(lengths, reverse=True)[start : start + bucket.rows]
        assert bucket.length == max(inside)
        assert bucket.is_padded == (len(set(inside)) > 1)
        start += bucket.rows


@pytest.mark.torch
@pytest.mark.parametrize("limit", [1, 12, 1000])
def test_parts_and_joined_are_inverse(monkeypatch, limit):
    import torch

    from multimodal_eval.models.torch_device import place

    monkeypatch.setattr(batching, "TOKENS_PER_BUCKET", limit)
    rows = Rows.of([[10 * n + k for k in range(length)] for n, length in enumerate([5, 5, 4, 2, 2, 2, 1])])
    packed = batching.Packing.of(rows, place("the test"))
    tokens = packed.ids[:, None].float()
    parts = list(packed.parts(tokens))
    for part, is_token in parts:
        assert part.shape[2] == 1
        assert is_token is None or not is_token.all()
    assert torch.equal(packed.joined(torch, [part for part, _ in parts]), tokens)
    assert packed.places.tolist() == batching.places(rows.lengths).tolist()
