"""The Jensen-Shannon distance between two label distributions."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import jensenshannon

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.stats.agreement import jensen_shannon
from tests.stats.rated_tables import nan


def test_the_published_distance():
    distance = jensen_shannon([2 / 3, 1 / 3, 0], [0.5, 0.25, 0.25])
    assert distance == pytest.approx(0.3091967, abs=5e-8)
    assert distance**2 == pytest.approx(0.0956026, abs=5e-8)
    assert jensen_shannon([8, 4, 0], [2, 1, 1]) == pytest.approx(distance)  # counts are accepted
    assert jensen_shannon([1, 0], [0, 1]) == pytest.approx(sqrt(log(2)))


shares = hnp.arrays(np.float64, (3, 4), elements=st.floats(0.0, 1.0).map(lambda share: round(share, 6)))


@given(shares, shares)
def test_the_distance_equals_scipy(p, q):
    assume((p.sum(axis=1) > 0).all())
    assume((q.sum(axis=1) > 0).all())
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q, axis=1), abs=1e-7)


@pytest.mark.parametrize("bad", [[0, 0], [nan, 1], [-1, 2], [1, 2, 3]])
def test_a_distribution_is_checked(bad):
    with pytest.raises(ConfigError, match="distribution"):
        jensen_shannon(bad, [1, 1])
