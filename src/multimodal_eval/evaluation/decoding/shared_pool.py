"""The decoding pool of this process, and how many processes it may have."""

from __future__ import annotations

import atexit
import os
from functools import lru_cache
from multiprocessing import current_process

from multimodal_eval.core.machine import cores
from multimodal_eval.evaluation.decoding.pool import DecodingPool

VARIABLE = "MMEVAL_DECODERS"
_limit: int | None = None
_pools: list[DecodingPool] = []  # more than one if the limit was changed


def limit_decoders(workers: int | None) -> None:
    """Set the number of processes for pools that are not started yet; None: one per core."""
    global _limit
    _limit = workers


def decoding_pool() -> DecodingPool | None:
    """The pool of this process; None if it may not start processes. $MMEVAL_DECODERS sets their number, 0 for none."""
    setting = os.environ.get(VARIABLE, "").strip()
    workers = int(setting) if setting.isdigit() else _limit or cores()
    if workers < 1 or current_process().daemon:  # a daemon process cannot start children
        return None
    return _pool(os.getpid(), workers)


def end_decoders() -> None:
    """End the processes of this process now instead of after a while; the next images start new ones."""
    for pool in _pools:
        pool.close()
    _pools.clear()
    _pool.cache_clear()


@lru_cache(maxsize=1)
def _pool(process: int, workers: int) -> DecodingPool:
    pool = DecodingPool(workers)
    _pools.append(pool)
    return pool


atexit.register(end_decoders)
