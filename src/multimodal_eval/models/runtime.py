"""The packages that run models without torch: onnxruntime and tokenizers, of the extra `[models]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import MissingPackageError, ModelError
from multimodal_eval.core.optional import check_installed, require

if TYPE_CHECKING:
    from multimodal_eval.models.source import Model

__all__ = ["PACKAGES", "check_runtime", "missing_runtime", "onnxruntime", "tokenizers"]


EXTRA = "models"
PACKAGES = ("onnxruntime", "tokenizers")
_PURPOSE = "a model"


def check_runtime(model: str) -> None:
    """Raise a `MissingPackageError` that names the extra if a package is not installed. Imports none."""
    check_installed(*PACKAGES, extra=EXTRA, purpose=f"the model {model!r}")


def missing_runtime(purpose: str) -> str | None:
    """What is missing and how to get it, for something that uses several models; None if all is here."""
    try:
        check_installed(*PACKAGES, extra=EXTRA, purpose=purpose)
    except MissingPackageError as missing:
        return str(missing)
    return None


def onnxruntime() -> Any:
    """The package onnxruntime."""
    return require("onnxruntime", extra=EXTRA, purpose=_PURPOSE)


def tokenizers() -> Any:
    """The package tokenizers."""
    return require("tokenizers", extra=EXTRA, purpose=_PURPOSE)


# Open a model's tokenizer.json with the tokenizers library.

FILE = "tokenizer.json"


def open_tokenizer(model: Model) -> Any:
    """The tokenizer of a model. A broken file is a ModelError: the library raises exceptions of every kind."""
    library = tokenizers()
    path = model.file(FILE)
    try:
        return library.Tokenizer.from_file(str(path))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as fault:  # noqa: BLE001 - the library raises nothing narrower, and a panic is not an Exception
        raise ModelError(f"{path} is not a tokenizer: {fault}") from None
