"""Facts computed twice: from samples in Python, and from the columns of a batch in compiled code."""

from __future__ import annotations

from multimodal_eval.core.failures import ERROR_PATTERNS
from multimodal_eval.data.runs.sample_table import to_batch, to_table
from multimodal_eval.lint import facts


def facts_of(samples, patterns=ERROR_PATTERNS):
    """The facts of samples, after a check that both ways give the same bytes."""
    from_samples = facts.facts_of(samples, patterns)
    from_columns = facts.facts_of(to_batch(to_table(samples, 0)), patterns)
    assert from_columns.tolist() == from_samples.tolist()
    assert from_columns.tobytes() == from_samples.tobytes()
    return from_samples
