"""Vectors of the tokens of a text, from the models that encode sentences.

A model reads as many tokens as it has positions, or fewer if its tokenizer_config.json says so. That is what
transformers reads, and more than sentence-transformers does: 512 tokens instead of 256 for all-MiniLM-L6-v2.

| class             | tokens                       | layers                                 |
|-------------------|------------------------------|----------------------------------------|
| `BertTokens`      | word pieces, [CLS] and [SEP] | any; the graph ends after the layer    |
| `NavecTokens`     | the words that navec knows   | only the word vectors, without context |

`on_torch.py` has those that run in torch.
"""

from __future__ import annotations

import gzip
import re
import struct
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.batching import run_in_parallel
from multimodal_eval.models.encoders import TextTokens
from multimodal_eval.models.formats.onnx_graph import open_session
from multimodal_eval.models.runtime import open_tokenizer
from multimodal_eval.models.sentences.bert import BertConfig, batches, graph_inputs, token_graph
from multimodal_eval.models.source import CONFIG, Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


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


def limited_tokenizer(model: Model) -> Any:
    """The tokenizer, which cuts texts to the tokens that the model reads."""
    tokenizer = open_tokenizer(model)
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens(model))
    return tokenizer


def unit_rows(vectors: Vectors) -> Vectors:
    """The rows divided by their lengths; rows of zeros stay."""
    import numpy as np

    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    norms[norms == 0] = 1
    rows: Vectors = vectors / norms.astype(np.float32)
    return rows


class BertTokens:
    """A BERT run by onnxruntime. There is no padding, so that no vector depends on its batch."""

    skips_unknown = False  # an unknown word is the token [UNK]

    def __init__(self, model: Model, languages: frozenset[str], *, int8: bool = False) -> None:
        self.label, self.languages, self.int8 = model.onnx_label(int8=int8), languages, int8
        self.model, self.config = model, model.read(CONFIG, BertConfig)
        self.layers, self.width = self.config.num_hidden_layers, self.config.hidden_size
        self.tokenizer = limited_tokenizer(model)
        self.special = frozenset(self.tokenizer.encode("").ids)
        self._sessions: dict[int, Any] = {}
        self._lock = Lock()

    def token_ids(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The word pieces of each text."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(list(texts))]

    def encode(self, texts: Sequence[str], layer: int) -> list[TextTokens]:
        """The word pieces of each text with their vectors."""
        import numpy as np

        session, encodings = self._session(layer), self.tokenizer.encode_batch_fast(list(texts))
        ids = [encoding.ids for encoding in encodings]
        vectors: list[Vectors] = [np.empty((0, self.width), np.float32)] * len(ids)

        def run(positions: list[int]) -> None:
            rows = [ids[position] for position in positions]
            states, start = unit_rows(session.run(None, graph_inputs(rows))[0]), 0
            for position, row in zip(positions, rows, strict=True):
                vectors[position], start = states[start : start + len(row)], start + len(row)

        run_in_parallel(run, batches(ids))
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


class NavecTokens:
    """The words that navec knows. A word has the same vector in every text."""

    layers, special, skips_unknown = 0, frozenset[int](), True

    def __init__(self, model: Model) -> None:
        self.encoder = NavecEncoder(model)
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


# A Russian sentence encoder based on navec's word vectors (250,000 words, 300 dimensions, news texts).
#
# A text's vector is the weighted mean of its words' vectors, with the weight a / (a + p(word)) and a = 0.001, so
# frequent words count less. The mean vector of running text, weighted in the same way, is first subtracted from each
# word vector. Words that navec does not know are ignored. A text without a known word has the zero vector.
#
# References:
#     Arora, Liang and Ma (2017). A Simple but Tough-to-Beat Baseline for Sentence Embeddings. ICLR.
#     Kukushkin. Navec: compact Russian word embeddings. https://github.com/natasha/navec

FILE = "navec_news_v1_1B_250K_300d_100q.tar"
WEIGHTING = "sif-1"
_SMOOTHING = 1e-3
_FREQUENT = 10_000  # words in the mean of running text
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


def label_of(model: Model) -> str:
    """Name, revision, and the weighting of words."""
    return f"{model.label}+{WEIGHTING}"


def words_of(text: str) -> list[str]:
    """The words in lower case. Hyphenated words are not split."""
    return _WORD.findall(text.lower())


class NavecFile:
    """The archive: a vocabulary with counts, and vectors as indexes of centroids (product quantisation)."""

    def __init__(self, path: Path) -> None:
        import numpy as np

        try:
            with tarfile.open(path) as archive:
                vocabulary = gzip.decompress(_member(archive, "vocab.bin"))
                vectors = _member(archive, "pq.bin")
            (count,) = struct.unpack_from("<I", vocabulary)
            self.counts = np.frombuffer(vocabulary, "<u4", count, 4)
            self.words = vocabulary[4 + 4 * count :].decode("utf-8").split("\n")
            rows, width, parts, centroids = struct.unpack_from("<4I", vectors)
            self.indexes = np.frombuffer(vectors, np.uint8, rows * parts, 16).reshape(rows, parts)
            codes = np.frombuffer(vectors, "<f4", centroids * width, 16 + rows * parts)
            self.codes = codes.reshape(parts, centroids, width // parts)
        except (OSError, tarfile.TarError, ValueError, ZeroDivisionError, struct.error, EOFError, zlib.error) as fault:
            raise ModelError(f"{path} is not a navec archive: {fault}") from None
        if parts and rows and int(self.indexes.max()) >= centroids:
            raise ModelError(f"{path} has an index beyond its {centroids} centroids")
        if not rows == count == len(self.words):
            raise ModelError(f"{path} holds {rows} vectors for {len(self.words)} words")

    def vectors(self, rows: Sequence[int] | NDArray[np.int64]) -> Vectors:
        """The vectors of the given rows."""
        import numpy as np

        parts = np.arange(self.codes.shape[0])
        chosen = self.codes[parts, self.indexes[rows]]
        return np.ascontiguousarray(chosen.reshape(len(rows), -1), np.float32)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name) if name in archive.getnames() else None
    if stream is None:
        raise ValueError(f"it has no {name}")
    return stream.read()


class NavecEncoder:
    """Encodes a text by its words."""

    def __init__(self, model: Model) -> None:
        import numpy as np

        self.label, self.languages = label_of(model), frozenset({"ru"})
        self.file = NavecFile(model.file(FILE))
        self.rows = {word: row for row, word in enumerate(self.file.words) if not word.startswith("<")}
        share = self.file.counts / self.file.counts.sum(dtype=np.float64)
        self.weights = (_SMOOTHING / (_SMOOTHING + share)).astype(np.float32)
        frequent = np.argsort(-share, kind="stable")[:_FREQUENT]
        running = (share[frequent] * self.weights[frequent]).astype(np.float32)
        self.common = running @ self.file.vectors(frequent) / running.sum()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text; zeros for a text without a known word."""
        import numpy as np

        vectors = np.zeros((len(texts), len(self.common)), np.float32)
        for number, text in enumerate(texts):
            rows = self.rows_of(text)
            if rows:
                mean = self.weights[rows] @ (self.file.vectors(rows) - self.common)
                norm = np.linalg.norm(mean)
                vectors[number] = mean / norm if norm > 0 else 0
        return vectors

    def rows_of(self, text: str) -> list[int]:
        """The rows of the known words of a text."""
        return [row for word in words_of(text) if (row := self._row(word)) is not None]

    def _row(self, word: str) -> int | None:
        """The row of the word, or of its spelling without ё."""
        row = self.rows.get(word)
        return self.rows.get(word.replace("ё", "е")) if row is None else row

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Always False: the encoder reads the whole text."""
        return [False] * len(texts)
