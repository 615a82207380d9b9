"""Native kernels of the statistics beside SciPy's: python bench/sparse_tables.py [ROUNDS]

Both get the same arrays, alternately; the table has the smallest CPU time of ROUNDS (7) and whether the results are the
same to the last bit. Needs scipy (the extra [test]).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from scipy import optimize, sparse, special

from multimodal_eval._native import best_assignment, stdtr, stdtrit
from multimodal_eval.stats.ratings import SparseTable

Case = tuple[str, Callable[[], Any], Callable[[], Any]]


def cases() -> list[Case]:
    random = np.random.default_rng(0)
    codes = random.integers(-1, 9, (50_000, 3))
    table = SparseTable.of_labels(codes, 9)
    peer = sparse.csr_array((table.values, table.columns, table.starts), shape=table.shape)
    weights, vectors = random.random((80, 50_000)), random.random((9, 5))
    groups = np.arange(50_000) // 5
    sums = SparseTable.of_cells(groups, np.arange(50_000), np.ones(50_000), (10_000, 50_000))
    peer_sums = sparse.csr_array((sums.values, sums.columns, sums.starts), shape=sums.shape)
    preferences = np.round(random.random((100, 80)), 1).tolist()

    def peer_counts() -> Any:
        rows, columns = np.nonzero(codes >= 0)
        counts = sparse.csr_array((np.ones(len(rows)), (rows, codes[rows, columns])), shape=table.shape)
        counts.sum_duplicates()
        return counts.toarray()

    return [
        ("label counts, 50,000 x 3", lambda: SparseTable.of_labels(codes, 9).dense(), peer_counts),
        ("80 resamples x 50,000 rows", lambda: table.totals(weights), lambda: weights @ peer),
        ("50,000 rows x 5 vectors", lambda: table.times(vectors), lambda: peer @ vectors),
        ("sums of 10,000 groups", lambda: table.summed(sums).dense(), lambda: (peer_sums @ peer).toarray()),
        (
            "assignment, 100 x 80",
            lambda: np.array(best_assignment(preferences)).T,
            lambda: np.array(optimize.linear_sum_assignment(preferences, maximize=True)),
        ),
        (
            "1,000 quantiles of t",
            lambda: np.array([stdtrit(n, 0.975) for n in range(1, 1001)]),
            lambda: np.array([special.stdtrit(n, 0.975) for n in range(1, 1001)]),
        ),
        (
            "1,000 probabilities of t",
            lambda: np.array([stdtr(n, -2.3) for n in range(1, 1001)]),
            lambda: np.array([special.stdtr(n, -2.3) for n in range(1, 1001)]),
        ),
    ]


def measured(function: Callable[[], Any]) -> tuple[float, Any]:
    started = process_time()
    result = function()
    return process_time() - started, result


def main(rounds: int) -> None:
    print(f"{'':<28} {'ours ms':>9} {'SciPy ms':>9} {'ratio':>6}   results")
    for name, ours, theirs in cases():
        pairs = [(measured(ours), measured(theirs)) for _ in range(rounds)]
        our_time, their_time = (min(pair[side][0] for pair in pairs) for side in (0, 1))
        left, right = pairs[0][0][1], pairs[0][1][1]
        same = "equal" if np.array_equal(left, right) else f"within {np.abs(left / right - 1).max():.0e}"
        print(f"{name:<28} {our_time * 1e3:>9.2f} {their_time * 1e3:>9.2f} {their_time / our_time:>6.2f}   {same}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
