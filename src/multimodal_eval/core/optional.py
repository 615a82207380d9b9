"""Optional packages: imported on use, with an error that names the extra."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from multimodal_eval.core.errors import MissingPackageError

__all__ = ["check_installed", "require"]


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """The module, or an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as missing:
        raise _missing(module, extra, purpose) from missing


def check_installed(*modules: str, extra: str, purpose: str) -> None:
    """The same error for the first module that is missing. Imports nothing."""
    for module in modules:
        if find_spec(module) is None:
            raise _missing(module, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> MissingPackageError:
    return MissingPackageError(
        f"{purpose} needs the package {module!r}, which is not installed. "
        f"Install it with: pip install 'multimodal-eval[{extra}]'"
    )
