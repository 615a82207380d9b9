"""Stored scores as arrays: rows are selected with their statistics, and groups become cluster codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from multimodal_eval.analysis.columns import Column, Statistics, cluster_codes

SCORED = np.array([True, False, True, True])
STATS = np.array([[1.0], [3.0], [4.0]])  # of the rows 0, 2 and 3


def groups(*names):
    return pa.chunked_array([pa.array(names, pa.string())])


def texts(*values):
    return pa.chunked_array([pa.array(values, pa.string())])


@pytest.mark.parametrize(
    ("names", "codes"),
    [
        ((None, None, None), None),
        (("a", "b", None), None),  # groups of one sample do not count
        (("a", "b", "a"), [0, 1, 0]),
        (("a", None, "a", None), [0, 1, 0, 2]),  # each without a group is a cluster
        ((None, "b", "b"), [1, 0, 0]),
    ],
)
def test_groups_are_clusters(names, codes):
    clusters = cluster_codes(groups(*names))
    assert (None if clusters is None else clusters.tolist()) == codes


def test_selected_rows_keep_their_statistics():
    values = np.array([0.1, np.nan, 0.3, 0.4])
    chosen = Statistics(values, SCORED, STATS).at(np.array([3, 1, 2]))
    assert chosen.scored.tolist() == [True, False, True]
    assert chosen.values[0] == 0.4
    assert chosen.stats is not None
    assert chosen.stats.tolist() == [[4.0], [3.0]]


def test_selected_rows_of_a_column_keep_everything():
    column = Column(
        "bleu",
        np.array([0.1, np.nan, 0.3, 0.4]),
        SCORED,
        STATS,
        texts("ok", "error", "ok", "ok"),
        texts(None, "why", None, None),
        texts(None, None, "blank_answer", None),
        {"one": np.array([np.nan, 0.5, np.nan, 0.7])},
    )
    assert column.has_parts.tolist() == [False, True, False, True]
    chosen = column.at(np.array([2, 1]))
    assert chosen.scored.tolist() == [True, False]
    assert chosen.stats is not None
    assert chosen.stats.tolist() == [[3.0]]
    assert chosen.status.to_pylist() == ["ok", "error"]
    assert chosen.reason.to_pylist() == [None, "why"]
    assert chosen.warning.to_pylist() == ["blank_answer", None]
    assert chosen.parts["one"].tolist()[1] == 0.5
