"""Find the format of a log by the beginning of the file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.data.logs.log_format import Head, LogFormat
from multimodal_eval.data.readers.blocks import DamagedStreamError, bare_suffix, open_bytes

__all__ = ["LOG_FORMATS", "SUFFIXES", "log_format", "log_formats", "recognised"]

_HEAD = 1 << 16  # bytes
# Name -> its module in `data.logs`. The first that recognises a file reads it.
_MODULES = {
    "lm-eval": "lm_eval",
    "lmms-eval": "lmms_eval",
    "inspect": "inspect_eval",
    "eee": "eee",
    "openai-batch": "openai_batch",
    "helm": "helm",
    "evalscope": "evalscope",
    "lighteval": "lighteval",
    "vlmevalkit": "vlmevalkit",
}
LOG_FORMATS = tuple(_MODULES)
# Name -> its module in `data.datasets`.
_DATASETS = {
    "hf-parquet": "hf_parquet",
    "vlmevalkit-tsv": "vlmevalkit_tsv",
    "webdataset": "webdataset",
    "croissant": "croissant",
}
# Suffixes of files that may be logs or datasets.
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".eval", ".xlsx", ".tar", ".jsonld")


@cache
def log_formats() -> Mapping[str, LogFormat]:
    """All formats, by name."""
    modules = {name: f"logs.{module}" for name, module in _MODULES.items()}
    modules |= {name: f"datasets.{module}" for name, module in _DATASETS.items()}
    return MappingProxyType(
        {name: import_module(f"multimodal_eval.data.{module}").FORMAT for name, module in modules.items()}
    )


def log_format(name: str) -> LogFormat:
    """The format with that name; `croissant:NAME` is one with an option."""
    plain, colon, option = name.partition(":")
    if plain not in log_formats():
        raise UnknownNameError("format", name, log_formats())
    chosen = log_formats()[plain]
    if not colon:
        return chosen
    if not option or not hasattr(chosen, "with_option"):
        raise ConfigError(f"the format {plain!r} has no option {option!r}")
    with_option: LogFormat = chosen.with_option(option)
    return with_option


def recognised(path: Path) -> LogFormat | None:
    """The format of a file; None if it is not a log."""
    suffix = bare_suffix(path)
    if suffix not in SUFFIXES:
        return None
    try:
        stat = path.stat()
    except OSError:
        return None
    name = _recognised(path, suffix, stat.st_size, stat.st_mtime_ns)
    return None if name is None else log_formats()[name]


@lru_cache(maxsize=4096)
def _recognised(path: Path, suffix: str, size: int, changed: int) -> str | None:
    candidates = {name: each for name, each in log_formats().items() if suffix in each.suffixes}
    if not candidates:
        return None
    try:
        with open_bytes(path) as stream:
            head = Head(path, suffix, stream.read(_HEAD))
    except (OSError, DamagedStreamError):
        return None
    return next((name for name, each in candidates.items() if each.recognises(head)), None)
