"""In how many images' references each n-gram occurs: the corpus that CIDEr weighs words with."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from math import log

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.text.tokenizers import Tokenizer

ORDERS = (1, 2, 3, 4)


def ngrams(tokens: Sequence[str], order: int) -> list[str]:
    """The n-grams of one order as strings; no token holds a space, so none are confused."""
    return [" ".join(tokens[start : start + order]) for start in range(len(tokens) - order + 1)]


@dataclass(frozen=True)
class DocumentFrequencies:
    """Number of images, and for each n-gram the images whose reference set holds it; `+` merges shards."""

    images: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    source: str | None = None  # the name of a shipped table

    @classmethod
    def of(cls, reference_sets: Iterable[Sequence[str]], tokenize: Tokenizer) -> DocumentFrequencies:
        """Count the images in which each n-gram occurs, however often it does in one."""
        images, counts = 0, dict[str, int]()
        for references in reference_sets:
            images += 1
            tokenized = [tokenize(reference) for reference in references]
            for ngram in {gram for tokens in tokenized for order in ORDERS for gram in ngrams(tokens, order)}:
                counts[ngram] = counts.get(ngram, 0) + 1
        return cls(images, counts)

    def __add__(self, other: DocumentFrequencies) -> DocumentFrequencies:
        counts = dict(self.counts)
        for ngram, count in other.counts.items():
            counts[ngram] = counts.get(ngram, 0) + count
        return DocumentFrequencies(self.images + other.images, counts)

    def idf(self, ngram: str) -> float:
        """ln(images / max(1, df))."""
        return log(self.images) - log(max(1, self.counts.get(ngram, 0)))

    def check(self) -> None:
        """Refuse a corpus in which every idf would be 0."""
        if self.images < 2 or all(count == self.images for count in self.counts.values()):
            raise InputError(
                [
                    Problem(
                        code="CORPUS_TOO_SMALL",
                        message="CIDEr weighs words by how few images they occur in, and no two images of the run "
                        "have different references: every weight would be 0.",
                        hint="Score more images together, or set the option `df: coco-val2014`.",
                    )
                ]
            )

    @cached_property
    def settings(self) -> dict[str, str]:
        """What the signature says of this table."""
        if self.source is not None:
            return {"df": self.source}
        digest = sha256(str(self.images).encode())
        for ngram in sorted(self.counts):
            digest.update(f"\n{ngram}\t{self.counts[ngram]}".encode())
        return {"df": f"corpus@{digest.hexdigest()[:8]}"}


@cache
def coco_val2014() -> DocumentFrequencies:
    """The shipped table: the 40,504 images of COCO val2014, n-grams with df >= 2 (0 and 1 weigh the same)."""
    packed = (files("multimodal_eval.text") / "coco_val2014_df.tsv.xz").read_bytes()
    head, *lines = lzma.decompress(packed).decode().splitlines()
    counts = {ngram: int(count) for ngram, _, count in (line.partition("\t") for line in lines)}
    return DocumentFrequencies(int(head), counts, "coco-val2014")
