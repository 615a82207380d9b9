"""Sparse tables: every product equals scipy's to the last bit, because both add in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from multimodal_eval._native import summed_rows, table_times
from multimodal_eval.stats.ratings import SparseTable


def random_dense(rows, columns, seed, share=0.4):
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, columns)) * (random.random((rows, columns)) < share)


shapes = st.tuples(st.integers(0, 7), st.integers(1, 6), st.integers(0, 2**32))


@given(shapes, st.integers(1, 5))
def test_products_equal_scipys(shape, others):
    rows, columns, seed = shape
    dense = random_dense(rows, columns, seed)
    ours, theirs = SparseTable.of_dense(dense), sparse.csr_array(dense)
    right, left = random_dense(columns, others, seed + 1, 1), random_dense(rows, others, seed + 2, 1)
    assert ours.shape == dense.shape
    assert ours.dense().tolist() == dense.tolist()
    assert ours.times(right).tolist() == (theirs @ right).tolist()
    assert ours.times(right[:, 0]).tolist() == (theirs @ right[:, 0]).tolist()
    assert ours.transposed_times(left).tolist() == (theirs.T @ left).tolist()
    assert ours.totals(left.T).tolist() == (left.T @ theirs).tolist()
    assert ours.totals(left[:, 0]).tolist() == (left[:, 0] @ theirs).tolist()
    assert ours.squared().dense().tolist() == (dense**2).tolist()
    assert ours.row_sums() == pytest.approx(dense.sum(axis=1), abs=1e-12)


@given(shapes, st.integers(0, 5))
def test_sums_of_rows_equal_scipys(shape, groups):
    rows, columns, seed = shape
    table, weights = random_dense(rows, columns, seed), np.abs(random_dense(groups, rows, seed + 1))
    ours = SparseTable.of_dense(table).summed(SparseTable.of_dense(weights))
    assert ours.dense().tolist() == (sparse.csr_array(weights) @ sparse.csr_array(table)).toarray().tolist()


@given(st.lists(shapes, min_size=1, max_size=4), st.integers(0, 5))
def test_tables_side_by_side(blocks, rows):
    dense = [random_dense(rows, columns, seed) for _, columns, seed in blocks]
    joined = SparseTable.side_by_side([SparseTable.of_dense(block) for block in dense])
    assert joined.dense().tolist() == np.hstack(dense).tolist()
    assert all(np.all(np.diff(joined.columns[a:b]) > 0) for a, b in zip(joined.starts, joined.starts[1:], strict=False))


def test_a_vector_becomes_one_column():
    assert SparseTable.of_dense(np.array([1.0, 0.0, 2.0])).dense().tolist() == [[1], [0], [2]]


@given(st.integers(0, 6), st.integers(0, 5), st.sampled_from([1, 2, 4, 100]), st.integers(0, 2**32))
def test_labels_are_counted_by_row(rows, annotators, labels, seed):
    codes = np.random.default_rng(seed).integers(-1, labels, (rows, annotators))
    table = SparseTable.of_labels(codes, labels)
    expected = [[int(np.count_nonzero(row == label)) for label in range(labels)] for row in codes]
    assert table.dense().tolist() == expected
    assert (table.values > 0).all()
    assert table.rows.tolist() == [row for row, counts in enumerate(expected) for count in counts if count]


def test_cells_in_ascending_rows():
    table = SparseTable.of_cells(np.array([0, 0, 2]), np.array([2, 0, 1]), np.array([1.0, 2.0, 3.0]), (4, 3))
    assert table.dense().tolist() == [[2, 0, 1], [0, 0, 0], [0, 3, 0], [0, 0, 0]]


def test_a_product_without_columns():
    table = SparseTable.of_dense(np.ones((2, 3)))
    assert table.times(np.zeros((3, 0))).shape == (2, 0)


@pytest.mark.parametrize(
    ("starts", "columns"),
    [([0, 1], [3]), ([0, 1], [-1]), ([0, 2, 1], [0]), ([1, 1], [0]), ([0, 0], [0]), ([], [0]), ([0, 1], [0, 0])],
)
def test_a_damaged_table_is_refused(starts, columns):
    table = np.array(starts, dtype=np.int64), np.array(columns, dtype=np.int64), np.ones(1)
    with pytest.raises(ValueError, match="not a sparse table"):
        table_times(*table, np.ones((3, 1)), False, 3)
    with pytest.raises(ValueError, match="not a sparse table"):
        summed_rows(*table, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), 3)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="shapes"):
        SparseTable.of_dense(np.ones((2, 3))).times(np.ones(2))
