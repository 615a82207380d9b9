"""Find a model by name: in the catalogue, in a directory, or among the models fetched from the Hugging Face hub.

Finding a model does not load it. A missing model is reported before a run starts; weights are opened on first use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal, NamedTuple, TypeVar

import msgspec

from multimodal_eval.core.errors import ModelError, UnavailableError
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.resources.catalogue import CATALOGUE, UNSAFE, WEIGHTS, Resource
from multimodal_eval.resources.hub import find_snapshot, hub_model, recorded_digests
from multimodal_eval.resources.store import folder_of, is_here, sha256_of

S = TypeVar("S", bound=msgspec.Struct)
CONFIG = "config.json"

# Other ways to run a model: `torch:NAME`, `NAME+int8`, `torch:NAME+bf16`, `torch:NAME+nvjpeg`.
TORCH, INT8, BF16, NVJPEG = "torch:", "+int8", "+bf16", "+nvjpeg"


class ModelName(NamedTuple):
    """The name of a model as a user writes it, in its parts."""

    base: str
    in_torch: bool  # the user wants torch; a model that onnxruntime cannot run needs it anyway
    number_format: Literal["float32", "int8", "bf16"]
    decoded_on_gpu: bool = False  # JPEG files, by nvJPEG

    @property
    def torch_format(self) -> Literal["float32", "bf16"]:
        """The number format in torch."""
        return "bf16" if self.number_format == "bf16" else "float32"

    def refuse_format(self, *, runs_in_torch: bool) -> None:
        """int8 is a format of onnxruntime here, and bf16 one of torch."""
        if self.number_format == "int8" and runs_in_torch:
            hint = f"Write {self.base}{INT8}" if self.in_torch else "onnxruntime cannot run this model"
            raise ModelError(f"the model {self.base!r} cannot be run as int8 in torch. {hint}")
        if self.number_format == "bf16" and not runs_in_torch:
            raise ModelError(
                f"the model {self.base!r} cannot be run as bf16 in onnxruntime. Write {TORCH}{self.base}{BF16}"
            )


def parse_name(name: str, *, sees_images: bool = False) -> ModelName:
    """Split `torch:NAME+bf16` into its parts, and `torch:NAME+bf16+nvjpeg` if the model sees images."""
    decoded_on_gpu = sees_images and name.startswith(TORCH) and name.endswith(NVJPEG)
    name = name.removesuffix(NVJPEG) if decoded_on_gpu else name
    number_format: Literal["float32", "int8", "bf16"] = (
        "int8" if name.endswith(INT8) else "bf16" if name.endswith(BF16) else "float32"
    )
    base = name.removeprefix(TORCH).removesuffix(INT8).removesuffix(BF16)
    return ModelName(base, name.startswith(TORCH), number_format, decoded_on_gpu)


@dataclass(frozen=True)
class Model:
    """A model's files. `revision` is a digest of their content, so a label identifies the exact weights."""

    name: str
    folder: Path
    revision: str
    resource: Resource | None = None  # the catalogue entry
    pinned: Mapping[str, str] = field(default_factory=dict, compare=False)  # the SHA-256 of each fetched file
    origin: str = ""  # the argument of `mmeval fetch`

    @property
    def label(self) -> str:
        """Name and revision, for signatures and for the cache."""
        return f"{self.name}@{self.revision}"

    def onnx_label(self, *, int8: bool) -> str:
        """The label of the model in onnxruntime: the number format is part of it if it is not float32."""
        return self.label + (INT8 if int8 else "")

    @property
    def family(self) -> str | None:
        """The kind of model that config.json names: "clip", "bert", "llama"."""
        return self.read(CONFIG, _Family).model_type

    @cached_property
    def weights(self) -> SafetensorsFile:
        """model.safetensors."""
        return SafetensorsFile(self.file("model.safetensors"))

    def check(self) -> None:
        """Raise an `UnavailableError` that says how to get the model if it is not on this machine."""
        if self.resource is not None and not is_here(self.resource):
            raise UnavailableError(f"{self.resource.about}: not on this machine. Get it with: mmeval fetch {self.name}")

    def file(self, name: str) -> Path:
        """The path of one of its files, which must exist."""
        self.check()
        path = self.folder / name
        if not path.is_file():
            raise ModelError(f"the model {self.name!r} has no file {name}: {self.folder}")
        self._verify(name, path)
        return path

    def _verify(self, name: str, path: Path) -> None:
        """Refuse a fetched file whose content is not that of the catalogue or of the manifest."""
        if name in self.pinned and sha256_of(path) != [self.pinned[name]]:
            raise ModelError(
                f"{path} has changed since it was fetched: its checksum differs. "
                f"Get it again with: mmeval fetch {self.origin}"
            )

    def verify(self) -> None:
        """Verify all its files, for a library that opens them itself."""
        self.check()
        for name in self.pinned:
            self.file(name)

    def json(self, name: str) -> dict[str, object]:
        """The content of one of its JSON files, which must hold an object."""
        path = self.file(name)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError, OSError) as fault:
            raise ModelError(f"{path} is not valid JSON: {fault}") from None
        if not isinstance(content, dict):
            raise ModelError(f"{path} must hold a JSON object. Got {type(content).__name__} instead.")
        return content

    def read(self, name: str, kind: type[S]) -> S:
        """One of its JSON files as a record. Settings that the record does not name are ignored."""
        content = self.json(name)
        for setting in msgspec.structs.fields(kind):
            if setting.required and setting.encode_name not in content:
                raise ModelError(f"the model {self.name!r} lacks the setting {setting.encode_name!r} in its {name}")
        return as_record(content, kind, str(self.folder / name))


def as_record(content: object, kind: type[S], place: str) -> S:
    """Convert JSON content to a record. If a setting has the wrong type, raise a `ModelError` that names the place."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as fault:
        raise ModelError(f"{place}: {fault}") from None


class _Family(msgspec.Struct, frozen=True):
    """The one setting that every config.json has."""

    model_type: str | None = None


def find_model(name: str) -> Model:
    """The model with that name: from the catalogue (`check` raises if it is missing), a directory, or the hub.

    Nothing is downloaded.
    """
    if name in CATALOGUE:
        resource = CATALOGUE[name]
        pinned = {file.name: file.sha256 for file in (*resource.files, *resource.derived)}
        return Model(name, folder_of(resource), resource.fingerprint, resource, pinned, name)
    folder = Path(name)
    if folder.is_dir():
        return Model(folder.resolve().name, folder, _digest_of_folder(folder))
    hub = hub_model(name)
    if hub is None:
        raise UnavailableError(
            f"no model is named {name!r}: it is neither a directory nor in the list of `mmeval ls resources`"
        )
    snapshot = find_snapshot(hub)
    if snapshot is None:
        raise UnavailableError(f"the model {hub.repository!r} is not on this machine. Get it with: mmeval fetch {hub}")
    recorded = recorded_digests(snapshot)
    digest = _digest_of_folder(snapshot.folder) if recorded is None else _digest_of(recorded)
    revision = f"{snapshot.commit[:8]}.{digest}"
    return Model(hub.repository, snapshot.folder, revision, pinned=recorded or {}, origin=str(hub))


def fetchable(name: str) -> tuple[str, ...]:
    """The arguments with which `mmeval fetch` gets the model. Empty for a directory."""
    name = parse_name(name, sees_images=True).base
    if name in CATALOGUE:
        return (name,)
    hub = None if Path(name).is_dir() else hub_model(name)
    return () if hub is None else (str(hub),)


def _digest_of_folder(folder: Path) -> str:
    """A digest of every file that may change a result.

    Documentation is left out, and so are pickles, which are never opened.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_ignored(path))
    if not any(path.suffix in WEIGHTS for path in files):
        unsafe = next((path.name for path in sorted(folder.rglob("*")) if path.suffix in UNSAFE), None)
        hint = f" {unsafe} may run code when it is opened. Convert it to safetensors." if unsafe else ""
        raise ModelError(f"{folder} has no weights in a supported format ({', '.join(WEIGHTS)}).{hint}")
    names = [path.relative_to(folder).as_posix() for path in files]
    return _digest_of(dict(zip(names, sha256_of(*files), strict=True)))


def _digest_of(files: Mapping[str, str]) -> str:
    """One digest of the digests of some files, by name."""
    lines = [f"{name} {files[name]}" for name in sorted(files) if not _is_ignored(PurePosixPath(name))]
    return sha256("\n".join(lines).encode()).hexdigest()[:8]


def _is_ignored(path: PurePath) -> bool:
    return path.suffix in (*UNSAFE, ".md") or path.name.startswith((".", "LICENSE", "NOTICE", "README"))
