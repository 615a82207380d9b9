"""Resolve an input name to files: one file, a folder of files, or a pattern such as `part-*.jsonl`.

A folder is read recursively. Folders named `key=value`, as Hive and Spark partition a dataset, add the column `key` to
the records of their files. Names that start with `.` or `_` (`_SUCCESS`, `_metadata`) are skipped.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape, glob
from pathlib import Path
from urllib.parse import unquote

import msgspec

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.core.records import InputFile
from multimodal_eval.data.logs.log_format import HasCompanions, LogFormat
from multimodal_eval.data.logs.recognised import log_format, recognised
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.formats import Reader, check_file, reader_of

_NULL_KEY = "__HIVE_DEFAULT_PARTITION__"
_DIGITS = re.compile(r"([0-9]+)")
_ESCAPED = re.compile(r"\[[*?[]\]")  # a literal character as written by `glob.escape`
_OPEN = re.compile(r"[*?[]")


class DataFile(msgspec.Struct, frozen=True):
    """One file of an input, the columns that its `key=value` folders add to its records, and how it is read."""

    path: Path
    keys: Mapping[str, str] = msgspec.field(default_factory=dict)
    questions: Path | None = None
    log: str | None = None  # the format, if it is a log of another harness
    prefix: str = ""  # of the ids, if several logs are read together


class FileSet(msgspec.Struct, frozen=True):
    """The files of an input name, in reading order, and the folder that contains them."""

    name: Path
    files: tuple[DataFile, ...]
    folder: Path

    def recipe(self) -> str:
        """The name in a form that resolves to the same files from any working directory."""
        if self.name.exists():
            return str(self.name.resolve())
        if self.name.is_absolute():
            return str(self.name)
        return str(Path(escape(str(Path.cwd()))) / self.name)


def file_set(name: Path, log: str | None = None) -> FileSet:
    """The files of an input name, checked to exist and to have one format. An existing path is taken literally.

    `log` is the format of a log, if it is not recognised by its content.
    """
    if name.is_dir():
        files = _ordered(_below(name), name)
        return FileSet(name, _logs(name, files, log) or _of_one_format(name, files), name)
    if name.exists() or not _OPEN.search(str(name)):
        check_file(name, log)
        return FileSet(name, (DataFile(name, log=log or _log_of(name)),), name.parent)
    folder = _fixed_head(name)
    open_part = str(Path(*name.parts[len(folder.parts) :]))
    files = _ordered(_matching(open_part, folder), folder)
    return FileSet(name, _logs(name, files, log) or _of_one_format(name, files), folder)


def log_files(name: Path, log: str | None = None) -> tuple[DataFile, ...]:
    """The logs of all harnesses in a folder, each to be read alone; a file is one of them if it is a log."""
    if not name.is_dir():
        return tuple(file for file in file_set(name, log).files if file.log is not None)
    by_format: dict[str, list[Path]] = {}
    for file in _ordered(_below(name), name):
        format_ = log or _log_of(file.path)
        if format_ is not None and bare_suffix(file.path) in log_format(format_).suffixes:
            by_format.setdefault(format_, []).append(file.path)
    return tuple(
        DataFile(path, log=format_)
        for format_, paths in by_format.items()
        for path in _main_files(log_format(format_), paths)
    )


def _main_files(chosen: LogFormat, paths: Sequence[Path]) -> Sequence[Path]:
    """The files that are read, of those of one format."""
    return chosen.main_files(paths) if isinstance(chosen, HasCompanions) else paths


def _log_of(path: Path) -> str | None:
    log = recognised(path)
    return None if log is None else log.name


def _logs(name: Path, files: Sequence[DataFile], log: str | None) -> tuple[DataFile, ...]:
    """The logs among the files; other files in the folder of a log, such as its results, are not read."""
    formats = {file.path: log if log is not None else _log_of(file.path) for file in files}
    known = sorted({each for each in formats.values() if each is not None})
    if not known:
        return ()
    if len(known) > 1:
        message = f"files of several formats are here: {', '.join(known)}."
        hint = f"Name one file, or choose with --as {known[0]}"
        raise InputError([Problem(code="FORMAT", message=message, file=str(name), hint=hint)])
    if log is not None:
        suffixes = log_format(log).suffixes
        formats = {path: each for path, each in formats.items() if bare_suffix(path) in suffixes}
    chosen = log_format(known[0])
    logs = [file for file in files if formats.get(file.path) is not None]
    if isinstance(chosen, HasCompanions):
        logs = [DataFile(path) for path in chosen.main_files([file.path for file in logs])]
    if getattr(chosen, "every_file", False):
        alike = [file.path for file in files if bare_suffix(file.path) in chosen.suffixes]
        _refuse_others(name, known[0], alike, formats)
    if len(logs) == 1:
        return (msgspec.structs.replace(logs[0], log=known[0]),)
    parts = [chosen.part_name(file.path) for file in logs]
    if chosen.harness:  # the files of a dataset have different ids
        _refuse_equal_parts(parts, logs)
    return tuple(
        msgspec.structs.replace(file, log=known[0], prefix=f"{part}/" if part else "")
        for file, part in zip(logs, parts, strict=True)
    )


def _refuse_equal_parts(parts: Sequence[str], logs: Sequence[DataFile]) -> None:
    """Refuse two logs of one task, whose samples have the same ids."""
    first: dict[str, Path] = {}
    for part, file in zip(parts, logs, strict=True):
        if part and part in first:
            message = f"this and {first[part]} are both logs of {part!r}, and their samples have the same ids."
            hint = (
                f"Read each of them alone: mmeval import {file.path} -o RUN, and compare the runs with mmeval compare"
            )
            raise InputError([Problem(code="DUPLICATE", message=message, file=str(file.path), hint=hint)])
        first[part] = file.path


def _refuse_others(name: Path, log: str, paths: Sequence[Path], formats: Mapping[Path, str | None]) -> None:
    """Refuse files that would be left out silently: those with the suffix of a dataset and another format."""
    other = next((path for path in paths if formats.get(path) is None), None)
    if other is not None:
        message = f"other files in {name} have the format {log}, and this file does not."
        hint = f"Name the files, or read all of them as such with --as {log}"
        raise InputError([Problem(code="FORMAT", message=message, file=str(other), hint=hint)])


def _below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, following links; a cyclic link is followed once."""
    visited: set[str] = set()
    for parent, folders, names in os.walk(folder, followlinks=True, onerror=_refuse_folder):
        true_path = os.path.realpath(parent)
        if true_path in visited:
            folders.clear()
            continue
        visited.add(true_path)
        yield from (Path(parent, name) for name in names)


def _refuse_folder(error: OSError) -> None:
    """Refuse a folder that cannot be listed; otherwise its data would be missing silently."""
    message = f"the folder cannot be read: {error.strerror}"
    raise InputError([Problem(code="NOT_FOUND", message=message, file=str(error.filename))])


def _matching(pattern: str, folder: Path) -> Iterator[Path]:
    """Every file that matches, and every file below a matching folder."""
    for match in glob(pattern, root_dir=folder, recursive=True):  # noqa: PTH207 - Path.glob follows no links
        path = folder / match
        if path.is_dir():
            yield from _below(path)
        else:
            yield path


def _fixed_head(pattern: Path) -> Path:
    """The path up to the first component that is a pattern."""
    fixed: list[str] = []
    for component in pattern.parts:
        if _OPEN.search(_ESCAPED.sub("", component)):
            break
        fixed.append(_ESCAPED.sub(lambda match: match[0][1], component))
    return Path(*fixed)


def _ordered(paths: Iterable[Path], folder: Path) -> list[DataFile]:
    """The data files, without duplicates, in natural order: part-2 comes before part-10."""
    inner = {path.relative_to(folder): path for path in paths}
    names = sorted((name for name in inner if not any(map(_is_hidden, name.parts))), key=_natural)
    return [DataFile(inner[name], _keys_of(name)) for name in names]


def _is_hidden(name: str) -> bool:
    """Spark's rule: `_SUCCESS` and `.part-0.crc` are not data, but the partition folder `_day=1` is."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _natural(name: Path) -> tuple[list[list[str | int]], str]:
    components: list[list[str | int]] = [
        [int(piece) if place % 2 else piece for place, piece in enumerate(_DIGITS.split(component))]
        for component in name.parts
    ]
    return components, str(name)


def _keys_of(name: Path) -> dict[str, str]:
    """The partition columns of a file. Values are always text, so that `fold=007` stays `007`."""
    pairs = (component.split("=", 1) for component in name.parts[:-1] if "=" in component[1:])
    return {unquote(key): unquote(value) for key, value in pairs if value != _NULL_KEY}


def _of_one_format(name: Path, files: list[DataFile]) -> tuple[DataFile, ...]:
    if (name / "run.json").is_file():
        hint = "Score its samples again with: mmeval rescore"
        raise InputError([Problem(code="FORMAT", message="this is a run folder, not data.", file=str(name), hint=hint)])
    if not files:
        what = "the folder has no data" if name.is_dir() else "no file matches this pattern"
        message = f"{what} (names that start with . or _ are not read)"
        raise InputError([Problem(code="NOT_FOUND", message=message, file=str(name))])
    first_of: dict[Reader, Path] = {}
    for file in files:
        check_file(file.path)
        first_of.setdefault(reader_of(file.path), file.path)
    if len(first_of) > 1:
        first, second = list(first_of.values())[:2]
        message = f"all files must have the same format, but {first} has another."
        advice = f"Select files with a pattern: '{name}/**/*{bare_suffix(first)}'." if name.is_dir() else None
        raise InputError([Problem(code="FORMAT", message=message, file=str(second), hint=advice)])
    return tuple(files)


def further_files(file: DataFile) -> Iterable[Path]:
    """The files that a file of data names, such as those of Croissant metadata."""
    named = None if file.log is None else getattr(log_format(file.log), "further_files", None)
    files: Iterable[Path] = () if named is None else named(file.path)
    return files


def describe_file(path: Path) -> InputFile:
    """The entry of a file in run.json: its path, size and checksum."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return InputFile(path=str(path), bytes=path.stat().st_size, sha256=digest)
