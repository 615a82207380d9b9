"""Which rows of a batch lack a field that a metric needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.sample import has

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Fields that are missing only if they are null. For the others, `has` looks at the sample.
_PLAIN = {
    *("id", "task", "question", "prompt", "expected_answer", "caption", "generated_answer", "relevant"),
    *("expected_behavior", "perplexity", "group", "epoch", "error"),
}


def rows_without(batch: Batch, need: str) -> NDArray[np.bool_]:
    """True in rows that do not meet the need, computed once for all metrics."""
    return batch.shared(("need", need), lambda: _rows_without(batch, need))


def _rows_without(batch: Batch, need: str) -> NDArray[np.bool_]:
    import numpy as np

    if batch.has_columns and need in _PLAIN:
        return _is_null(batch, need)
    if batch.has_columns and need == "references":
        return _without_list(batch) & _is_null(batch, "expected_answer") & _is_null(batch, "caption")
    return np.fromiter((not has(sample, need) for sample in batch), np.bool_, len(batch))


def _is_null(batch: Batch, name: str) -> NDArray[np.bool_]:
    import numpy as np

    column = batch.column(name)
    if column is None:
        return np.ones(len(batch), np.bool_)
    from multimodal_eval.core.arrow import null_rows

    return null_rows(column)


def _without_list(batch: Batch) -> NDArray[np.bool_]:
    """True if `references` is null or empty."""
    import numpy as np

    column = batch.column("references")
    if column is None:
        return np.ones(len(batch), np.bool_)
    from multimodal_eval.core.arrow import offsets_of

    is_empty: NDArray[np.bool_] = np.diff(offsets_of(column)) == 0
    return _is_null(batch, "references") | is_empty
