"""Thrift's compact protocol, in which Parquet writes its footer and its page headers.

pyarrow ends the process on some invalid metadata of a column, so that they must be read without it.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["BrokenThriftError", "Fields", "Thrift", "integer", "structure", "structures"]

Fields: TypeAlias = "dict[int, int | bytes | Fields | list[Fields]]"

_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCTURE, _UUID = 1, 2, 3, 7, 8, 9, 10, 11, 12, 13
_INTEGERS = (4, 5, 6)
_SIZES = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}
_MOST_BITS = 63
_LONGEST = 1000  # bytes


class BrokenThriftError(ValueError):
    """The bytes are not in this protocol."""


class Thrift:
    """Reads a structure. Integers, short texts, structures and lists of structures are kept; the rest is skipped."""

    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def _byte(self) -> int:
        if self.position >= len(self._data):
            raise BrokenThriftError("the end is missing")
        self.position += 1
        return self._data[self.position - 1]

    def _skip(self, size: int) -> None:
        self.position += size
        if self.position > len(self._data):
            raise BrokenThriftError("the end is missing")

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > _MOST_BITS:
                raise BrokenThriftError("a number is too long")

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def structure(self, depth: int = 0) -> Fields:
        """The fields by number."""
        if depth > _DEEPEST:
            raise BrokenThriftError("structures are nested too deeply")
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            value = self._value(head & 15, depth)
            if value is not None:
                fields[number] = value
        return fields

    def _text(self) -> bytes | None:
        size, start = self._unsigned(), self.position
        self._skip(size)
        return self._data[start : self.position] if size <= _LONGEST else None

    def _value(self, kind: int, depth: int) -> int | bytes | Fields | list[Fields] | None:
        if kind in (_TRUE, _FALSE):
            return int(kind == _TRUE)
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCTURE:
            return self.structure(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _BINARY:
            return self._text()
        if kind == _MAP:
            self._skip_map(depth)
        elif kind in _SIZES:
            self._skip(_SIZES[kind])
        else:
            raise BrokenThriftError(f"a value has the unknown type {kind}")
        return None

    def _skip_map(self, depth: int) -> None:
        count = self._unsigned()
        kinds = self._byte() if count else 0
        for _ in range(count):
            for kind in (kinds >> 4, kinds & 15):
                if kind in (_TRUE, _FALSE):
                    self._skip(1)
                else:
                    self._value(kind, depth + 1)

    def _list(self, depth: int) -> list[Fields] | None:
        if depth > _DEEPEST:
            raise BrokenThriftError("lists are nested too deeply")
        head = self._byte()
        kind, count = head & 15, head >> 4
        if count == 15:
            count = self._unsigned()
        if kind in (_TRUE, _FALSE):
            self._skip(count)
            return None
        items: list[Fields] = []
        for _ in range(count):  # each takes a byte or more
            item = self._value(kind, depth + 1)
            if isinstance(item, dict):
                items.append(item)
        return items if kind == _STRUCTURE else None


def integer(fields: Fields, number: int, default: int | None = None) -> int:
    """An integer field that is not negative."""
    value = fields.get(number, default)
    if not isinstance(value, int) or value < 0:
        raise BrokenThriftError(f"the field {number} must be a number")
    return value


def structure(fields: Fields, number: int) -> Fields:
    """A field that is a structure."""
    value = fields.get(number)
    if not isinstance(value, dict):
        raise BrokenThriftError(f"the field {number} must be a structure")
    return value


def structures(fields: Fields, number: int) -> list[Fields]:
    """A field that is a list of structures."""
    value = fields.get(number)
    if not isinstance(value, list):
        raise BrokenThriftError(f"the field {number} must be a list")
    return value
