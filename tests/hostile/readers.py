"""Data files in every format: `mmeval validate` and the readers accept a damaged file, or refuse it with our errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.campaign import campaign, mmeval, tried
from tests.hostile.mutations import changed, damaged, damaged_json, deep

RECORDS: list[dict[str, Any]] = [
    {
        "id": f"s{number}",
        "generated_answer": "a dog on the grass",
        "references": ["a dog", "the café"],
        "question": "what is it?",
        "choices": {"A": "dog", "B": "cat"},
        "boxes": [{"box": [0, 1, 2.5, 3], "label": "dog", "score": 0.5}],
        "logprobs": [-0.5, -1.0],
        "perplexity": 2.5,
        "epoch": number,
        "relevant": True,
        "annotations": {"ann": "yes", "bob": "no"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        "metadata": {"model": "x", "n": number},
        "group": "g",
        "note": number,
    }
    for number in range(4)
]


def _jsonl(random: Random) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)


def _changed_jsonl(random: Random) -> bytes:
    """Records with odd values, huge integers and repeated keys."""
    lines = []
    for record in RECORDS:
        line = json.dumps(changed(random, record) if random.random() < 0.5 else record)
        if random.random() < 0.1:
            line = line.replace(": ", ": " + "9" * random.choice((20, 400, 5000)) + ', "x": ', 1)
        lines.append(line if random.random() > 0.05 else line[:-1] + ', "id": 1}')
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _array(random: Random) -> bytes:
    return damaged_json(random, json.dumps(RECORDS).encode(), bytes_too=0)


def _table(random: Random, delimiter: str) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=random.choice(("\n", "\r\n", "\r")))
    writer.writerow(RECORDS[0])
    for record in RECORDS:
        row = changed(random, record) if random.random() < 0.3 else record
        values = row.values() if isinstance(row, dict) else [row]
        writer.writerow([value if isinstance(value, str) else json.dumps(value) for value in values])
    return out.getvalue().encode("utf-8", "surrogatepass")


def _parquet(random: Random) -> bytes:
    """Other types of columns, and text that is not valid UTF-8."""
    columns: dict[str, pa.Array] = {
        "id": pa.array(["a", "b", "c"]),
        "generated_answer": _invalid_text(random) if random.random() < 0.4 else pa.array(["x", "", None]),
        "references": pa.array([["x", "y"], ["z"], None]),
        "metadata": pa.array([{"a": 1}, None, {"a": 2}]),
    }
    name = random.choice(("id", "image", "choices", "boxes", "epoch", "other", "annotations", "references"))
    columns[name] = random.choice(_ODD_COLUMNS)()
    out = io.BytesIO()
    codec = random.choice(("zstd", "snappy", "gzip", "none", "brotli", "lz4"))
    version = random.choice(("1.0", "2.0"))
    pq.write_table(pa.table(columns), out, compression=codec, data_page_version=version, row_group_size=2)
    return out.getvalue()


def _invalid_text(random: Random) -> pa.Array:
    content = random.choice((b"\xff", b"ok\xed\xa0\x80", b"\xc3"))
    offsets = pa.array([0, len(content), len(content), len(content)], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(content)])


_ODD_COLUMNS: tuple[Callable[[], pa.Array], ...] = (
    lambda: pa.array([2**63, 0, 1], pa.uint64()),
    lambda: pa.array([float("nan"), float("inf"), 1.0]),
    lambda: pa.array([b"\xff", b"", None]),
    lambda: pa.array([2**62, 0, -(2**62)], pa.timestamp("us")),
    lambda: pa.array([2**53, 0, -(2**53)], pa.timestamp("ms", "UTC")),
    lambda: pa.array([2**31 - 1, 0, -(2**31)], pa.int32()).cast(pa.date32()),
    lambda: pa.array([[("k", 1), ("k", 2)], [], None], pa.map_(pa.string(), pa.int8())),
    lambda: pa.nulls(3),
    lambda: pa.array([{"bytes": b"x", "path": None}, None, {"bytes": None, "path": "a.png"}]),
    lambda: pa.array([2**62, 0, None], pa.duration("us")),
    lambda: pa.array([True, None, False]),
    lambda: pa.array([[[1], []], [], None]),
    lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["x", "y"])),
)


FORMATS: dict[str, Callable[[Random], bytes]] = {
    ".jsonl": _jsonl,
    ".ndjson": _changed_jsonl,
    ".json": _array,
    ".csv": lambda random: _table(random, ","),
    ".tsv": lambda random: _table(random, "\t"),
    ".parquet": _parquet,
}


@campaign("readers", cases=1500, memory=1 << 30)
def attack(random: Random, folder: Path) -> str:
    """One file, damaged in its content, in its bytes or after compression."""
    suffix = random.choice(sorted(FORMATS))
    content = FORMATS[suffix](random)
    if random.random() < 0.5:
        content = damaged(random, content)
    if suffix != ".parquet" and random.random() < 0.05:
        content = deep(random)
    name = f"data{suffix}"
    if suffix != ".parquet" and random.random() < 0.3:
        packed = random.choice((".gz", ".zst"))
        name += packed
        content = gzip.compress(content) if packed == ".gz" else pa.compress(content, "zstd", asbytes=True)
        if random.random() < 0.5:
            content = damaged(random, content)
    (folder / name).write_bytes(content)
    arguments = ["--allow-empty"] if random.random() < 0.8 else []
    if random.random() < 0.2:
        arguments += ["--annotators", "ann*"]
    if random.random() < 0.2:
        arguments += ["--map", f"{random.choice(('question', 'group', 'references'))}=note"]
    return mmeval(folder, "validate", name, *arguments).verdict


@campaign("resources", cases=400, memory=2 << 30)
def attack_resources(random: Random, folder: Path) -> str:
    """Files that options and calls name: labels, document frequencies."""
    if random.random() < 0.5:
        return f"frequencies {_damaged_frequencies(random, folder)}"
    records = [
        {"id": n, "generated_answer": "yes", "expected_answer": answer} for n, answer in enumerate(("yes", "no"))
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    labels = random.choice((b'- "yes"\n- "no"\n', b'labels: ["yes", "no"]\naliases: {y: "yes"}\n', *_ODD_LABELS))
    (folder / "labels.yaml").write_bytes(damaged(random, labels) if random.random() < 0.6 else labels)
    arguments = ["--metrics", "exact_match,f1_strict", "--labels", "labels.yaml", "-o", "run", "--no-report"]
    return f"labels {mmeval(folder, 'score', 'data.jsonl', *arguments).verdict}"


_ODD_LABELS = (b"a: &a [*a]\n", b"- " * 5000, b"labels: {a: b}\n", b"- 2020-99-99\n", b"- !!python/object:x.y {}\n")


def _damaged_frequencies(random: Random, folder: Path) -> str:
    from multimodal_eval.text.document_frequencies import DocumentFrequencies

    path = folder / "corpus.df"
    DocumentFrequencies.of([["a dog", "the dog"], ["a cat on the grass"]]).save(path)
    path.write_bytes(damaged(random, path.read_bytes()))
    return tried(lambda: DocumentFrequencies.load(path).table)
