"""Choose the next token from its logits: the most likely one, or a random one with a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]

__all__ = ["Sampling", "log_probability", "next_token"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. A temperature of 0 takes the most likely one; of equal ones, that with the lowest id."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0  # each text gets its own

    def generator(self) -> np.random.Generator:
        """The random numbers of a text: one per token."""
        import numpy as np

        return np.random.default_rng(self.seed)


def next_token(logits: Floats, sampling: Sampling, random: np.random.Generator) -> int:
    """The next token.

    The distribution is softmax(logits / temperature), restricted to the smallest set of most likely tokens whose
    probabilities sum to at least `top_p`.
    """
    import numpy as np

    if sampling.temperature == 0:
        return int(np.argmax(logits))
    scaled = logits.astype(np.float64) / sampling.temperature
    weights = np.exp(scaled - scaled.max())
    if sampling.top_p >= 1:
        return _drawn(np.cumsum(weights), random.random())
    order = np.argsort(-weights, kind="stable")
    sums = np.cumsum(weights[order])
    kept = int(np.searchsorted(sums, sampling.top_p * sums[-1])) + 1
    return int(order[_drawn(sums[:kept], random.random())])


def _drawn(sums: NDArray[np.float64], draw: float) -> int:
    """The first place whose cumulative weight exceeds the draw from [0, 1)."""
    import numpy as np

    return min(int(np.searchsorted(sums, draw * sums[-1], side="right")), len(sums) - 1)


def log_probability(logits: Floats, token: int) -> float:
    """The natural logarithm of the token's probability under softmax(logits), whatever the temperature is."""
    import numpy as np

    exact = logits.astype(np.float64)
    top = exact.max()
    return float(exact[token] - top - np.log(np.exp(exact - top).sum()))
