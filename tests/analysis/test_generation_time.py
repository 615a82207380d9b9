"""How long a model was asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.analysis.generation import busy_seconds, union_length
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.answer_tables import exchange_table
from multimodal_eval.generate.protocol import Answer, Exchange, Outcome

OK = Outcome("ok", Answer("x"))


def test_pauses_and_cached_answers_do_not_count(tmp_path):
    folder = RunFolder(tmp_path / "run")
    exchanges = [
        Exchange(OK, "", started=10, latency=4),  # 10 to 14
        Exchange(OK, "", started=11, latency=1),  # inside
        Exchange(OK, "", started=13, latency=3),  # to 16
        Exchange(OK, "", started=100, latency=2),  # after a pause
        Exchange(OK, "", started=0, latency=50, is_cached=True),
        Exchange(OK, ""),  # not asked
    ]
    folder.write_part("exchanges", 0, exchange_table(0, exchanges))
    assert busy_seconds(folder, 1) == 8
    assert busy_seconds(folder, 2) == 8  # the second part has no exchanges


def test_nothing_was_asked(tmp_path):
    assert busy_seconds(RunFolder(tmp_path / "run"), 1) == 0


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), min_size=1))
def test_the_union_counts_every_second_once(intervals):
    starts = np.array([start for start, _ in intervals], dtype=float)
    ends = np.array([start + length for start, length in intervals], dtype=float)
    seconds = {second for start, length in intervals for second in range(start, start + length)}
    assert union_length(starts, ends) == pytest.approx(len(seconds))
