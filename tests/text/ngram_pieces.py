"""The compiled core's pieces and stored tables of n-grams, read and written in plain Python."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

NGram = tuple[str, ...]


def counted(sets: Iterable[Sequence[str]]) -> Counter[NGram]:
    """In how many images' references (texts with spaces between tokens) each n-gram occurs."""
    counts: Counter[NGram] = Counter()
    for texts in sets:
        seen: set[NGram] = set()
        for text in texts:
            tokens = text.split()
            seen |= {tuple(tokens[i : i + n]) for n in (1, 2, 3, 4) for i in range(len(tokens) - n + 1)}
        counts.update(seen)
    return counts


def unpacked(piece: bytes) -> tuple[int, str, Counter[NGram]]:
    """The images, the tokenizer and the counts of a piece."""
    at = 0

    def take(form: str) -> tuple[int, ...]:
        nonlocal at
        values = struct.unpack_from(form, piece, at)
        at += struct.calcsize(form)
        return values

    def text(size: int) -> str:
        nonlocal at
        at += size
        return piece[at - size : at].decode()

    images, size = take("<2Q")
    tokenizer = text(size)
    tokens, _ = take("<2Q")
    lengths = take(f"<{tokens}I")
    names = [text(length) for length in lengths]
    sizes = take("<8Q")
    letter = {2: "H", 4: "I"}[take("<B")[0]]
    counts: Counter[NGram] = Counter()
    for order in (1, 2, 3, 4):
        ones, more = sizes[2 * order - 2 : 2 * order]
        numbers = iter(take(f"<{order * (ones + more)}{letter}"))
        ngrams = [tuple(names[next(numbers)] for _ in range(order)) for _ in range(ones + more)]
        counts.update(dict(zip(ngrams, [1] * ones + list(take(f"<{more}I")), strict=True)))
    assert at == len(piece)
    return images, tokenizer, counts


def stored(tokenizer: str, images: int, tokens: Sequence[str], counts: Mapping[NGram, int]) -> bytes:
    """A table as it is stored, with the n-grams in the order of `tokens`."""
    rank = {token: number for number, token in enumerate(tokens)}
    keys = sorted((tuple(rank[token] for token in ngram), count) for ngram, count in counts.items())
    out = [b"MMEVAL-DF-1\n", _number(len(tokenizer)), tokenizer.encode(), _number(images), _number(len(tokens))]
    for token in tokens:
        out += [_number(len(token.encode())), token.encode()]
    places: dict[tuple[int, ...], int] = {(): 0}
    for order in (1, 2, 3, 4):
        ngrams = [(key, count) for key, count in keys if len(key) == order]
        out += [_number(len(ngrams)), *_entries(ngrams, places)]
        places = {key: place for place, (key, _) in enumerate(ngrams)}
    return b"".join(out)


def _entries(ngrams: Sequence[tuple[tuple[int, ...], int]], places: Mapping[tuple[int, ...], int]) -> Iterator[bytes]:
    prefix = token = 0
    for key, count in ngrams:
        further = places[key[:-1]] - prefix
        token = 0 if further else token
        yield _number(further) + _number(key[-1] - token) + _number(count)
        prefix, token = places[key[:-1]], key[-1]


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
