"""Vectors of the tokens of a text, in torch, on CPU or CUDA.

`TorchBertTokens` runs a BERT without padding. `TorchTokens` runs the transformer of any sentence-transformers model on
padded batches and computes all layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from multimodal_eval.models.batching import by_tokens
from multimodal_eval.models.encoders import TextTokens
from multimodal_eval.models.packing import Packing, Rows
from multimodal_eval.models.sentences.bert_torch import TOKENS_PER_BATCH, TorchBert
from multimodal_eval.models.sentences.on_torch import TorchSentences
from multimodal_eval.models.sentences.tokens import limited_tokenizer, max_tokens
from multimodal_eval.models.source import Model
from multimodal_eval.models.torch_device import Fetching, Format, Placement, halving, label_of, place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


def _vectors(placed: Placement, rows: Sequence[Sequence[int]], states: Callable[[list[Sequence[int]]], Any]) -> Any:
    """The unit vectors of the tokens of each row. `states` gives those of a batch, one token after the other."""
    vectors: list[Any] = [None] * len(rows)
    fetching = Fetching(placed)

    def store(batch: Sequence[int], values: Vectors) -> None:
        values, start = values.copy(), 0  # the buffer is used again
        for position in batch:
            vectors[position] = values[start : start + len(rows[position])]
            start += len(rows[position])

    def run(batch: Sequence[int]) -> None:
        with placed.inference():
            x = placed.torch.nn.functional.normalize(states([rows[position] for position in batch]).float(), dim=-1)
        fetching.add(x, partial(store, batch))

    for batch in by_tokens([len(row) for row in rows], tokens=TOKENS_PER_BATCH[placed.device.type]):
        halving(placed.torch, run, batch)
    fetching.finish()
    return vectors


class TorchBertTokens:
    """A BERT in torch."""

    skips_unknown = False  # an unknown word is the token [UNK]

    def __init__(self, model: Model, languages: frozenset[str], number_format: Format = "float32") -> None:
        self.label, self.languages = label_of(model, number_format), languages
        self.placed = place(f"the encoder 'torch:{model.name}'", number_format)
        self.bert = TorchBert(model, self.placed)
        self.layers = len(self.bert.layers)
        self.tokenizer = limited_tokenizer(model)
        self.special = frozenset(self.tokenizer.encode("").ids)

    def token_ids(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The word pieces of each text."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(list(texts))]

    def encode(self, texts: Sequence[str], layer: int) -> list[TextTokens]:
        """The word pieces of each text with their vectors."""
        encodings = self.tokenizer.encode_batch_fast(list(texts))
        ids = [encoding.ids for encoding in encodings]
        vectors = _vectors(
            self.placed, ids, lambda rows: self.bert.states(Packing.of(Rows.of(rows), self.placed), layer)
        )
        return [
            TextTokens(row, values, bool(encoding.overflowing))
            for row, values, encoding in zip(ids, vectors, encodings, strict=True)
        ]


class TorchTokens:
    """The transformer of a sentence-transformers model."""

    skips_unknown = False

    def __init__(
        self, model: Model, languages: frozenset[str] = frozenset(), number_format: Format = "float32"
    ) -> None:
        sentences = TorchSentences(model, languages, number_format)
        self.label, self.languages, self.placed = sentences.label, languages, sentences.placed
        self.transformer, self.tokenizer = sentences.model[0].auto_model, sentences.model.tokenizer
        self.layers: int = self.transformer.config.num_hidden_layers
        self.limit = max_tokens(model)
        ends = (self.tokenizer.cls_token_id, self.tokenizer.sep_token_id)
        self.special = frozenset(number for number in ends if number is not None)

    def token_ids(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The tokens of each text."""
        return [self._read(text)[0] for text in texts]

    def _read(self, text: str) -> tuple[list[int], bool]:
        """The tokens that the model reads, and whether there are more."""
        stripped = text.strip()
        ids = list(self.tokenizer(stripped, truncation=True, max_length=self.limit)["input_ids"])
        is_full = len(ids) == self.limit
        return ids, is_full and len(self.tokenizer(stripped, truncation=False)["input_ids"]) > self.limit

    def encode(self, texts: Sequence[str], layer: int) -> list[TextTokens]:
        """The tokens of each text with their vectors."""
        read = [self._read(text) for text in texts]
        vectors = _vectors(self.placed, [ids for ids, _ in read], lambda rows: self._states(rows, layer))
        return [TextTokens(ids, rows, is_cut) for (ids, is_cut), rows in zip(read, vectors, strict=True)]

    def _states(self, batch: list[Sequence[int]], layer: int) -> Any:
        """The vectors of a padded batch, without the padding."""
        padded = self.tokenizer.pad({"input_ids": batch}, return_tensors="pt").to(self.placed.device)
        output = self.transformer(**padded, output_hidden_states=layer != self.layers)
        states = output.last_hidden_state if layer == self.layers else output.hidden_states[layer]
        return self.placed.torch.cat([state[: len(ids)] for state, ids in zip(states, batch, strict=True)])
