"""A BERT in torch, on CPU or CUDA, for sentences and for tokens. Needs torch alone of the extra `[torch]`.

The tokens of all texts of a batch are one long list, without padding: every product has as many rows as there are
tokens, and only attention goes by texts. Texts are sorted by length and tokenized in pieces. The GPU works on a piece
while the next one is tokenized: Python need not wait for it, and a thread would compete for Python's lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from multimodal_eval.models.batching import by_tokens
from multimodal_eval.models.packing import Packing, Rows
from multimodal_eval.models.sentences import bert as sentence_bert
from multimodal_eval.models.sentences.bert import BertConfig, BertTexts
from multimodal_eval.models.sentences.on_torch import refuse_code
from multimodal_eval.models.source import CONFIG, Model
from multimodal_eval.models.torch_device import Fetching, Format, Placement, halving, label_of, place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

LETTERS_PER_PIECE = 1 << 18  # tokenized together: about as many tokens as a batch has
SHORT = 32  # tokens
TOKENS_PER_BATCH = {"cuda": 1 << 16, "cpu": 1 << 12}


def check(model: Model) -> None:
    """Check that the model, torch and the device are available, and that no file of the model may run code."""
    sentence_bert.check(model)
    refuse_code(model)
    place(f"the encoder 'torch:{model.name}'")


class TorchBert:
    """The network. Weights are read from safetensors."""

    def __init__(self, model: Model, placed: Placement) -> None:
        self.placed, self.torch = placed, placed.torch
        self.config = model.read(CONFIG, BertConfig)
        self.heads, self.epsilon = self.config.num_attention_heads, self.config.layer_norm_eps
        self._read = model.weights.read
        names = ("word_embeddings", "position_embeddings", "token_type_embeddings")
        self.words, self.positions, types = (self._tensor(f"embeddings.{name}.weight") for name in names)
        self.positions = self.positions + types[0]
        self.first_norm = self._pair("embeddings.LayerNorm")
        self.layers = [self._layer(number) for number in range(self.config.num_hidden_layers)]

    def _tensor(self, *names: str) -> Any:
        """Tensors of the file, one below the other, on the device."""
        return self.placed.weights(*(self._read(name) for name in names))

    def _pair(self, *prefixes: str) -> tuple[Any, Any]:
        weights = self._tensor(*(f"{prefix}.weight" for prefix in prefixes))
        return weights, self._tensor(*(f"{prefix}.bias" for prefix in prefixes))

    def _layer(self, number: int) -> tuple[tuple[Any, Any], ...]:
        layer = f"encoder.layer.{number}"
        return (
            self._pair(*(f"{layer}.attention.self.{part}" for part in ("query", "key", "value"))),
            self._pair(f"{layer}.attention.output.dense"),
            self._pair(f"{layer}.attention.output.LayerNorm"),
            self._pair(f"{layer}.intermediate.dense"),
            self._pair(f"{layer}.output.dense"),
            self._pair(f"{layer}.output.LayerNorm"),
        )

    def states(self, packing: Packing, layers: int) -> Any:
        """The vectors of all tokens after some layers."""
        function = self.torch.nn.functional
        x = function.embedding(packing.ids, self.words) + function.embedding(packing.places, self.positions)
        x = self._norm(x, self.first_norm)
        for packed, mixed, mixed_norm, inner, outer, norm in self.layers[:layers]:
            parts = [self._attend(*part) for part in packing.parts(function.linear(x, *packed))]
            attended = packing.joined(self.torch, parts)
            x = self._norm(function.linear(attended, *mixed).add_(x), mixed_norm)
            wide = function.gelu(function.linear(x, *inner))
            x = self._norm(function.linear(wide, *outer).add_(x), norm)
        return x

    def _norm(self, x: Any, terms: tuple[Any, Any]) -> Any:
        return self.torch.nn.functional.layer_norm(x, x.shape[-1:], *terms, self.epsilon)

    def _attend(self, packed: Any, is_token: Any) -> Any:
        """Each token attends to the tokens of its text. `packed` has queries, keys and values side by side."""
        texts, length, width = packed.shape
        q, k, v = packed.view(texts, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mask = None if is_token is None else is_token[:, None, None]
        if length <= SHORT:  # twice as fast as the kernel, whose blocks are longer than the text
            weights = (q @ k.transpose(-1, -2)).mul_(q.shape[-1] ** -0.5)
            if mask is not None:
                weights.masked_fill_(~mask, -self.torch.inf)
            mixed = weights.softmax(-1) @ v
        else:
            mixed = self.torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return mixed.transpose(1, 2).reshape(texts, length, width // 3)


class TorchBertSentences:
    """A BERT with mean pooling and L2 normalisation."""

    def __init__(self, model: Model, languages: frozenset[str], number_format: Format = "float32") -> None:
        self.label, self.languages = label_of(model, number_format), languages
        self.placed = place(f"the encoder 'torch:{model.name}'", number_format)
        self.bert = TorchBert(model, self.placed)
        self.texts = BertTexts(model, self.bert.config)
        self.are_cut = self.texts.are_cut

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text."""
        import numpy as np

        vectors = np.empty((len(texts), self.bert.config.hidden_size), np.float32)
        fetching = Fetching(self.placed)
        tokens = TOKENS_PER_BATCH[self.placed.device.type]
        for positions, rows in self._tokenized(texts):

            def run(batch: Sequence[int], rows: Rows = rows, positions: NDArray[np.int64] = positions) -> None:
                packing = Packing.of(rows.take(batch), self.placed)
                with self.placed.inference():
                    computed = self._unit_means(self.bert.states(packing, len(self.bert.layers)), packing)
                fetching.add(computed, partial(vectors.__setitem__, positions[batch]))

            for batch in by_tokens(rows.lengths, tokens=tokens):
                halving(self.placed.torch, run, batch)
        fetching.finish()
        return vectors

    def _unit_means(self, states: Any, packing: Packing) -> Any:
        """The unit vectors of the texts, from those of their tokens."""
        vectors = []
        for x, is_token in packing.parts(states):
            sums = (x.float() if is_token is None else x.float() * is_token[:, :, None]).sum(dim=1)
            vectors.append(sums / sums.norm(dim=1, keepdim=True))  # a sum has the direction of the mean
        return self.placed.torch.cat(vectors)

    def _tokenized(self, texts: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], Rows]]:
        """Positions and tokens of texts of similar length, the longest first."""
        import numpy as np

        for piece in by_tokens([len(text) for text in texts], tokens=LETTERS_PER_PIECE):
            yield np.array(piece), Rows.of(self.texts.ids([texts[position] for position in piece]))
