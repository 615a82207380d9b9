"""One exchange with a model: the outcome, and what differs from time to time."""

from __future__ import annotations

import msgspec

from multimodal_eval.generate.outcomes import Outcome

__all__ = ["Exchange"]


class Exchange(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a request, how long it took, and after how many attempts."""

    outcome: Outcome
    digest: str  # of the request
    started: float = 0.0  # seconds since 1970
    latency: float = 0.0  # seconds of the last attempt
    attempts: int = 1
    is_cached: bool = False
