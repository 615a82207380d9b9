"""Find the format of a log or a dataset by the beginning of the file.

The module of a format is imported only for files with its suffix and one of its marks, so that other files, which are
the rule, cost almost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import msgspec

from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.data.logs.log_format import Head, LogFormat
from multimodal_eval.data.readers.blocks import DamagedStreamError, bare_suffix, open_bytes

__all__ = ["FORMATS", "LOG_FORMATS", "is_dataset", "log_format", "log_formats", "recognised"]

_HEAD = 1 << 16  # bytes


class _Entry(msgspec.Struct, frozen=True):
    """The module of a format below `data`, its suffixes, and texts of which its files have one near their beginning.

    Without such texts, no file is recognised.
    """

    module: str
    suffixes: tuple[str, ...]
    marks: tuple[bytes, ...] = (b"",)


# The first that recognises a file reads it.
_LOGS = {
    "lm-eval": _Entry("logs.lm_eval", (".jsonl",), (b'"filtered_resps"',)),
    "lmms-eval": _Entry("logs.lmms_eval", (".jsonl",), (b'"filtered_resps"',)),
    "inspect": _Entry("logs.inspect_eval", (".eval", ".json"), (b"PK", b'"eval"')),
    "eee": _Entry("logs.eee", (".jsonl", ".json"), (b'"evaluation_id"',)),
    "openai-batch": _Entry("logs.openai_batch", (".jsonl",), (b'"custom_id"',)),
    "helm": _Entry("logs.helm", (".json",), (b'"adapter_spec"', b'"sum_squared"')),
    "evalscope": _Entry("logs.evalscope", (".jsonl",), (b'"sample_score"', b'"model_output"', b'"messages"')),
    "lighteval": _Entry("logs.lighteval", (".parquet",)),
    "vlmevalkit": _Entry("logs.vlmevalkit", (".xlsx", ".tsv", ".csv", ".json"), (b"PK", b"prediction")),
}
_DATASETS = {
    "hf-parquet": _Entry("datasets.hf_parquet", (".parquet",)),
    "vlmevalkit-tsv": _Entry("datasets.vlmevalkit_tsv", (".tsv",), (b"question",)),
    "webdataset": _Entry("datasets.webdataset", (".tar",)),
    "croissant": _Entry("datasets.croissant", (".json", ".jsonld"), (b'"@context"',)),
    "declared": _Entry("datasets.declared_rows", (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"), ()),
    "rows": _Entry("datasets.dataset_format", (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"), ()),
}
_FORMATS = {**_LOGS, **_DATASETS}
FORMATS = tuple(_FORMATS)
LOG_FORMATS = tuple(_LOGS)


def log_formats() -> Mapping[str, LogFormat]:
    """All formats, by name."""
    return {name: _imported(name) for name in _FORMATS}


def _imported(name: str) -> LogFormat:
    imported: LogFormat = import_module(f"multimodal_eval.data.{_FORMATS[name].module}").FORMAT
    return imported


def log_format(name: str) -> LogFormat:
    """The format with that name; `croissant:NAME` is one with an option."""
    plain, colon, option = name.partition(":")
    if plain not in _FORMATS:
        raise UnknownNameError("format", name, _FORMATS)
    chosen = _imported(plain)
    if not colon:
        return chosen
    if not option or not hasattr(chosen, "with_option"):
        raise ConfigError(f"the format {plain!r} has no option {option!r}")
    with_option: LogFormat = chosen.with_option(option)
    return with_option


def is_dataset(name: str | None) -> bool:
    """Whether a format is that of published datasets, which have no answers of models."""
    plain = (name or "").partition(":")[0]
    return plain in _DATASETS and not getattr(_imported(plain), "is_plain", False)


def recognised(path: Path) -> LogFormat | None:
    """The format of a file; None if it is neither a log nor a dataset with a format of its own."""
    suffix = bare_suffix(path)
    if not any(suffix in entry.suffixes for entry in _FORMATS.values()):
        return None
    try:
        stat = path.stat()
    except OSError:
        return None
    name = _recognised(path, suffix, stat.st_size, stat.st_mtime_ns)
    return None if name is None else _imported(name)


@lru_cache(maxsize=4096)
def _recognised(path: Path, suffix: str, size: int, changed: int) -> str | None:
    try:
        with open_bytes(path) as stream:
            head = Head(path, suffix, stream.read(_HEAD))
    except (OSError, DamagedStreamError):
        return None
    candidates = (
        name
        for name, entry in _FORMATS.items()
        if suffix in entry.suffixes and any(mark in head.data for mark in entry.marks)
    )
    # Else the only format with the suffix, whose reader says why the file cannot be read: not somebody else's workbook.
    names = [name for name, entry in _FORMATS.items() if suffix in entry.suffixes]
    is_workbook = suffix == ".xlsx" and head.data.startswith(b"PK")
    only = names[0] if len(names) == 1 and _FORMATS[names[0]].marks and not is_workbook else None
    return next((name for name in candidates if _imported(name).recognises(head)), only)
