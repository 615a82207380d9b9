"""The metadata of a Croissant dataset: its files, its record sets, and the source of each field.

Keys may have a prefix (`cr:`, `sc:`, `ml:`), references are names or `{"@id": name}`, and a list of one item may be
written without the list.

Reference:
    Akhtar et al. (2024). Croissant: A Metadata Format for ML-Ready Datasets. DEEM. arXiv:2403.19546; the specification
    at http://mlcommons.org/croissant/1.0.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.linear_patterns import group_pattern
from multimodal_eval.core.system_files import leading_out
from multimodal_eval.data.datasets.dataset_format import natural_key

__all__ = ["CroissantError", "Field", "Metadata", "RecordSet", "Resource", "Source", "files_of", "metadata_of"]


_PREFIX = re.compile(r"^(?:cr|sc|ml|schema|https?://schema\.org/|http://mlcommons\.org/croissant/):?")
_DEEPEST = 20
_PATH = re.compile(
    r"\$?(?:\.?(?P<rows>[^\[\]*?@()$]*)\[\*\])?\.?(?P<key>[^\[\]*?@()$]+)"
)  # $.a.b, $[*].a, $.items[*].a
_PROPERTIES = ("content", "filename", "filepath", "fullpath")


class CroissantError(Exception):
    """Metadata that cannot be read; `code` is that of the problem."""

    def __init__(self, message: str, code: str = "TYPE", hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.hint = code, hint


@dataclass(frozen=True)
class Resource:
    """A file (FileObject), or the files that match patterns (FileSet)."""

    id: str
    is_set: bool
    url: str = ""
    encoding: str = ""
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    contained_in: tuple[str, ...] = ()
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True)
class Source:
    """Where the values of a field come from: a column, a path in JSON, or a property of the file."""

    resource: str
    column: str | None = None
    property: str | None = None
    pattern: re.Pattern[str] | None = None  # the transform `regex`
    delimiter: str | None = None
    inner: tuple[str, ...] = ()  # keys of a value that is an object
    rows: str | None = None  # in JSON: the path of the list with the records


@dataclass(frozen=True)
class Field:
    """A field of a record set."""

    id: str
    name: str
    kind: str  # the data type without its prefix: Text, Integer, ImageObject
    source: Source | None = None
    parts: tuple[Field, ...] = ()
    joined_with: Source | None = None  # `references`: the file whose property is equal to this field


@dataclass(frozen=True)
class RecordSet:
    """A table of records."""

    id: str
    fields: tuple[Field, ...]
    key: str | None = None  # the name of the field that identifies a record

    @property
    def leaves(self) -> list[Field]:
        """The fields without parts."""
        return [*_leaves(self.fields)]

    @property
    def sources(self) -> list[Source]:
        """The sources of all fields."""
        return [field.source for field in self.leaves if field.source is not None]


@dataclass(frozen=True)
class Metadata:
    """The files and the record sets that are read from files."""

    resources: Mapping[str, Resource]
    record_sets: tuple[RecordSet, ...]

    def chosen(self, name: str | None) -> RecordSet:
        """The record set with that name, or the only one."""
        named = [each for each in self.record_sets if name in (None, each.id)]
        known = ", ".join(each.id for each in self.record_sets)
        if not self.record_sets:
            raise CroissantError("no record set has fields from files", "EMPTY")
        if not named:
            raise CroissantError(f"no record set is named {name!r}. Known: {known}", "NOT_FOUND")
        if len(named) > 1:
            hint = f"Choose one: --as croissant:{named[0].id}"
            raise CroissantError(f"there are several record sets: {known}.", "FORMAT", hint)
        return named[0]


def metadata_of(content: object) -> Metadata:
    """The metadata of a decoded file."""
    top = _object(_plain(content), "the metadata")
    resources = {each.id: each for each in map(_resource, _items(top, "distribution"))}
    sets = (_record_set(_object(item, "a record set")) for item in _items(top, "recordSet"))
    return Metadata(resources, tuple(each for each in sets if each is not None and each.sources))


def _leaves(fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        yield from _leaves(field.parts) if field.parts else (field,)


def _plain(value: object, depth: int = 0) -> object:
    """The value, with keys without prefixes."""
    if depth > _DEEPEST:
        raise CroissantError(f"the metadata are nested deeper than {_DEEPEST} levels", "NESTING")
    if isinstance(value, dict):
        return {_PREFIX.sub("", key): _plain(item, depth + 1) for key, item in value.items()}
    return [_plain(item, depth + 1) for item in value] if isinstance(value, list) else value


def _object(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise CroissantError(f"{what} must be an object. Got {shorten(value)} instead.")
    return value


def _items(of: Mapping[str, object], key: str) -> list[object]:
    value = of.get(key)
    return value if isinstance(value, list) else [] if value is None else [value]


def _reference(value: object) -> str | None:
    value = value.get("@id") if isinstance(value, dict) else value
    return value if isinstance(value, str) else None


def _references(of: Mapping[str, object], key: str) -> tuple[str, ...]:
    return tuple(name for item in _items(of, key) if (name := _reference(item)) is not None)


def _text(of: Mapping[str, object], key: str) -> str | None:
    value = of.get(key)
    return value if isinstance(value, str) else None


def _id(of: Mapping[str, object], what: str) -> str:
    name = _text(of, "@id") or _text(of, "name")
    if not name:
        raise CroissantError(f"{what} has neither `@id` nor `name`: {shorten(of)}")
    return name


def _resource(item: object) -> Resource:
    entry = _object(item, "an entry of `distribution`")
    return Resource(
        id=_id(entry, "an entry of `distribution`"),
        is_set=(_text(entry, "@type") or "").endswith("FileSet"),
        url=_text(entry, "contentUrl") or "",
        encoding=(_references(entry, "encodingFormat") or ("",))[0],
        includes=_references(entry, "includes"),
        excludes=_references(entry, "excludes"),
        contained_in=_references(entry, "containedIn"),
        sha256=_text(entry, "sha256"),
        md5=_text(entry, "md5"),
    )


def _record_set(entry: dict[str, object]) -> RecordSet | None:
    """A record set; None if its records are in the metadata, as those of enumerations."""
    if entry.get("data") is not None:
        return None
    fields = tuple(_field(_object(item, "a field")) for item in _items(entry, "field"))
    keys = _references(entry, "key")
    return RecordSet(_id(entry, "a record set"), fields, _name(keys[0]) if len(keys) == 1 else None)


def _name(field: str) -> str:
    return field.rpartition("/")[2]


def _field(entry: dict[str, object]) -> Field:
    name = _id(entry, "a field")
    kinds = _references(entry, "dataType")
    return Field(
        id=name,
        name=_name(name),
        kind=_PREFIX.sub("", kinds[0]) if kinds else "Text",
        source=_source(entry.get("source"), name),
        parts=tuple(_field(_object(item, "a field")) for item in _items(entry, "subField")),
        joined_with=_source(entry.get("references"), name),
    )


def _source(value: object, field: str) -> Source | None:
    """A source; None if the values are those of another record set."""
    if not isinstance(value, dict):
        return None
    keys = ("fileObject", "fileSet", "distribution")
    resource = next((name for key in keys for name in _references(value, key)), None)
    if resource is None:
        return None
    extract = value.get("extract")
    extract = extract if isinstance(extract, dict) else {}
    path, kind = _text(extract, "jsonPath"), _text(extract, "fileProperty")
    if kind is not None and kind not in _PROPERTIES:
        raise CroissantError(f"the field {field!r} is the property {kind!r} of a file. Known: {', '.join(_PROPERTIES)}")
    column, rows = _text(extract, "column"), None
    if path is not None:
        match = _path(path, field)
        column, rows = match["key"], match["rows"]
    if column is None and kind is None:
        raise CroissantError(f"the field {field!r} names no column, no path in JSON and no property of a file")
    return _transformed(Source(resource, column, kind, rows=rows), value, field)


def _path(path: str, field: str) -> re.Match[str]:
    match = _PATH.fullmatch(path)
    if match is None:
        raise CroissantError(
            f"the field {field!r} is at {path!r} in JSON. Only paths such as $.items[*].name are read."
        )
    return match


def _transformed(source: Source, value: Mapping[str, object], field: str) -> Source:
    pattern, delimiter, inner = None, None, list[str]()
    for item in _items(value, "transform"):
        step = _object(item, f"a transform of the field {field!r}")
        for key, argument in step.items():
            if key.startswith("@"):
                continue
            if key == "regex" and isinstance(argument, str):
                try:
                    pattern = group_pattern(argument)
                except ConfigError as error:
                    raise CroissantError(f"the field {field!r}: {error}") from None
            elif key in ("delimiter", "separator") and isinstance(argument, str) and argument:
                delimiter = argument
            elif key == "jsonPath" and isinstance(argument, str):
                inner += _path(argument, field)["key"].split(".")
            else:
                raise CroissantError(f"the field {field!r} has the transform {key!r}, which is not read")
    return replace(source, pattern=pattern, delimiter=delimiter, inner=tuple(inner))


# The files of a Croissant dataset on this machine. Nothing is downloaded, and checksums are compared.

_DIGESTS = {"sha256": re.compile(r"[0-9a-fA-F]{64}"), "md5": re.compile(r"[0-9a-fA-F]{32}")}
_REPOSITORIES = ("git+https", "git+http", "git")
_ARCHIVES = ("application/zip", "application/x-tar", "application/gzip", "application/x-gzip", "application/x-tgz")
_DEEPEST_ARCHIVE = 10


def files_of(metadata: Metadata, resource: str, folder: Path) -> list[tuple[str, Path]]:
    """(path inside the dataset, file) of every file of a resource; `folder` contains the metadata."""
    entry = _entry(metadata, resource)
    if not entry.is_set:
        path = _file(metadata, entry, folder)
        return [(PurePosixPath(path.relative_to(folder)).as_posix(), path)]
    containers = entry.contained_in or ("",)
    files = [pair for container in containers for pair in _matching(metadata, entry, container, folder)]
    if not files:
        patterns = ", ".join(entry.includes) or "*"
        raise CroissantError(f"no file of {entry.id!r} is here: {patterns} below {folder}", "NOT_FOUND")
    return sorted(files, key=lambda pair: natural_key(pair[0]))


def _entry(metadata: Metadata, name: str) -> Resource:
    if name not in metadata.resources:
        raise CroissantError(f"`distribution` has no entry {name!r}", "NOT_FOUND")
    return metadata.resources[name]


def _inside(name: str) -> PurePosixPath:
    """A path relative to the folder; one that leaves it is refused."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.parts:
        raise CroissantError(f"the path {name!r} leaves the folder of the metadata", "FORMAT")
    return path


def _file(metadata: Metadata, entry: Resource, folder: Path) -> Path:
    """The file of a FileObject, with its checksum compared."""
    root = folder if not entry.contained_in else _root(metadata, entry.contained_in[0], folder)
    address = urlsplit(entry.url)
    if address.scheme in ("http", "https"):
        names = [PurePosixPath(unquote(address.path)).name, entry.id]
    elif address.scheme and address.scheme != "file" and len(address.scheme) > 1:
        raise CroissantError(f"{entry.id!r} is at {entry.url!r}, an address of an unknown kind", "FORMAT")
    else:
        names = [entry.url or entry.id]
    paths = [root / _inside(name) for name in names if name]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        advice = f"Download it: {entry.url}" if address.scheme else None
        where = paths[0] if paths else root
        raise CroissantError(f"{entry.id!r} is not on this machine: {where} is missing.", "NOT_FOUND", advice)
    _refuse_outside(path, folder)
    _check(path, entry)
    return path


def _refuse_outside(path: Path, folder: Path) -> None:
    """Refuse a file or folder that a link leads out of the folder of the metadata."""
    if (out := leading_out(folder, path.relative_to(folder))) is not None:
        hint = "Put a copy of the file in its place."
        raise CroissantError(f"{out} is a link that leads out of the folder of the metadata.", "FORMAT", hint)


def _check(path: Path, entry: Resource) -> None:
    stat = path.stat()
    for kind, form in _DIGESTS.items():
        said = entry.sha256 if kind == "sha256" else entry.md5
        if said is None or form.fullmatch(said.strip()) is None:
            continue
        actual = _digest(path, kind, stat.st_size, stat.st_mtime_ns)
        if actual != said.strip().lower():
            message = f"{path} is not the file that the metadata describe: its {kind} is {actual}, not {said.strip()}."
            raise CroissantError(message, "CONFLICT", "Download it again, or update the metadata.")


@lru_cache(maxsize=1024)
def _digest(path: Path, kind: str, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def _root(metadata: Metadata, container: str, folder: Path, depth: int = 0) -> Path:
    """The folder with the files of a container: of the metadata for a repository, the unpacked one for an archive."""
    if not container:
        return folder
    if depth > _DEEPEST_ARCHIVE:
        raise CroissantError(f"{container!r} contains itself")
    entry = _entry(metadata, container)
    outer = _root(metadata, entry.contained_in[0], folder, depth + 1) if entry.contained_in else folder
    if entry.encoding in _REPOSITORIES or entry.is_set:
        return outer
    name = PurePosixPath(unquote(urlsplit(entry.url).path)).name or entry.id
    if entry.encoding in _ARCHIVES or PurePosixPath(name).suffix in (".zip", ".tar", ".gz", ".tgz"):
        stem = re.sub(r"(\.tar)?\.[^.]+$", "", name)
        unpacked = outer / _inside(stem)
        if not unpacked.is_dir():
            hint = f"Unpack {name} into {unpacked}."
            raise CroissantError(f"archives are not read, and {unpacked} is missing.", "NOT_FOUND", hint)
        return unpacked
    path = outer / _inside(entry.url or entry.id)
    return path if path.is_dir() else outer


def _matching(metadata: Metadata, entry: Resource, container: str, folder: Path) -> Iterator[tuple[str, Path]]:
    root = _root(metadata, container, folder)
    _refuse_outside(root, folder)
    for path in root.rglob("*"):  # which follows no links to folders
        name = path.relative_to(root).as_posix()
        is_included = any(_matches(name, pattern) for pattern in entry.includes or ("*",))
        if is_included and not any(_matches(name, pattern) for pattern in entry.excludes) and path.is_file():
            _refuse_outside(path, folder)
            yield name, path


def _matches(name: str, pattern: str) -> bool:
    """As in mlcroissant: `*` matches any characters, also slashes."""
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))
