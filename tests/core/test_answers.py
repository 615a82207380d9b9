"""Failed and blank rows: the same from columns as from samples."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample
from multimodal_eval.core.answers import answers_of
from multimodal_eval.core.batch import Batch
from multimodal_eval.data.runs.sample_table import to_batch, to_table

answers = st.none() | st.sampled_from(
    ["", " \n", "\u2003", "a dog", "[ERROR] x", "\t[ERROR]", "no [ERROR]", "[ERR", "OR]", "[ERROR][ERROR]", "é"]
)
rows = st.lists(st.tuples(answers, st.sampled_from([None, None, "", "timeout"])), min_size=1, max_size=12)


@given(rows, st.integers(0, 12), st.sampled_from([(r"\s*\[ERROR\]",), (), ("a d", r"\s*\[ERROR\]")]))
def test_columns_and_samples_agree(rows, start, patterns):
    samples = [Sample(id=str(row), generated_answer=answer, error=error) for row, (answer, error) in enumerate(rows)]
    start = min(start, len(samples) - 1)
    batch = to_batch(to_table(samples, 0))[start:]
    assert answers_of(batch, patterns) == answers_of(Batch.of(samples[start:]), patterns)
