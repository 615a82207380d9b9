"""The sample of a recipe, written as its data are published: questions of our own in the real columns.

`sample.jsonl` has a row per line, with images as data URIs. It becomes Parquet as on the hub, or a file of the kind
that the recipe's pattern names. A column that the recipe takes from the folder of a file decides the folder.
"""

from __future__ import annotations

import base64
import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.benchmarks.recipes import SAMPLE, Recipe
from multimodal_eval.benchmarks.task_format import TaskData
from multimodal_eval.core.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["sample_files", "sample_rows", "write_sample"]

_URI = "data:"
_SHARD = "00000-of-00001"
Row = dict[str, Any]


def sample_rows(recipe: Recipe) -> list[Row]:
    """The rows of the sample."""
    path = recipe.folder / SAMPLE
    try:
        rows = [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: a recipe needs this file: a few questions of your own in the columns of the data"
        ) from None
    except (OSError, msgspec.DecodeError) as fault:
        raise ConfigError(f"{path}: the sample of a recipe must be JSON Lines: {fault}") from None
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{path}: the sample of a recipe must have rows with columns")
    return rows


def sample_files(recipe: Recipe) -> dict[str, list[Row]]:
    """The rows by the file that they are in, with the columns of the published data."""
    data = recipe.task.data
    if not isinstance(data, TaskData) or data.pattern is None:
        raise ConfigError(f"{recipe.file}: `data` needs `hub`, or `source` and `files`")
    files: defaultdict[str, list[Row]] = defaultdict(list)
    for row in sample_rows(recipe):
        folder = "sample" if data.folder is None else str(row.pop(data.folder, "sample"))
        files[_file(data.pattern, folder)].append(row)
    columns = data.columns if isinstance(data.columns, list) else []
    return {name: [{**dict.fromkeys(columns), **row} for row in rows] for name, rows in files.items()}


def _file(pattern: str, folder: str) -> str:
    """A name that the pattern matches."""
    *folders, name = pattern.split("/")
    folders = [folder if part in ("*", "**") else part.replace("*", folder) for part in folders]
    return "/".join([*folders, name.replace("*", _SHARD if name.endswith(".parquet") else "sample")])


def write_sample(recipe: Recipe, folder: Path) -> list[str]:
    """Write the sample below a folder as a copy of the data would be; the names of the files."""
    files = sample_files(recipe)
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(_table(rows), path)
        elif path.suffix == ".tsv":
            _write_tsv(path, rows)
        elif path.suffix == ".json":
            path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
        else:
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return sorted(files)


def _is_uri(value: object) -> bool:
    return isinstance(value, str) and value.startswith(_URI)


def _content(uri: str) -> bytes:
    return base64.b64decode(uri.partition(",")[2])


def _kind(values: list[Any]) -> str | None:
    """The kind of media in a column: image, audio, or none."""
    uri = next((value for value in values if _is_uri(value)), None)
    return None if uri is None else uri.removeprefix(_URI).partition("/")[0]


def _table(rows: list[Row]) -> pa.Table:
    import pyarrow as pa

    columns = list(dict.fromkeys(name for row in rows for name in row))
    features: dict[str, Any] = {}
    arrays = []
    media = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    for name in columns:
        values = [row.get(name) for row in rows]
        items = [item for value in values for item in (value if isinstance(value, list) else [value])]
        kind = _kind(items)
        if kind is None and not any(value is not None for value in values) and name.startswith("image_"):
            kind = "image"
        if kind is None:
            features[name] = {"_type": "Value"}
            arrays.append(pa.array(values))
            continue
        is_list = any(isinstance(value, list) for value in values)
        feature = {"_type": kind.capitalize()}
        features[name] = [feature] if is_list else feature
        arrays.append(pa.array([_as_media(value) for value in values], pa.list_(media) if is_list else media))
    table = pa.table(arrays, names=columns)
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def _as_media(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_media(item) for item in value]
    return {"bytes": _content(value), "path": None} if _is_uri(value) else None


def _write_tsv(path: Path, rows: list[Row]) -> None:
    """Images are base64, as VLMEvalKit writes them."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            writer.writerow([_cell(row.get(name)) for name in names])


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return value.partition(",")[2] if _is_uri(value) else value
