"""Files of samples by kind and name: `<!-- setup: files captions:captions.jsonl choices:answers.csv -->` writes two.

`captions:captions.jsonl=boreas` has the answers of another system.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tools.site.samples import Record, samples
from tools.site.workspace import Workspace


def prepare(work: Workspace, *wanted: str) -> None:
    """Write the files."""
    for word in wanted:
        kind, _, named = word.partition(":")
        name, _, system = named.partition("=")
        write(samples(kind, system or "first"), work.folder / name)


def write(records: list[Record], path: Path) -> None:
    """Write samples in the format that the name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, records[0])
            writer.writeheader()
            writer.writerows({key: _cell(value) for key, value in record.items()} for record in records)
    elif path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(records), path)
    else:
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
