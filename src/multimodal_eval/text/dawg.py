"""Read-only dictionaries from words to records, in the file format of dawgdic and the package DAWG.

A file holds a directed acyclic word graph over UTF-8 bytes: `units`, one 32-bit word per node, and a `guide`, the
labels of each node's first child and next sibling. A key is a word, the byte 1, and a record in base64.

Reference:
    Yata, Morita, Fuketa and Aoe (2008). Fast String Matching with Space-efficient Word Graphs. Innovations.
"""

from __future__ import annotations

import struct
import sys
from array import array
from binascii import a2b_base64
from collections.abc import Iterator, Mapping
from pathlib import Path

_SEPARATOR = b"\x01"
_LABEL = 1 << 31 | 0xFF
_HAS_LEAF = 1 << 8
_EXTENSION = 1 << 9
_MASK = 0xFFFFFFFF

Match = tuple[str, list[tuple[int, ...]]]  # a word and its records


class Dawg:
    """A dictionary in memory; `record` is the layout of a record for the module `struct`."""

    def __init__(self, path: Path, record: str) -> None:
        content = path.read_bytes()
        end = 4 + 4 * int.from_bytes(content[:4], "little")
        self._units = array("I", content[4:end])
        if sys.byteorder == "big":
            self._units.byteswap()
        self._guide = content[end + 4 :]
        self._record = struct.Struct(record)

    def similar_items(self, word: str, substitutes: Mapping[str, str]) -> list[Match]:
        """The records of the word (first) and of the words in which letters are replaced by their substitutes."""
        return self._similar_items("", word, 0, substitutes)

    def _similar_items(self, prefix: str, word: str, index: int, substitutes: Mapping[str, str]) -> list[Match]:
        matches: list[Match] = []
        start = len(prefix)
        for position in range(start, len(word)):
            letter = word[position]
            if letter in substitutes:
                after = self._follow(substitutes[letter].encode(), index)
                if after:
                    replaced = prefix + word[start:position] + substitutes[letter]
                    matches += self._similar_items(replaced, word, after, substitutes)
            index = self._follow(letter.encode(), index)
            if not index:
                return matches
        index = self._follow(_SEPARATOR, index)
        if index:
            records = [self._record.unpack(a2b_base64(key)) for key in self._keys(index, b"")]
            matches.insert(0, (prefix + word[start:], records))
        return matches

    def _follow(self, labels: bytes, index: int) -> int:
        """The node that the labels lead to; 0, the root, if there is none."""
        units = self._units
        for label in labels:
            unit = units[index]
            offset = (unit >> 10) << ((unit & _EXTENSION) >> 6)
            index = (index ^ offset ^ label) & _MASK
            if units[index] & _LABEL != label:
                return 0
        return index

    def _keys(self, index: int, key: bytes) -> Iterator[bytes]:
        """The keys below a node, in the order of their bytes."""
        if self._units[index] & _HAS_LEAF:
            yield key
        label = self._guide[2 * index]
        while label:
            child = self._follow(bytes((label,)), index)
            yield from self._keys(child, key + bytes((label,)))
            label = self._guide[2 * child + 1]
