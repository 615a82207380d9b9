"""The packages that run models without torch: onnxruntime and tokenizers, of the extra `[models]`."""

from __future__ import annotations

from typing import Any

from multimodal_eval.core.errors import MissingPackageError
from multimodal_eval.core.optional import check_installed, require

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
