"""Optional packages: imported on use, with an error that names the extra."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from multimodal_eval.core.errors import UnavailableError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """The module, or an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as missing:
        raise UnavailableError(
            f"{purpose} needs the package {module!r}, which is not installed. "
            f"Install it with: pip install 'multimodal-eval[{extra}]'"
        ) from missing
