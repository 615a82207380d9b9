"""Llama models run by onnxruntime: the default language model, SmolLM2-135M.

A text has the same log-probabilities to the last bit alone and among others, on any number of cores: windows are
batched by their exact length, without padding, and a batch is computed by one thread (several would cut the sums of a
product into other pieces), batches beside one another. The weights stay in the mapped file, which opens at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from multimodal_eval.models.batching import equal_lengths, side_by_side
from multimodal_eval.models.formats.onnx_graph import open_session
from multimodal_eval.models.language import llama
from multimodal_eval.models.language.tokens import FILE, Tokens
from multimodal_eval.models.source import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

LONGEST = 8192  # tokens seen at once, whatever the model allows: the attention grows with the square
TOKENS_AT_ONCE = 1024  # of a batch
SCORED_AT_ONCE = 256  # rows of (vocabulary) numbers in memory
FEWEST_SCORED = 2  # onnxruntime takes another kernel for one row
_SILENT = {"attention_bias": False, "mlp_bias": False, "rope_scaling": None}


def can_run(model: Model) -> bool:
    """Whether the model is a plain llama, as far as its files tell."""
    config = model.config
    if config.get("model_type") != "llama" or config.get("hidden_act") != "silu":
        return False
    if any(config.get(key) not in (None, value) for key, value in _SILENT.items()):
        return False
    if (config.get("rope_parameters") or {}).get("rope_type", "default") != "default":
        return False
    return all((model.folder / name).is_file() for name in ("model.safetensors", FILE))


class CausalLlama:
    """A llama model: texts to ids, ids to the log-probability of each."""

    def __init__(self, model: Model, languages: frozenset[str] = frozenset()) -> None:
        self.label, self.languages = model.label, languages
        config = model.config
        self.bos: int | None = config.get("bos_token_id")
        self.longest = min(int(config["max_position_embeddings"]), LONGEST)
        self.tokens: Callable[[Sequence[str]], list[list[int]]] = Tokens(model)
        self.width = int(config["hidden_size"])
        folder = model.weights.path.parent  # where a link leads
        self.body = open_session(llama.body(model.weights, config, self.longest), folder, 1, prepack=False)
        self.head = open_session(llama.head(model.weights, config), folder, 1, prepack=False)

    def score(self, rows: Sequence[Sequence[int]], firsts: Sequence[int]) -> list[Floats]:
        """For each row of ids the log-probabilities of those from `first` (at least 1) on, given all before."""
        import numpy as np

        scores: list[Floats] = [np.empty(0, np.float32)] * len(rows)

        def run(job: tuple[list[int], list[Sequence[int]]]) -> None:
            places, batch = job
            found = self._batch(np.array(batch, np.int64), [firsts[place] for place in places])
            for place, values in zip(places, found, strict=True):
                scores[place] = values

        side_by_side(run, equal_lengths(rows, tokens=TOKENS_AT_ONCE, fewest=1))
        return scores

    def _batch(self, ids: NDArray[np.int64], firsts: list[int]) -> list[Floats]:
        """The same for rows of one length."""
        import numpy as np

        states = self.body.run(None, {"ids": ids})[0].reshape(*ids.shape, self.width)
        before = np.concatenate([row[first - 1 : -1] for row, first in zip(states, firsts, strict=True)])
        after = np.concatenate([row[first:] for row, first in zip(ids, firsts, strict=True)])
        ends = np.cumsum([ids.shape[1] - first for first in firsts])
        return np.split(self._next(before, after), ends[:-1])

    def _next(self, states: Floats, ids: NDArray[np.int64]) -> Floats:
        """The log-probability of each id after its state."""
        import numpy as np

        if len(ids) < FEWEST_SCORED:
            return self._next(np.repeat(states, FEWEST_SCORED, 0), np.repeat(ids, FEWEST_SCORED))[: len(ids)]
        scores = np.empty(len(ids), np.float32)
        for begin in range(0, len(ids), SCORED_AT_ONCE):
            start = min(begin, len(ids) - FEWEST_SCORED)  # the last piece is no single row either
            piece = slice(start, start + SCORED_AT_ONCE)
            scores[piece] = self.head.run(None, {"states": states[piece], "next": ids[piece, None]})[0][:, 0]
        return scores
