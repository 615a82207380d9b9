"""Any sentence-transformers model in torch, on CPU or CUDA. Needs the extra `[torch]`.

A BERT with mean pooling is run by `TorchBert` instead, which is faster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ModelError
from multimodal_eval.core.optional import require
from multimodal_eval.models.batching import Packing, Rows, by_tokens
from multimodal_eval.models.encoders import TextTokens
from multimodal_eval.models.foreign_folder import check_settings
from multimodal_eval.models.sentences import bert as sentence_bert
from multimodal_eval.models.sentences.bert import MAX_TOKENS, BertConfig, BertTexts
from multimodal_eval.models.sentences.tokens import limited_tokenizer, max_tokens
from multimodal_eval.models.source import CONFIG, Model
from multimodal_eval.models.torch_device import (
    Fetching,
    Format,
    Placement,
    expected_device,
    halving,
    label_of,
    place,
)
from multimodal_eval.resources.catalogue import UNSAFE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


LETTERS_PER_BATCH = {"cuda": 1 << 18, "cpu": 1 << 13}  # about four times as many as tokens
_TINY = 1e-12  # as in torch's `normalize`


def check(model: Model) -> None:
    """Check that the model and the packages are available, and that no file of the model may run code."""
    model.check()
    refuse_code(model)
    require("sentence_transformers", extra="torch", purpose=f"the encoder {model.name!r}")
    place(f"the encoder {model.name!r}")


def refuse_code(model: Model) -> None:
    """Some releases of the library import modules from the folder and open pickles, regardless of their settings."""
    if model.resource is None:
        check_settings(model, ["", *(path.name for path in model.folder.iterdir() if path.is_dir())])  # of its modules
    for path in sorted(model.folder.rglob("*")):
        if path.suffix in UNSAFE and not any(path.parent.glob("*.safetensors")):
            raise ModelError(f"{path} may run code when it is opened: convert it to safetensors")
    modules = model.folder / "modules.json"
    try:
        kinds = [str(entry["type"]) for entry in json.loads(modules.read_text("utf-8"))] if modules.is_file() else []
    except (ValueError, KeyError, TypeError) as fault:
        raise ModelError(f"{modules} cannot be read: {fault}") from None
    for kind in kinds:
        if not kind.startswith("sentence_transformers."):
            raise ModelError(f"{modules} names {kind!r}, which is not part of sentence-transformers and is not run")


class TorchSentences:
    """A sentence-transformers model. Only code of that library is run, none that comes with the model."""

    def __init__(
        self, model: Model, languages: frozenset[str] = frozenset(), number_format: Format = "float32"
    ) -> None:
        library = require("sentence_transformers", extra="torch", purpose=f"the encoder {model.name!r}")
        refuse_code(model)
        model.verify()
        self.label, self.languages = label_of(model, number_format), languages
        self.placed = place(f"the encoder {model.name!r}", number_format)
        self.model = library.SentenceTransformer(
            str(model.folder),
            device=str(self.placed.device),
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True, "torch_dtype": self.placed.dtype},
        ).to(self.placed.dtype)
        if model.resource is not None:  # its files do not state the limit
            self.model.max_seq_length = MAX_TOKENS

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per text."""
        import numpy as np

        order: list[int] = []
        pieces: list[Any] = []

        def run(batch: Sequence[int]) -> None:
            with self.placed.inference():
                vectors = self.model.encode(
                    [texts[position] for position in batch],
                    batch_size=len(batch),
                    convert_to_tensor=True,
                    show_progress_bar=False,
                ).float()
                pieces.append(vectors / vectors.norm(dim=1, keepdim=True).clamp_min(_TINY))
            order.extend(batch)

        lengths = [len(text) + 1 for text in texts]
        for batch in by_tokens(lengths, tokens=LETTERS_PER_BATCH[self.placed.device.type], padded=True):
            halving(self.placed.torch, run, batch)
        if not pieces:
            return np.empty((0, 0), np.float32)
        computed = self.placed.torch.cat(pieces).cpu().numpy()
        vectors: NDArray[np.float32] = np.empty_like(computed)
        vectors[order] = computed
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""
        limit = self.model.max_seq_length
        if limit is None:
            return [False] * len(texts)
        return [len(text) > limit - 2 and len(self.model.tokenizer(text)["input_ids"]) > limit for text in texts]


# A BERT in torch, on CPU or CUDA, for sentences and for tokens. Needs torch alone of the extra `[torch]`.
#
# The tokens of all texts of a batch are one long list, without padding: every product has as many rows as there are
# tokens, and only attention goes by texts. Texts are sorted by length and tokenized in pieces. The GPU works on a
# piece while the next one is tokenized: Python need not wait for it, and a thread would compete for Python's lock.

LETTERS_PER_PIECE = 1 << 18  # tokenized together: about as many tokens as a batch has
SHORT = 32  # tokens
TOKENS_PER_BATCH = {"cuda": 1 << 16, "cpu": 1 << 12}


def check_bert(model: Model) -> None:
    """Check that the model, torch and the device are available, and that no file of the model may run code."""
    sentence_bert.check(model)
    refuse_code(model)
    expected_device(f"the encoder 'torch:{model.name}'")


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


# Vectors of the tokens of a text, in torch, on CPU or CUDA.
#
# `TorchBertTokens` runs a BERT without padding. `TorchTokens` runs the transformer of any sentence-transformers model
# on padded batches and computes all layers.


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
