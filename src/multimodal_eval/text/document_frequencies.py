"""Document frequencies: in how many images' references each n-gram occurs. CIDEr weights n-grams with them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from multimodal_eval._native import BucketSum, BucketUnion, Captions, FrequencyTable
from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.core.machine import cores
from multimodal_eval.text.packed import unpacked
from multimodal_eval.text.tokenizers import check_tokenizer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["DocumentFrequencies", "coco_val2014", "from_file"]

_BATCH = 10_000  # reference sets tokenized together
_SHARED = b"MMEVAL-DF-SHARED-IMAGES\n"  # prefix of a table in which several samples count as one image
_CONDENSED = b"MMEVAL-DF-CONDENSED\n"  # prefix of a table without the n-grams of a single image


class DocumentFrequencies:
    """The number of images, and of those whose references contain each n-gram (n = 1 to 4). `+` merges shards.

    The table is exact: it stores n-grams (a node is a shorter n-gram and a token), not hashes, which could collide.
    `source` names a table that does not come from the run. A `condensed` table lacks the n-grams of a single image
    and cannot be merged. `rows` is the number of samples with references, if the table was counted here.
    """

    rows = 0

    def __init__(
        self, table: FrequencyTable | None = None, source: str | None = None, *, is_condensed: bool = False
    ) -> None:
        if table is not None:
            self.table = table
        self.source, self.is_condensed = source, is_condensed
        self._was_shared = False
        self._references: tuple[pa.Array, str] | None = None  # the column to count, and the tokenizer

    @cached_property
    def table(self) -> FrequencyTable:
        """The compiled table. That of a column is counted when it is needed: `pack` does without it."""
        return FrequencyTable() if self._references is None else _captions(*self._references).document_frequencies()

    @classmethod
    def of(
        cls,
        reference_sets: Iterable[Sequence[str]],
        tokenizer: str = "ptb",
        images: Iterable[Hashable | None] | None = None,
    ) -> DocumentFrequencies:
        """Count the images in which each n-gram occurs. Repetitions within an image count once.

        `images` names the image of each set. Sets of the same image are one set; None is an image of its own.
        """
        check_tokenizer(tokenizer)
        rows = 0
        if images is not None:
            rows, reference_sets = _united(reference_sets, images)
        sets = iter(reference_sets)
        total = _counted([list(references) for references in islice(sets, _BATCH)], tokenizer)
        while batch := [list(references) for references in islice(sets, _BATCH)]:
            total.merge(_counted(batch, tokenizer))
        table = cls(total)
        table.rows = max(rows, table.images)
        return table

    @classmethod
    def of_column(
        cls, references: pa.Array, tokenizer: str = "ptb", first_rows: NDArray[np.int64] | None = None
    ) -> DocumentFrequencies:
        """The same from a column of lists; rows without references are not images.

        `first_rows` has, for each row, the first row of its image.
        """
        import numpy as np

        from multimodal_eval.core.arrow import integers, null_rows, offsets_of

        check_tokenizer(tokenizer)
        has_texts = (np.diff(offsets_of(references)) > 0) & ~null_rows(references)
        if not has_texts.all():
            references = references.take(integers(np.flatnonzero(has_texts)))
            first_rows = None if first_rows is None else first_rows[has_texts]
        rows = len(references)
        if not rows:
            return cls.of([], tokenizer)
        table = cls()
        table._references = references if first_rows is None else _joined(references, first_rows), tokenizer
        table.rows = rows
        return table

    @property
    def images(self) -> int:
        """Images that have references."""
        return self.table.images

    @property
    def is_shared(self) -> bool:
        """Whether some images have the references of several samples."""
        return self._was_shared or self.rows > self.table.images

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
        table = DocumentFrequencies(total)
        table.rows, table._was_shared = self.rows + other.rows, self.is_shared or other.is_shared
        return table

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
        table = DocumentFrequencies(self.table.with_at_least(2), self.source, is_condensed=True)
        table._was_shared = self.is_shared
        return table

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
        return (_SHARED if self.is_shared else b"") + self._content()

    def _content(self) -> bytes:
        return (_CONDENSED if self.is_condensed else b"") + self.table.to_bytes()

    def save(self, path: str | Path) -> None:
        """Write the table."""
        content = self._content()
        with Path(path).open("wb") as file:
            file.writelines([_SHARED if self.is_shared else b"", content])
        if self.is_condensed:
            self.digest = sha256(content).hexdigest()  # needed next, and slow to compute again

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
            table.digest = sha256(memoryview(data)[len(_SHARED) if table.is_shared else 0 :]).hexdigest()
        return table

    @classmethod
    def from_bytes(cls, data: bytes) -> DocumentFrequencies:
        """Read what `to_bytes` wrote. Raises ValueError for anything else."""
        content = data.removeprefix(_SHARED)
        is_condensed = content.startswith(_CONDENSED)
        table = cls(FrequencyTable.from_bytes(content.removeprefix(_CONDENSED)), is_condensed=is_condensed)
        table._was_shared = len(content) < len(data)
        return table

    def check(self) -> None:
        """Raise `InputError` if every weight would be 0."""
        if not self.has_weights:
            raise _too_small()

    @cached_property
    def has_weights(self) -> bool:
        """Whether a weight is not 0."""
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
        if self.source is not None:
            return {"df": self.source}
        return {"df": f"corpus@{self.digest[:8]}", **({"per": "image"} if self.is_shared else {})}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the condensed table: the same for tables with the same weights."""
        return sha256(self.condensed()._content()).hexdigest()


TOO_SMALL = (
    "CIDEr weights words by how few images they occur in, and no two images of the corpus have different references: "
    "every weight would be 0."
)


def _too_small() -> InputError:
    hint = "Score more images together, or set the option `df: coco-val2014`."
    return InputError([Problem(code="CORPUS_TOO_SMALL", message=TOO_SMALL, hint=hint)])


def _captions(references: pa.Array, tokenizer: str, *, with_ngrams: bool = True) -> Captions:
    import pyarrow as pa

    return Captions(pa.nulls(len(references), pa.string()), references, tokenizer, with_ngrams=with_ngrams)


def _united(
    reference_sets: Iterable[Sequence[str]], images: Iterable[Hashable | None]
) -> tuple[int, Iterable[Sequence[str]]]:
    """The number of sets that are not empty, and the references of each image."""
    rows, united = 0, dict[object, list[str]]()
    for references, image in zip(reference_sets, images, strict=True):
        rows += bool(references)
        united.setdefault(object() if image is None else image, []).extend(references)
    return rows, united.values()


def _joined(references: pa.Array, first_rows: NDArray[np.int64]) -> pa.Array:
    """The lists of rows with the same first row as one list each."""
    import numpy as np
    import pyarrow as pa

    from multimodal_eval.core.arrow import integers, offsets_of

    order = np.argsort(first_rows, kind="stable")
    ordered, references = first_rows[order], references.take(integers(order))
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    offsets = offsets_of(references)[[*starts.tolist(), len(ordered)]]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int32))]
    return pa.Array.from_buffers(references.type, len(starts), buffers, children=[references.values])


def _counted(reference_sets: list[list[str]], tokenizer: str) -> FrequencyTable:
    return Captions([""] * len(reference_sets), reference_sets, tokenizer).document_frequencies()


@cache
def coco_val2014() -> DocumentFrequencies:
    """The shipped table: the 40,504 images of COCO val2014, n-grams with df >= 2 (0 and 1 have the same weight)."""
    return DocumentFrequencies(FrequencyTable.from_bytes(unpacked("coco_val2014.df.br")), "coco-val2014")


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
