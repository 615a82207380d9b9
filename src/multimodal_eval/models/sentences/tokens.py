"""Vectors of the tokens of a text, from the models that encode sentences.

A model reads as many tokens as it has positions, or fewer if its tokenizer_config.json says so. That is what
transformers reads, and more than sentence-transformers does: 512 tokens instead of 256 for all-MiniLM-L6-v2.

| class         | tokens                       | layers                                 |
|---------------|------------------------------|----------------------------------------|
| `BertTokens`  | word pieces, [CLS] and [SEP] | any; the graph ends after the layer    |
| `TorchTokens` | those of the model           | any; all are computed                  |
| `NavecTokens` | the words that navec knows   | only the word vectors, without context |
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.models.batching import equal_lengths, run_in_parallel
from multimodal_eval.models.encoders import TextTokens
from multimodal_eval.models.formats.onnx_graph import open_session
from multimodal_eval.models.sentences import navec
from multimodal_eval.models.sentences.bert import TOKENS_PER_BATCH, BertConfig, label_of, token_graph
from multimodal_eval.models.source import CONFIG, Model
from multimodal_eval.models.tokenizer_file import open_tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

TORCH_BATCH = 32
_UNLIMITED = 512  # tokens that are read if no file states a limit
_UNUSED_POSITIONS = {"roberta": 2, "xlm-roberta": 2, "camembert": 2, "mpnet": 2}  # before the first token


class _Positions(msgspec.Struct, frozen=True):
    """The setting of config.json that limits the length."""

    max_position_embeddings: int | None = None


class _TokenizerConfig(msgspec.Struct, frozen=True):
    """The setting of tokenizer_config.json that limits the length; a huge float means no limit."""

    model_max_length: float | None = None


def max_tokens(model: Model) -> int:
    """How many tokens of a text the model reads, including special ones."""
    name = "tokenizer_config.json"
    stated = model.read(name, _TokenizerConfig).model_max_length if (model.folder / name).is_file() else None
    positions = model.read(CONFIG, _Positions).max_position_embeddings
    usable = _UNLIMITED if positions is None else positions - _UNUSED_POSITIONS.get(model.family or "", 0)
    return usable if stated is None else int(min(stated, usable))


def unit_rows(vectors: Vectors) -> Vectors:
    """The rows divided by their lengths; rows of zeros stay."""
    import numpy as np

    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    norms[norms == 0] = 1
    rows: Vectors = vectors / norms.astype(np.float32)
    return rows


class BertTokens:
    """A BERT run by onnxruntime. Texts are batched by their exact length, so that no vector depends on its batch."""

    skips_unknown = False  # an unknown word is the token [UNK]

    def __init__(self, model: Model, languages: frozenset[str], *, int8: bool = False) -> None:
        self.label, self.languages, self.int8 = label_of(model, int8=int8), languages, int8
        self.model, self.config = model, model.read(CONFIG, BertConfig)
        self.layers, self.width = self.config.num_hidden_layers, self.config.hidden_size
        self.tokenizer = open_tokenizer(model)
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(max_tokens(model))
        self.special = frozenset(self.tokenizer.encode("").ids)
        self._sessions: dict[int, Any] = {}
        self._lock = Lock()

    def token_ids(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The word pieces of each text."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]

    def encode(self, texts: Sequence[str], layer: int) -> list[TextTokens]:
        """The word pieces of each text with their vectors."""
        import numpy as np

        session, encodings = self._session(layer), self.tokenizer.encode_batch(list(texts))
        ids = [encoding.ids for encoding in encodings]
        vectors: list[Vectors] = [np.empty((0, self.width), np.float32)] * len(ids)

        def run(job: tuple[list[int], list[Sequence[int]]]) -> None:
            positions, rows = job
            states = unit_rows(session.run(None, {"ids": np.array(rows, np.int64)})[0])
            for position, state in zip(positions, states, strict=False):  # a lone row is repeated
                vectors[position] = state

        run_in_parallel(run, equal_lengths(ids, tokens=TOKENS_PER_BATCH))
        return [
            TextTokens(encoding.ids, rows, bool(encoding.overflowing))
            for encoding, rows in zip(encodings, vectors, strict=True)
        ]

    def _session(self, layer: int) -> Any:
        """The graph that ends after the layer, opened once."""
        with self._lock:
            if layer not in self._sessions:
                weights = self.model.weights
                graph = token_graph(weights, self.config, layer, int8=self.int8)
                self._sessions[layer] = open_session(graph, weights.path.parent, 1)
            return self._sessions[layer]


class TorchTokens:
    """The transformer of a sentence-transformers model."""

    skips_unknown = False

    def __init__(self, model: Model, languages: frozenset[str] = frozenset()) -> None:
        from multimodal_eval.models.sentences.on_torch import TorchSentences

        sentences = TorchSentences(model, languages)
        self.label, self.languages = sentences.label, languages
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
        import numpy as np

        read = [self._read(text) for text in texts]
        vectors: list[Vectors] = [np.empty((0, 0), np.float32)] * len(read)
        order = sorted(range(len(read)), key=lambda position: len(read[position][0]))
        for start in range(0, len(order), TORCH_BATCH):
            positions = order[start : start + TORCH_BATCH]
            states = self._states([read[position][0] for position in positions], layer)
            for position, rows in zip(positions, states, strict=True):
                vectors[position] = unit_rows(rows)
        return [TextTokens(ids, rows, is_cut) for (ids, is_cut), rows in zip(read, vectors, strict=True)]

    def _states(self, batch: list[list[int]], layer: int) -> list[Vectors]:
        """The vectors of a padded batch, without the padding."""
        import torch

        padded = self.tokenizer.pad({"input_ids": batch}, return_tensors="pt").to(self.transformer.device)
        with torch.no_grad():
            output = self.transformer(**padded, output_hidden_states=layer != self.layers)
        states = output.last_hidden_state if layer == self.layers else output.hidden_states[layer]
        rows = states.float().cpu().numpy()
        return [row[: len(ids)] for row, ids in zip(rows, batch, strict=True)]


class NavecTokens:
    """The words that navec knows. A word has the same vector in every text."""

    layers, special, skips_unknown = 0, frozenset[int](), True

    def __init__(self, model: Model) -> None:
        self.encoder = navec.NavecEncoder(model)
        self.label, self.languages = self.encoder.label, self.encoder.languages

    def token_ids(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The rows of the known words of each text."""
        return [self.encoder.rows_of(text) for text in texts]

    def encode(self, texts: Sequence[str], layer: int) -> list[TextTokens]:
        """The known words of each text with their vectors, relative to the mean of running text."""
        return [TextTokens(rows, self._vectors(rows)) for rows in self.token_ids(texts)]

    def _vectors(self, rows: Sequence[int]) -> Vectors:
        import numpy as np

        common = self.encoder.common
        if not rows:
            return np.empty((0, len(common)), np.float32)
        return unit_rows(self.encoder.file.vectors(rows) - common)
