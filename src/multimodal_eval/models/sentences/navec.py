"""A Russian sentence encoder based on navec's word vectors (250,000 words, 300 dimensions, news texts).

A text's vector is the weighted mean of its words' vectors, with the weight a / (a + p(word)) and a = 0.001, so frequent
words count less. The mean vector of running text, weighted in the same way, is first subtracted from each word vector.
Words that navec does not know are ignored. A text without a known word has the zero vector.

References:
    Arora, Liang and Ma (2017). A Simple but Tough-to-Beat Baseline for Sentence Embeddings. ICLR.
    Kukushkin. Navec: compact Russian word embeddings. https://github.com/natasha/navec
"""

from __future__ import annotations

import gzip
import re
import struct
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.source import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

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
