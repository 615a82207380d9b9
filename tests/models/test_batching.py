"""Batches of equally long sequences, and of many tokens."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.models.batching import MIN_FILLED, by_tokens, equal_lengths, run_in_parallel


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 30), st.integers(1, 3), st.integers(1, 3))
def test_each_sequence_is_in_one_batch_and_a_batch_has_one_length(lengths, tokens, min_rows, min_tokens):
    sequences = [[0] * length for length in lengths]
    seen = []
    for positions, rows in equal_lengths(sequences, tokens=tokens, min_rows=min_rows, min_tokens=min_tokens):
        (length,) = {len(row) for row in rows}
        assert len(rows) >= min_rows
        assert len(rows) * length >= min_tokens or not length
        assert all(rows[i] is sequences[position] for i, position in enumerate(positions))
        repeated = rows[len(positions) :]
        assert all(row is rows[0] for row in repeated)
        assert not repeated or len(rows) == min_rows or (len(rows) - 1) * length < min_tokens
        seen += positions
    assert sorted(seen) == list(range(len(lengths)))


def test_the_tokens_of_a_full_batch_fill_whole_blocks_of_twelve():
    rows = {length: [[0] * length] * 300 for length in (1, 5, 8, 10, 12, 36)}
    sizes = {length: len(next(equal_lengths(group, tokens=256))[1]) for length, group in rows.items()}
    # 256 // 5 = 51, and 48 is the largest multiple of 12 below; 256 // 8 = 32 -> 30, because 3 * 8 = 24, …
    assert sizes == {1: 252, 5: 48, 8: 30, 10: 24, 12: 21, 36: 7}
    assert len(next(equal_lengths([[0] * 100] * 9, tokens=256))[1]) == 2  # 3 rows would be needed


@pytest.mark.parametrize("cores", [1, 2, 40])
def test_every_batch_is_run_once_on_any_number_of_cores(monkeypatch, cores):
    monkeypatch.setattr("multimodal_eval.core.machine.cores", lambda: cores)
    done = []
    run_in_parallel(done.append, iter(range(50)))
    assert sorted(done) == list(range(50))
    run_in_parallel(done.append, [])


def test_the_number_of_threads_can_be_bounded(monkeypatch):
    monkeypatch.setattr("multimodal_eval.core.machine.cores", lambda: 12)
    names = set()
    run_in_parallel(lambda _: names.add(threading.current_thread().name), range(60), max_threads=1)
    assert names == {threading.current_thread().name}


def test_as_many_batches_run_at_a_time_as_there_are_cores(monkeypatch):
    monkeypatch.setattr("multimodal_eval.core.machine.cores", lambda: 12)
    together = threading.Barrier(12)
    run_in_parallel(lambda _: together.wait(timeout=600), range(24))  # each batch waits for eleven others


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
