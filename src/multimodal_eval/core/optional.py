"""Optional packages: imported on use, with an error that names the extra."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from types import ModuleType

from multimodal_eval.core.errors import MissingPackageError

__all__ = ["check_installed", "expect", "import_expected", "require"]

_expected: list[str] = []


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


def expect(module: str) -> None:
    """Note a module that takes seconds to import and will be needed."""
    _expected.append(module)


def import_expected() -> None:
    """Start to import what is expected, in a thread. Called when this process is going to wait for others."""
    modules = list(dict.fromkeys(_expected))
    _expected.clear()
    if modules:
        Thread(target=_import, args=(modules,), name="imports").start()


def _import(modules: list[str]) -> None:
    for module in modules:
        with suppress(Exception):  # `require` raises it
            import_module(module)


def _missing(module: str, extra: str, purpose: str) -> MissingPackageError:
    return MissingPackageError(
        f"{purpose} needs the package {module!r}, which is not installed. "
        f"Install it with: pip install 'multimodal-eval[{extra}]'"
    )
