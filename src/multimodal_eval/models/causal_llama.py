"""Llama models run by onnxruntime: the default language model, SmolLM2-135M.

Windows are batched by their exact length, without padding, so that a text has the same log-probabilities to the last
bit alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from multimodal_eval.models import llama
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.onnx_graph import open_session
from multimodal_eval.models.source import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

LONGEST = 8192  # tokens seen at once, whatever the model allows: the attention grows with the square
TOKENS_AT_ONCE = 2048
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
    return all((model.folder / name).is_file() for name in ("model.safetensors", "tokenizer.json"))


class CausalLlama:
    """A llama model: texts to ids, ids to the log-probability of each."""

    def __init__(self, model: Model, languages: frozenset[str] = frozenset()) -> None:
        from tokenizers import Tokenizer

        self.label, self.languages = model.label, languages
        config = model.config
        self.bos: int | None = config.get("bos_token_id")
        self.longest = min(int(config["max_position_embeddings"]), LONGEST)
        self.tokenizer = Tokenizer.from_file(str(model.file("tokenizer.json")))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.tokenizer.encode_special_tokens = True  # "<|im_end|>" in an answer is text like any other
        self.width = int(config["hidden_size"])
        self.body = open_session(llama.body(model.weights, config, self.longest), model.folder, prepack=False)
        self.head = open_session(llama.head(model.weights, config), model.folder, prepack=False)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without any that the model adds."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def score(self, rows: Sequence[Sequence[int]], firsts: Sequence[int]) -> list[Floats]:
        """For each row of ids the log-probabilities of those from `first` (at least 1) on, given all before."""
        import numpy as np

        scores: list[Floats] = [np.empty(0, np.float32)] * len(rows)
        for places, batch in equal_lengths(rows, tokens=TOKENS_AT_ONCE, fewest=1):
            ids = np.array(batch, np.int64)
            states = self.body.run(None, {"ids": ids})[0].reshape(*ids.shape, self.width)
            spans = [slice(firsts[place], ids.shape[1]) for place in places]
            before = np.concatenate([states[i, span.start - 1 : -1] for i, span in enumerate(spans)])
            after = np.concatenate([ids[i, span] for i, span in enumerate(spans)])
            found = np.split(self._next(before, after), np.cumsum([s.stop - s.start for s in spans])[:-1])
            for place, values in zip(places, found, strict=True):
                scores[place] = values
        return scores

    def _next(self, states: Floats, ids: NDArray[np.int64]) -> Floats:
        import numpy as np

        count = len(ids)
        if count < FEWEST_SCORED:
            states, ids = np.repeat(states, FEWEST_SCORED, 0), np.repeat(ids, FEWEST_SCORED)
        pieces = []
        for start in range(0, len(ids), SCORED_AT_ONCE):
            start = min(start, len(ids) - FEWEST_SCORED)  # the last piece is no single row either
            end = start + SCORED_AT_ONCE
            out = self.head.run(None, {"states": states[start:end], "next": ids[start:end, None]})[0][:, 0]
            pieces.append((start, out))
        scores = np.empty(len(ids), np.float32)
        for start, out in pieces:
            scores[start : start + len(out)] = out
        return scores[:count]
