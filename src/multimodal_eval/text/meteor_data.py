"""METEOR 1.5's word lists and paraphrases in one memory-mapped file, built once from the files of `mmeval fetch`.

The original program reads 272 MB of text at every start, which takes seconds and over a gigabyte of memory. The mapped
file opens in milliseconds, and only the pages in use are read.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from uuid import uuid4

from multimodal_eval._native import Meteor15, MeteorDataBuilder
from multimodal_eval.core.errors import ConfigError, FetchError, UnavailableError
from multimodal_eval.resources.catalogue import Resource, get_resource
from multimodal_eval.resources.store import resource_file, sha256_of, verify

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

TABLE = "meteor-1.table"  # the number is the version of the layout: another version gets another file
LANGUAGES = ("en", "ru")
# Denkowski and Lavie's parameters for ranking: for English, and for languages without tuned ones.
_PARAMETERS = {
    "en": (0.85, 0.20, 0.60, 0.75, 1.0, 0.6, 0.8, 0.6),
    "ru": (0.75, 1.40, 0.70, 0.50, 1.0, 0.5, 0.0, 0.5),
}
_CHUNK = 1 << 20
_opening = Lock()  # only one thread builds a missing table


def resource_name(language: str) -> str:
    """The name of the resource with a language's data."""
    if language not in LANGUAGES:
        raise ConfigError(f"the option `language` must be one of {', '.join(LANGUAGES)}. Got {language!r} instead.")
    return f"meteor-1.5-{language}"


def parameters(language: str) -> Vector:
    """alpha, beta, gamma, delta, then the weights of the modules exact, stem, synonym, paraphrase."""
    import numpy as np

    return np.array(_PARAMETERS[language])


def open_program(language: str, stemmer: str) -> Meteor15:
    """METEOR 1.5 with its data, opened once per process. The table's checksum is verified once per file."""
    folder = resource_file(resource_name(language), TABLE).parent
    with _opening:
        return _open(str(folder), language, stemmer)


@cache
def _open(folder: str, language: str, stemmer: str) -> Meteor15:
    import numpy as np

    resource, place = get_resource(resource_name(language)), Path(folder)
    (table,) = resource.derived
    if not (place / table.name).is_file() or sha256_of(place / table.name) != [table.sha256]:
        _rebuild(resource, place)  # from the fetched files
    mapped = np.memmap(place / table.name, dtype=np.uint8, mode="r")
    return Meteor15(mapped, stemmer, language != "en", parameters(language))


def _rebuild(resource: Resource, folder: Path) -> None:
    try:
        (folder / TABLE).unlink(missing_ok=True)
        verify(resource, folder)
        prepare(folder)
        verify(resource, folder)
    except (FetchError, OSError, EOFError, RuntimeError, zlib.error) as failure:
        reason = str(failure).removesuffix(".")
        raise UnavailableError(
            f"METEOR's data in {folder} cannot be used: {reason}. Remove the folder and fetch the data again with: "
            f"mmeval fetch {resource.name}"
        ) from None


def prepare(folder: Path, progress: Callable[[str, int, int], None] = lambda name, done, total: None) -> None:
    """Build the table from the files in a folder. An interrupted attempt leaves no table."""
    builder = MeteorDataBuilder()
    adders = {
        "words": builder.add_function_words,
        "synsets": builder.add_synsets,
        "exceptions": builder.add_exceptions,
        "prefixes": builder.add_prefixes,
    }
    for suffix, add in adders.items():
        for file in folder.glob(f"*.{suffix}"):
            add(file.read_bytes())
    for packed in folder.glob("paraphrase-*.gz"):
        size = packed.stat().st_size
        with packed.open("rb") as stream, gzip.GzipFile(fileobj=stream) as lines:
            while chunk := lines.read(_CHUNK):
                builder.add_paraphrases(chunk)
                progress("sorting paraphrases", stream.tell(), size)
    content = builder.finish()
    scratch = folder / f".{TABLE}-{uuid4().hex}"
    try:
        with scratch.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(folder / TABLE)
    finally:
        scratch.unlink(missing_ok=True)
