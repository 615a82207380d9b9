"""Tables of ratings that several tests use, and shortcuts to their agreement values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from multimodal_eval.stats.agreement import krippendorff_alpha

nan = np.nan

# From the docstring of krippendorff 0.9.0, transposed: units x annotators.
DOCSTRING = np.array(
    [
        [nan, nan, nan, nan, nan, 3, 4, 1, 2, 1, 1, 3, 3, nan, 3],
        [1, nan, 2, 1, 3, 3, 4, 3, nan, nan, nan, nan, nan, nan, nan],
        [nan, nan, 2, 1, 3, 4, 4, nan, 2, 1, 1, 3, 3, nan, 4],
    ]
).T

# Small tables of labels 0 to 3 with missing ratings (-1).
tables = hnp.arrays(np.int64, st.tuples(st.integers(1, 12), st.integers(2, 4)), elements=st.integers(-1, 3))
complete = hnp.arrays(np.int64, st.tuples(st.integers(2, 12), st.integers(2, 4)), elements=st.integers(0, 3))


def with_gaps(codes):
    return np.where(codes < 0, nan, codes)


def alpha(ratings, level="nominal", **options):
    return krippendorff_alpha(ratings, level, resamples=0, **options).value


def same(left, right):
    return left == right if left is None or right is None else left == pytest.approx(right, abs=1e-9)
