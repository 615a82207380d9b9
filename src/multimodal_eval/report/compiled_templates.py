"""Compiled templates, kept next to the templates as Python keeps its compiled modules: in `__pycache__`.

Compiling the report's templates takes longer than filling them. As for modules, nothing is written if the folder is
not writable or if Python may not write bytecode, and PYTHONPYCACHEPREFIX names another folder. A process that
renders many pages compiles or reads each template once.

A wheel has them as modules, for one version of Jinja; with another one, they are compiled as above. The build of the
wheel runs this file with nothing but Jinja installed:

    python compiled_templates.py FOLDER
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2 import Environment
from jinja2.bccache import Bucket, BytecodeCache

__all__ = ["SETTINGS", "CompiledTemplates"]

# Not optimized: the optimizer would apply our filters to constants and store the result.
SETTINGS: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, "optimized": False}
_HERE = Path(__file__).parent
_SHIPPED = _HERE / "compiled"
_IN_MEMORY: dict[str, tuple[str, CodeType]] = {}  # path -> checksum and code


def _remember(bucket: Bucket) -> None:
    if bucket.key and bucket.code is not None:
        _IN_MEMORY[bucket.key] = bucket.checksum, bucket.code


class CompiledTemplates(BytecodeCache):
    """One file per template. `versions` are those of this package and of Jinja, `settings` those of the environment."""

    def __init__(self, versions: tuple[str, str], settings: object = SETTINGS) -> None:
        self._settings = f"{' '.join(versions)} {settings!r}\n"

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The path of the compiled template; empty if the template is not a file."""
        return "" if filename is None else cache_from_source(filename, optimization="jinja")

    def get_source_checksum(self, source: str) -> str:
        """A checksum of everything that the compiled template depends on."""
        return sha256((self._settings + source).encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read the file, if it exists; the bucket refuses one with another checksum."""
        checksum, code = _IN_MEMORY.get(bucket.key, ("", None))
        if code is not None and checksum == bucket.checksum:
            bucket.code = code
            return
        bucket.code = _shipped(bucket.checksum)
        if bucket.code is None:
            with suppress(OSError), Path(bucket.key).open("rb") as file:
                bucket.load_bytecode(file)
        _remember(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the file atomically."""
        _remember(bucket)
        if sys.dont_write_bytecode or not bucket.key:
            return
        path = Path(bucket.key)
        scratch = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with scratch.open("xb") as file:
                bucket.write_bytecode(file)
            scratch.replace(path)
        except OSError:  # a folder of the system: the template is compiled again next time
            with suppress(OSError):
                scratch.unlink(missing_ok=True)


def _module(checksum: str) -> str:
    return f"t{checksum[:32]}"


def _shipped(checksum: str) -> CodeType | None:
    """The code of the wheel; None if it has no such template."""
    path = _SHIPPED / f"{_module(checksum)}.py"
    return SourceFileLoader(_module(checksum), str(path)).get_code(_module(checksum)) if path.exists() else None


class _AnyFilter(dict[str, Callable[..., Any]]):
    """Jinja's filters, and ours by any name: plain functions, which are looked up when a template is filled."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, str)


def compile_all(folder: Path) -> None:
    """Write all templates of this package as modules."""
    from importlib.metadata import version

    text = (_HERE.parent / "__init__.py").read_text(encoding="utf-8")
    (release,) = re.findall(r'^__version__ = "(.+)"', text, re.MULTILINE)
    cache = CompiledTemplates((release, version("jinja2")))
    environment = Environment(**SETTINGS)
    environment.filters = _AnyFilter(environment.filters)
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(_HERE.rglob("*.j2")):
        source = path.read_text(encoding="utf-8")
        code = environment.compile(source, path.name, path.name, raw=True)
        name = f"{_module(cache.get_source_checksum(source))}.py"
        (folder / name).write_text(code, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]))
