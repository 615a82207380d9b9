"""In how many images' references each n-gram occurs: the corpus that CIDEr weighs words with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from multimodal_eval._native import Captions, FrequencyTable
from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.text.tokenizers import check_tokenizer

_AT_ONCE = 10_000  # reference sets tokenized in one go
_CONDENSED = re.compile(rb"MMEVAL-DF-CONDENSED ([0-9a-f]{64})\n")  # in front of a condensed table: whose it is


class DocumentFrequencies:
    """Number of images, and for each n-gram (n = 1 to 4) the images whose references hold it; `+` merges shards.

    The table is exact: n-grams are kept as such (a node is a shorter n-gram and a token), not as hashes, so that no two
    can be taken for one another. `source` names a table that is no run's own; `whole` is the digest of the table that
    a condensed one was made of.
    """

    def __init__(
        self, table: FrequencyTable | None = None, source: str | None = None, whole: str | None = None
    ) -> None:
        self.table = table if table is not None else FrequencyTable()
        self.source, self.whole = source, whole

    @classmethod
    def of(cls, reference_sets: Iterable[Sequence[str]], tokenizer: str = "ptb") -> DocumentFrequencies:
        """Count the images in which each n-gram occurs, however often it does in one."""
        check_tokenizer(tokenizer)
        total = FrequencyTable()
        batch: list[list[str]] = []
        for references in reference_sets:
            batch.append(list(references))
            if len(batch) == _AT_ONCE:
                total.merge(_counted(batch, tokenizer))
                batch = []
        if batch:
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
        total = DocumentFrequencies()
        total.absorb(self)
        total.absorb(other)
        return total

    def absorb(self, other: DocumentFrequencies) -> None:
        """Add another shard to this one: counts are integers, so that any order gives the same table."""
        if self.whole is not None or other.whole is not None:
            raise ValueError("a condensed table lacks the n-grams of a single image: it cannot be merged any more")
        self.table.merge(other.table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DocumentFrequencies) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def condensed(self) -> DocumentFrequencies:
        """The table without the n-grams of a single image, once all shards are merged.

        Exact for CIDEr: idf is ln |I| - ln max(1, df), the same for an n-gram of one image and for one that is not in
        the table. The digest stays that of the whole.
        """
        self.check()  # which needs the whole
        digest = self.digest  # first: it takes much memory for a moment
        return DocumentFrequencies(self.table.with_at_least(2), self.source, digest)

    def to_bytes(self) -> bytes:
        """The same bytes for equal tables, however they were put together."""
        head = b"" if self.whole is None else f"MMEVAL-DF-CONDENSED {self.whole}\n".encode()
        return head + self.table.to_bytes()

    def save(self, path: str | Path) -> None:
        """Write the table."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> DocumentFrequencies:
        """Read a table that `save` wrote, or the `state/cider.bin` of a run."""
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except OSError as error:
            raise ConfigError(f"the document frequencies {path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def from_bytes(cls, data: bytes) -> DocumentFrequencies:
        """What `to_bytes` made; a ValueError on anything else."""
        head = _CONDENSED.match(data)
        if head is None:
            return cls(FrequencyTable.from_bytes(data))
        return cls(FrequencyTable.from_bytes(data[head.end() :]), whole=head[1].decode())

    def check(self) -> None:
        """Refuse a corpus in which every weight would be 0."""
        if self._has_no_weights:
            raise InputError(
                [
                    Problem(
                        code="CORPUS_TOO_SMALL",
                        message="CIDEr weighs words by how few images they occur in, and no two images of the corpus "
                        "have different references: every weight would be 0.",
                        hint="Score more images together, or set the option `df: coco-val2014`.",
                    )
                ]
            )

    @cached_property
    def _has_no_weights(self) -> bool:
        if self.whole is not None:  # it had weights when it was condensed
            return False
        return self.images < 2 or len(self.table.with_at_least(self.images)) == len(self)

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

    @property
    def digest(self) -> str:
        """The SHA-256 of the table, of the whole one where this is condensed."""
        return self.whole or sha256(self.to_bytes()).hexdigest()


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
