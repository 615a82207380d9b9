"""What a folder in the layout of transformers may say, checked before the library opens it.

transformers runs none of the folder's code (`trust_remote_code=False`, so that `auto_map` is ignored), downloads
nothing for it (`local_files_only=True`) and opens only safetensors (`use_safetensors=True`). Some settings of a folder
get around that: they name a kernel of the hub, other weights, another model or a file elsewhere. Those are refused
here, and so are pickles, adapters, and links that lead out of the folder. The rest are numbers, names of classes of
transformers, tokens, and a chat template, which the library renders in Jinja's sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from multimodal_eval.core.errors import ModelError, shorten
from multimodal_eval.core.optional import require
from multimodal_eval.models.source import Model
from multimodal_eval.resources.catalogue import UNSAFE, WEIGHTS

__all__ = ["check_folder", "check_settings", "transformers_for"]

_CONFIGS = "*config*.json"  # config, generation_config, tokenizer_config, (pre)processor_config, …
_TEMPLATES = "additional_chat_templates"  # the only folder below that transformers reads
_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_ADAPTER = "adapter_config.json"
_OTHER_MODEL = "names another model"
_OTHER_WEIGHTS = "names other weights"
_OTHER_FILES = "names other files, which are read in place of those that are checked"
_REFUSED = {
    "audio_tokenizer": _OTHER_MODEL,
    "audio_tokenizer_name_or_path": _OTHER_MODEL,
    "base_model_name_or_path": _OTHER_MODEL,
    "checkpoint_path": _OTHER_WEIGHTS,
    "configuration_files": _OTHER_FILES,
    "fast_tokenizer_files": _OTHER_FILES,
    "fusion_config": "replaces layers of the model",
    "pretrained": _OTHER_WEIGHTS,
    "pretrained_cfg": _OTHER_WEIGHTS,
    "pretrained_cfg_overlay": _OTHER_WEIGHTS,
    "quantization_config": "needs code and kernels of other packages",
    "transformers_weights": _OTHER_WEIGHTS,
    "use_pretrained_backbone": _OTHER_WEIGHTS,
}
_IMPLEMENTATIONS = ("attn_implementation", "experts_implementation")  # the end of a key
_OWN_IMPLEMENTATIONS = ("eager", "sdpa", "flex_attention", "grouped_mm", "batched_mm")  # those of torch
_PATHS = ("_file", "_files", "_path", "_dir", "_folder")  # the end of a key
_FETCHED = ("hf-hub:", "hf_hub:", "local-dir:")  # the start of an architecture that timm looks for elsewhere


def transformers_for(model: Model, purpose: str) -> ModuleType:
    """The library, for a model whose folder is checked.

    Some of its classes fetch kernels of a list of its own if the package `kernels` is installed. They run without, as
    nothing is downloaded unasked, unless the user sets USE_HUB_KERNELS.
    """
    check_folder(model)
    os.environ.setdefault("USE_HUB_KERNELS", "0")
    return require("transformers", extra="torch", purpose=purpose)


def check_folder(model: Model) -> None:
    """Refuse a folder that could make transformers load code, kernels, weights or files from elsewhere, or a pickle.

    The files of the catalogue's models are known by their checksums.
    """
    if model.resource is None:
        check_settings(model, ("", _TEMPLATES))
        _check_weights(model)


def check_settings(model: Model, folders: Sequence[str]) -> None:
    """Refuse links out of the folder, and settings that name something outside of it; `folders` are those below it."""
    below = [model.folder / name for name in folders]
    _check_links(model.folder, sorted(path for folder in below for path in folder.glob("*")))
    for path in sorted(path for folder in below for path in folder.glob(_CONFIGS)):
        if path.name == _ADAPTER:
            raise ModelError(f"{path} makes the folder an adapter of another model. Merge it into that model first")
        for key, value in _settings(model.json(path.relative_to(model.folder).as_posix())):
            if (fault := _fault(key, value, model.folder)) is not None:
                raise ModelError(f"{path}: the setting {key!r} is refused: it {fault}. Got {shorten(value)}")


def _settings(content: object) -> Iterator[tuple[str, object]]:
    """The keys and values of an object and of all objects in it."""
    waiting = [content]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield from each.items()
        if isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each


def _fault(key: str, value: object, folder: Path) -> str | None:
    """What a setting does that it must not."""
    if key in _REFUSED:
        return f"{_REFUSED[key]}. Use a model without it" if value else None
    if key.endswith(_IMPLEMENTATIONS) and (
        others := [name for name in _texts(value) if name not in _OWN_IMPLEMENTATIONS]
    ):
        return f"names an implementation, {others[0]!r}, that may be a kernel of the hub. Remove it from the file"
    if isinstance(value, str) and value.startswith(_FETCHED):
        return "names a model of the hub or of another folder"
    if key.endswith(_PATHS) and not key.endswith("_name_or_path"):
        outside = next((name for name in _texts(value) if _is_outside(name, folder)), None)
        return None if outside is None else "names a file of this machine that is not in the folder of the model"
    return None


def _texts(value: object) -> list[str]:
    """A text, or the texts in a list or in the values of an object."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]


def _is_outside(name: str, folder: Path) -> bool:
    """Whether a name, as seen from here or from the folder, is an existing file elsewhere. Stale names are common."""
    try:
        return any(path.is_file() and not _is_in(path, folder) for path in (Path(name), folder / name))
    except (OSError, ValueError):  # too long for a name, or with a character that no name has
        return False


def _is_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _check_links(folder: Path, paths: Iterable[Path]) -> None:
    """Links to weights are followed, as they are only data, and so are those of the hub's cache to its own files."""
    snapshot = folder.resolve()
    blobs = snapshot.parent.parent / "blobs" if snapshot.parent.name == "snapshots" else snapshot
    for path in paths:
        if path.is_symlink() and path.suffix not in WEIGHTS and not (_is_in(path, folder) or _is_in(path, blobs)):
            raise ModelError(f"{path} is a link to {path.resolve()}, which is not in the folder. Copy the file")


def _check_weights(model: Model) -> None:
    """Weights must be safetensors: one file, or several that an index names."""
    folder = model.folder
    if (folder / _INDEX).is_file():
        named = model.json(_INDEX).get("weight_map")
        if not isinstance(named, dict):
            raise ModelError(f"{folder / _INDEX} must have an object `weight_map`. Got {shorten(named)} instead.")
        for name in named.values():
            if not isinstance(name, str) or not name.endswith(".safetensors") or {"/", "\\"} & {*name}:
                got = f"Got {shorten(name)} instead."
                raise ModelError(f"{folder / _INDEX} must name files *.safetensors in its folder. {got}")
    elif not (folder / _SINGLE).is_file():
        pickle = next((path for path in sorted(folder.iterdir()) if path.suffix in UNSAFE), None)
        if pickle is None:
            raise ModelError(f"{folder} has neither {_SINGLE} nor {_INDEX}")
        raise ModelError(
            f"{pickle} may run code when it is opened, and is not loaded. Convert the weights to {_SINGLE}, with "
            "`save_pretrained` of transformers where you trust the file"
        )
