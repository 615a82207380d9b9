"""In how many images' references each n-gram occurs: the corpus that CIDEr weighs words with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path

from multimodal_eval._native import Captions, FrequencyTable
from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.text.tokenizers import check_tokenizer

_AT_ONCE = 10_000  # reference sets tokenized in one go
_CONDENSED = b"MMEVAL-DF-CONDENSED\n"  # in front of a table without the n-grams of a single image


class DocumentFrequencies:
    """Number of images, and for each n-gram (n = 1 to 4) the images whose references hold it; `+` merges shards.

    The table is exact: n-grams are kept as such (a node is a shorter n-gram and a token), not as hashes, so that no two
    can be taken for one another. `source` names a table that is no run's own; a `condensed` one lacks the n-grams of a
    single image, and can be merged no more.
    """

    def __init__(
        self, table: FrequencyTable | None = None, source: str | None = None, *, is_condensed: bool = False
    ) -> None:
        self.table = table if table is not None else FrequencyTable()
        self.source, self.is_condensed = source, is_condensed

    @classmethod
    def of(cls, reference_sets: Iterable[Sequence[str]], tokenizer: str = "ptb") -> DocumentFrequencies:
        """Count the images in which each n-gram occurs, however often it does in one."""
        check_tokenizer(tokenizer)
        sets = iter(reference_sets)
        total = _counted([list(references) for references in islice(sets, _AT_ONCE)], tokenizer)
        while batch := [list(references) for references in islice(sets, _AT_ONCE)]:
            total.merge(_counted(batch, tokenizer))
        return cls(total)

    @property
    def images(self) -> int:
        """Images that have references."""
        return self.table.images

    def __len__(self) -> int:
        return len(self.table)

    def count(self, ngram: Sequence[str]) -> int:
        """In how many images an n-gram, given as tokens, occurs."""
        return self.table.count(list(ngram))

    def __add__(self, other: DocumentFrequencies) -> DocumentFrequencies:
        if self.is_condensed or other.is_condensed:
            raise ValueError("a condensed table lacks the n-grams of a single image: it cannot be merged any more")
        total = FrequencyTable()
        total.merge(self.table)
        total.merge(other.table)
        return DocumentFrequencies(total)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DocumentFrequencies) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def condensed(self) -> DocumentFrequencies:
        """The table without the n-grams of a single image, once all shards are merged.

        Exact for CIDEr: idf is ln |I| - ln max(1, df), the same for an n-gram of one image and for one that is not in
        the table.
        """
        if self.is_condensed:
            return self
        self.check()  # which needs the whole
        return DocumentFrequencies(self.table.with_at_least(2), self.source, is_condensed=True)

    def pack(self, buckets: int) -> list[bytes]:
        """The table in `buckets` pieces, cut by the first tokens of the n-grams: the same token, the same piece."""
        return self.table.pack(buckets)

    @classmethod
    def merged(cls, pieces: Iterable[bytes]) -> bytes:
        """One bucket of all shards in one condensed table; the first byte says whether any n-gram has a weight."""
        bucket = FrequencyTable()
        for piece in pieces:
            bucket.merge_packed(piece)
        return (b"\1" if bucket.varies() else b"\0") + bucket.with_at_least(2).to_bytes()

    @classmethod
    def united(cls, buckets: Iterable[bytes]) -> DocumentFrequencies:
        """The condensed table of all buckets."""
        table, weighs = FrequencyTable(), False
        for bucket in buckets:
            weighs = weighs or bucket[:1] == b"\1"
            table.unite(FrequencyTable.from_bytes(bucket[1:]))
        if table.images < 2 or not weighs:
            raise _too_small()
        return cls(table, is_condensed=True)

    def to_bytes(self) -> bytes:
        """The same bytes for equal tables, however they were put together."""
        return (_CONDENSED if self.is_condensed else b"") + self.table.to_bytes()

    def save(self, path: str | Path) -> None:
        """Write the table."""
        data = self.to_bytes()
        Path(path).write_bytes(data)
        if self.is_condensed:
            self.digest = sha256(data).hexdigest()  # which is asked for next, and takes as long to work out

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
        """What `to_bytes` made; a ValueError on anything else."""
        is_condensed = data.startswith(_CONDENSED)
        return cls(FrequencyTable.from_bytes(data.removeprefix(_CONDENSED)), is_condensed=is_condensed)

    def check(self) -> None:
        """Refuse a corpus in which every weight would be 0."""
        if not self._has_weights:
            raise _too_small()

    @cached_property
    def _has_weights(self) -> bool:
        return self.is_condensed or (self.images > 1 and self.table.varies())  # one without is never condensed

    def fit_for(self, tokenizer: str) -> DocumentFrequencies:
        """This table, if it can weigh the tokens of that tokenizer."""
        self.check()
        if self.table.tokenizer != check_tokenizer(tokenizer):
            name = self.source or "the table of document frequencies"
            raise ConfigError(f"{name} holds {self.table.tokenizer!r} tokens and cannot weigh {tokenizer!r} tokens")
        return self

    @cached_property
    def settings(self) -> dict[str, str]:
        """What the signature says of this table."""
        return {"df": self.source or f"corpus@{self.digest[:8]}"}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the condensed table: tables that weigh every n-gram alike have the same."""
        return sha256(self.condensed().to_bytes()).hexdigest()


def _too_small() -> InputError:
    message = (
        "CIDEr weighs words by how few images they occur in, and no two images of the corpus have different "
        "references: every weight would be 0."
    )
    hint = "Score more images together, or set the option `df: coco-val2014`."
    return InputError([Problem(code="CORPUS_TOO_SMALL", message=message, hint=hint)])


def _counted(reference_sets: list[list[str]], tokenizer: str) -> FrequencyTable:
    return Captions([""] * len(reference_sets), reference_sets, tokenizer).document_frequencies()


@cache
def coco_val2014() -> DocumentFrequencies:
    """The shipped table: the 40,504 images of COCO val2014, n-grams with df >= 2 (0 and 1 weigh the same)."""
    packed = (files("multimodal_eval.text") / "coco_val2014.df").read_bytes()
    return DocumentFrequencies(FrequencyTable.from_bytes(packed), "coco-val2014")


def from_file(path: str) -> DocumentFrequencies:
    """A table that a user names; the signature carries its digest."""
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
