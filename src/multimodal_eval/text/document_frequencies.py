"""Document frequencies: in how many images' references each n-gram occurs. CIDEr weights n-grams with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from multimodal_eval._native import BucketSum, BucketUnion, Captions, FrequencyTable
from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.core.machine import cores
from multimodal_eval.text.tokenizers import check_tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DocumentFrequencies", "coco_val2014", "from_file"]

_BATCH = 10_000  # reference sets tokenized together
_CONDENSED = b"MMEVAL-DF-CONDENSED\n"  # prefix of a table without the n-grams of a single image


class DocumentFrequencies:
    """The number of images, and of those whose references contain each n-gram (n = 1 to 4). `+` merges shards.

    The table is exact: it stores n-grams (a node is a shorter n-gram and a token), not hashes, which could collide.
    `source` names a table that does not come from the run. A `condensed` table lacks the n-grams of a single image
    and cannot be merged.
    """

    def __init__(
        self, table: FrequencyTable | None = None, source: str | None = None, *, is_condensed: bool = False
    ) -> None:
        if table is not None:
            self.table = table
        self.source, self.is_condensed = source, is_condensed
        self._references: tuple[pa.Array, str] | None = None  # the column to count, and the tokenizer

    @cached_property
    def table(self) -> FrequencyTable:
        """The compiled table. That of a column is counted when it is needed: `pack` does without it."""
        return FrequencyTable() if self._references is None else _captions(*self._references).document_frequencies()

    @classmethod
    def of(cls, reference_sets: Iterable[Sequence[str]], tokenizer: str = "ptb") -> DocumentFrequencies:
        """Count the images in which each n-gram occurs. Repetitions within an image count once."""
        check_tokenizer(tokenizer)
        sets = iter(reference_sets)
        total = _counted([list(references) for references in islice(sets, _BATCH)], tokenizer)
        while batch := [list(references) for references in islice(sets, _BATCH)]:
            total.merge(_counted(batch, tokenizer))
        return cls(total)

    @classmethod
    def of_column(cls, references: pa.Array, tokenizer: str = "ptb") -> DocumentFrequencies:
        """The same from a column of lists; rows without references are not images."""
        import numpy as np

        from multimodal_eval.core.arrow import integers, null_rows, offsets_of

        check_tokenizer(tokenizer)
        has_texts = (np.diff(offsets_of(references)) > 0) & ~null_rows(references)
        if not has_texts.all():
            references = references.take(integers(np.flatnonzero(has_texts)))
        if not len(references):
            return cls.of([], tokenizer)
        table = cls()
        table._references = references, tokenizer
        return table

    @property
    def images(self) -> int:
        """Images that have references."""
        return self.table.images

    def __len__(self) -> int:
        return len(self.table)

    def count(self, ngram: Sequence[str]) -> int:
        """The number of images in which an n-gram, given as tokens, occurs."""
        return self.table.count(list(ngram))

    def __add__(self, other: DocumentFrequencies) -> DocumentFrequencies:
        if self.is_condensed or other.is_condensed:
            raise ValueError("a condensed table cannot be merged, because it lacks the n-grams of a single image")
        total = FrequencyTable()
        total.merge(self.table)
        total.merge(other.table)
        return DocumentFrequencies(total)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DocumentFrequencies) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def condensed(self) -> DocumentFrequencies:
        """The table without the n-grams of a single image, once all shards are merged.

        Exact for CIDEr: idf is ln |I| - ln max(1, df), the same for an n-gram of one image as for one that is not in
        the table.
        """
        if self.is_condensed:
            return self
        self.check()  # needs the complete table
        return DocumentFrequencies(self.table.with_at_least(2), self.source, is_condensed=True)

    def pack(self, buckets: int) -> list[bytes]:
        """The table in `buckets` pieces. Equal n-grams are in the same bucket of every table."""
        if self._references is None or "table" in vars(self):
            return self.table.pack(buckets)
        return _captions(*self._references, with_ngrams=False).packed_frequencies(buckets)

    @classmethod
    def merged(cls, pieces: Iterable[bytes]) -> bytes:
        """One bucket of all shards as one condensed table. The first byte tells whether any n-gram has a weight."""
        bucket = BucketSum()
        for piece in pieces:
            bucket.add(piece)
        return bucket.finish()

    @classmethod
    def united(cls, buckets: Iterable[bytes]) -> DocumentFrequencies:
        """The condensed table of all buckets."""
        union = BucketUnion()
        for bucket in buckets:
            union.add(bucket)
        if not union.has_weights:
            raise _too_small()
        return cls(union.finish(cores()), is_condensed=True)

    def to_bytes(self) -> bytes:
        """The same bytes for equal tables, in whatever order they were merged."""
        return (_CONDENSED if self.is_condensed else b"") + self.table.to_bytes()

    def save(self, path: str | Path) -> None:
        """Write the table."""
        data = self.to_bytes()
        Path(path).write_bytes(data)
        if self.is_condensed:
            self.digest = sha256(data).hexdigest()  # needed next, and slow to compute again

    @classmethod
    def load(cls, path: str | Path) -> DocumentFrequencies:
        """Read a table that `save` wrote, or the `state/cider.bin` of a run."""
        try:
            data = Path(path).read_bytes()
            table = cls.from_bytes(data)
        except OSError as error:
            raise ConfigError(f"the document frequencies {path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None
        if table.is_condensed:
            table.digest = sha256(data).hexdigest()
        return table

    @classmethod
    def from_bytes(cls, data: bytes) -> DocumentFrequencies:
        """Read what `to_bytes` wrote. Raises ValueError for anything else."""
        is_condensed = data.startswith(_CONDENSED)
        return cls(FrequencyTable.from_bytes(data.removeprefix(_CONDENSED)), is_condensed=is_condensed)

    def check(self) -> None:
        """Raise `InputError` if every weight would be 0."""
        if not self._has_weights:
            raise _too_small()

    @cached_property
    def _has_weights(self) -> bool:
        return self.is_condensed or (self.images > 1 and self.table.varies())  # condensing checks the weights

    def fit_for(self, tokenizer: str) -> DocumentFrequencies:
        """This table, if it was built with that tokenizer."""
        self.check()
        if self.table.tokenizer != check_tokenizer(tokenizer):
            name = self.source or "the table of document frequencies"
            raise ConfigError(
                f"{name} has {self.table.tokenizer!r} tokens and cannot be used with {tokenizer!r} tokens"
            )
        return self

    @cached_property
    def settings(self) -> dict[str, str]:
        """The entry of this table in the signature."""
        return {"df": self.source or f"corpus@{self.digest[:8]}"}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the condensed table: the same for tables with the same weights."""
        return sha256(self.condensed().to_bytes()).hexdigest()


def _too_small() -> InputError:
    message = (
        "CIDEr weights words by how few images they occur in, and no two images of the corpus have different "
        "references: every weight would be 0."
    )
    hint = "Score more images together, or set the option `df: coco-val2014`."
    return InputError([Problem(code="CORPUS_TOO_SMALL", message=message, hint=hint)])


def _captions(references: pa.Array, tokenizer: str, *, with_ngrams: bool = True) -> Captions:
    import pyarrow as pa

    return Captions(pa.nulls(len(references), pa.string()), references, tokenizer, with_ngrams=with_ngrams)


def _counted(reference_sets: list[list[str]], tokenizer: str) -> FrequencyTable:
    return Captions([""] * len(reference_sets), reference_sets, tokenizer).document_frequencies()


@cache
def coco_val2014() -> DocumentFrequencies:
    """The shipped table: the 40,504 images of COCO val2014, n-grams with df >= 2 (0 and 1 have the same weight)."""
    packed = (files("multimodal_eval.text") / "coco_val2014.df").read_bytes()
    return DocumentFrequencies(FrequencyTable.from_bytes(packed), "coco-val2014")


def from_file(path: str) -> DocumentFrequencies:
    """The table in a user's file. Its digest is part of the signature."""
    try:
        stat = Path(path).stat()
    except OSError as error:
        raise ConfigError(f"the document frequencies {path} cannot be read: {error.strerror}") from None
    return _loaded(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _loaded(path: str, changed: int, size: int) -> DocumentFrequencies:
    table = DocumentFrequencies.load(path)
    table.source = f"{Path(path).name}@{table.digest[:8]}"
    return table
