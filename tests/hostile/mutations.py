"""Random damage to bytes, JSON values and texts."""

from __future__ import annotations

import json
from random import Random
from typing import Any

# Numbers and texts that readers and displays are known to stumble over.
NUMBERS: tuple[Any, ...] = (0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**400, 1e308, -0.0, 5e-324, 0.1)
TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\0",
    "\x1b[2J\x1b]0;title\x07",
    "\u202e\u2066x\u2069",
    "\ufeff",
    "\ud7ff\ue000\uffff",
    "a" * 10_000,
    "NaN",
    "null",
    "../../etc/passwd",
    "/etc/passwd",
    "%s%n{0}{x.__class__}",
    "=1+1",
    "'; drop table samples; --",
    "<script>alert(1)</script>",
    "é" * 50,
    "e\u0301" * 50,
    "\r\n\r\n",
    "__proto__",
    "https://example.com/x.png",
    "data:image/png;base64,AAAA",
    "file:///etc/passwd",
    "\U0001f600" * 20,
    "-1",
    "1e999",
)
CORNERS = (
    b"\0",
    b"\xff",
    b"\xff\xfe",
    b"\x80",
    b"\n",
    b"\r",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\xed\xa0\x80",
)


def damaged(random: Random, data: bytes) -> bytes:
    """The bytes after one to four edits: flipped, replaced, cut, repeated, moved, overwritten."""
    content = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        _edit(random, content)
    return bytes(content)


def _edit(random: Random, content: bytearray) -> None:
    if not content:
        content += random.randbytes(random.randint(1, 8))
        return
    place = random.randrange(len(content))
    length = min(len(content) - place, random.choice((1, 1, 2, 4, 8, 64, 1024)))
    match random.randrange(9):
        case 0:
            content[place] ^= 1 << random.randrange(8)
        case 1:
            content[place] = random.randrange(256)
        case 2:
            del content[place : place + length]
        case 3:
            del content[place:]
        case 4:
            content[place:place] = content[place : place + length] * random.choice((1, 2, 10))
        case 5:
            content[place:place] = random.choice(CORNERS)
        case 6:
            other = random.randrange(len(content))
            content[place : place + length] = content[other : other + length]
        case 7:  # a length or an offset
            number = random.choice((0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF))
            content[place : place + 4] = number.to_bytes(4, random.choice(("little", "big")))
        case _:
            content[place : place + length] = random.randbytes(length)


def odd_value(random: Random, depth: int = 0) -> Any:
    """A JSON value that is probably of the wrong type."""
    match random.randrange(8 if depth < 3 else 5):
        case 0:
            return random.choice((None, True, False))
        case 1:
            return random.choice(NUMBERS)
        case 2 | 3:
            return random.choice(TEXTS)
        case 4:
            return random.choice(([], {}, [[]], {"": None}))
        case 5:
            return [odd_value(random, depth + 1) for _ in range(random.randrange(4))]
        case _:
            return {random.choice(TEXTS): odd_value(random, depth + 1) for _ in range(random.randrange(4))}


def changed(random: Random, value: Any) -> Any:
    """The JSON value with one place changed: replaced, removed, renamed or repeated."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(sorted(value, key=str))
        copy = dict(value)
        match random.randrange(6):
            case 0:
                del copy[key]
            case 1:
                copy[random.choice(TEXTS)] = copy.pop(key)
            case 2:
                copy[random.choice(TEXTS)] = odd_value(random)
            case _:
                copy[key] = changed(random, copy[key])
        return copy
    if isinstance(value, list) and value and random.random() < 0.9:
        place = random.randrange(len(value))
        items = list(value)
        match random.randrange(6):
            case 0:
                del items[place]
            case 1:
                items.insert(place, items[place])
            case 2:
                items.insert(place, odd_value(random))
            case _:
                items[place] = changed(random, items[place])
        return items
    if isinstance(value, int | float) and random.random() < 0.3:
        return -value
    return odd_value(random)


def as_json(value: Any) -> str:
    """JSON as some other program might write it: with NaN, and with lone surrogates escaped."""
    return json.dumps(value)


def damaged_json(random: Random, data: bytes, *, bytes_too: float = 0.3) -> bytes:
    """A JSON document with one to three changed values, or with damaged bytes."""
    if random.random() < bytes_too:
        return damaged(random, data)
    value = json.loads(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        value = changed(random, value)
    return as_json(value).encode()


def deep(random: Random) -> bytes:
    """Brackets within brackets."""
    depth = random.choice((10, 100, 1_000, 100_000))
    left, right = random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"[[", b"]]")))
    return left * depth + random.choice((b"", b"1")) + (right * depth if random.random() < 0.7 else b"")
