"""Of several processes that start a run in the same folder at the same moment, exactly one wins."""

from __future__ import annotations

import pytest

from tests.hostile.start_race import race


@pytest.mark.slow
def test_exactly_one_process_wins(tmp_path):
    assert race(tmp_path, rounds=10, processes=3) == []
