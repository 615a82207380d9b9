"""Which samples belong together, as codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def cluster_codes(groups: pa.ChunkedArray) -> NDArray[np.int64] | None:
    """Integer codes of the groups; a sample without one is its own cluster. None where no sample has one."""
    if groups.null_count == len(groups):
        return None
    encoded = groups.combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    alone = codes < 0
    codes[alone] = len(encoded.dictionary) + np.arange(int(alone.sum()))
    return codes
