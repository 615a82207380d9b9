"""Seeded damage to the files of a run folder: JSON documents with other values, cut or flipped bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from multimodal_eval.data.runs.checksums import sealed

# Values of every kind that a JSON document may hold, also ones that no run has.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 10**6, 10**9, 2**63, 10**40, -(2**63), 0.5, -1e308, 1e-320, 1e308),
    *("", "x", "NaN", "../../etc/passwd", "/", "\x1b[31m", "a" * 100_000, "\ud800", "\u0000", "cider", "done", "ok"),
    *([], [None], [[]], [1, 2, 3], ["a", "b"], {}, {"": 0}, {"a": {"b": {"c": []}}}),
)
RAW = {
    "empty": b"",
    "null": b"null",
    "a list": b"[]",
    "a text": b'"run"',
    "an object": b"{}",
    "NaN": b'{"format": NaN}',
    "deep lists": b"[" * 200_000 + b"]" * 200_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a huge integer": b'{"format": ' + b"9" * 100_000 + b"}",
    "not UTF-8": b'{"format": 2, "state": "\xff\xfe"}',
    "UTF-16": '{"format": 2}'.encode("utf-16"),
    "binary": bytes(range(256)) * 16,
    "many keys": b"{" + b",".join(b'"k%d": 0' % number for number in range(50_000)) + b"}",
}


def paths_in(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value of a JSON document."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(inner for key, value in items for inner in paths_in(value, (*path, key)))]


def mutated_json(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """The document with one or two changed places, and what was changed."""
    document = json.loads(content)
    changes = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        path = chance.choice([path for path in paths_in(document) if path])
        kind = chance.choice(("replace", "replace", "replace", "remove", "rename", "add"))
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        key, value = path[-1], chance.choice(VALUES)
        changes.append(f"{kind} {'.'.join(map(str, path))} {str(value)[:20]!r}")
        if kind == "remove":
            del parent[key]
        elif kind == "rename" and isinstance(parent, dict):
            parent[f"{key}x"] = parent.pop(key)
        elif kind == "add" and isinstance(parent[key], dict | list):
            inner = parent[key]
            inner.append(value) if isinstance(inner, list) else inner.update({"added": value})
        else:
            parent[key] = value
    content = json.dumps(document, indent=2).encode() + b"\n"
    # Half of the documents have a checksum that fits: whoever sends a run can compute it.
    if chance.random() < 0.5 and isinstance(document, dict) and len(document) > 1:
        document.pop("sha256", None)
        return "; ".join([*changes, "sealed"]), sealed(json.dumps(document, indent=2).encode() + b"\n")
    return "; ".join(changes), content


def mutated_bytes(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """The content with cut, flipped, repeated or inserted bytes."""
    kind = chance.choice(("cut", "flip", "zeros", "insert", "repeat"))
    at = chance.randrange(max(1, len(content)))
    if kind == "cut":
        return f"cut at {at}", content[:at]
    damaged = bytearray(content)
    if kind == "flip":
        for _ in range(chance.choice((1, 1, 8))):
            at = chance.randrange(max(1, len(content)))
            damaged[at] ^= 1 << chance.randrange(8)
    elif kind == "zeros":
        damaged[at : at + 64] = bytes(len(damaged[at : at + 64]))
    elif kind == "insert":
        damaged[at:at] = chance.randbytes(chance.choice((1, 8, 64)))
    else:
        damaged[at:at] = damaged[max(0, at - 100) : at]
    return f"{kind} at {at}", bytes(damaged)


def damage(folder: Path, chance: random.Random) -> str:
    """Damage one file of a run folder, and say how."""
    names = ["run.json"] * 4 + ["results.json"] * 4 + ["lint.json", "classification.json"]
    names += ["scores/part-00000.parquet"] * 2 + ["samples/part-00000.parquet"] * 2
    file = folder / chance.choice([name for name in names if (folder / name).exists()])
    content = file.read_bytes()
    name = file.relative_to(folder).as_posix()
    if file.suffix == ".json" and chance.random() < 0.8:
        if chance.random() < 0.1:
            how = chance.choice(list(RAW))
            file.write_bytes(RAW[how])
            return f"{name}: {how}"
        how, new = mutated_json(content, chance)
    else:
        how, new = mutated_bytes(content, chance)
    file.write_bytes(new)
    return f"{name}: {how}"
