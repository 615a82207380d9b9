"""The Jinja environment of report and viewer: everything is escaped, and all pages format numbers the same way."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket, BytecodeCache
from markupsafe import Markup, escape
from msgspec import to_builtins

from multimodal_eval import __version__
from multimodal_eval.core.display import DASH, p_value
from multimodal_eval.core.machine import package_version
from multimodal_eval.display.plain_text import as_html, codes_marked, shortened, visible
from multimodal_eval.display.wording import counted
from multimodal_eval.report.highlight import Span, both_ends

# Compiled templates, kept next to the templates as Python keeps its compiled modules: in `__pycache__`.
#
# Compiling the report's templates takes longer than filling them. As for modules, nothing is written if the folder is
# not writable or if Python may not write bytecode, and PYTHONPYCACHEPREFIX names another folder. A process that
# renders many pages compiles or reads each template once.


_IN_MEMORY: dict[str, tuple[str, CodeType]] = {}  # path -> checksum and code


def _remember(bucket: Bucket) -> None:
    if bucket.key and bucket.code is not None:
        _IN_MEMORY[bucket.key] = bucket.checksum, bucket.code


class CompiledTemplates(BytecodeCache):
    """One file per template. `settings` are those of the environment that change the compiled code."""

    def __init__(self, settings: object) -> None:
        self._versions = f"{__version__} {package_version('jinja2')} {settings!r}\n"

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The path of the compiled template; empty if the template is not a file."""
        return "" if filename is None else cache_from_source(filename, optimization="jinja")

    def get_source_checksum(self, source: str) -> str:
        """A checksum of everything that the compiled template depends on."""
        return sha256((self._versions + source).encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read the file, if it exists; the bucket refuses one with another checksum."""
        checksum, code = _IN_MEMORY.get(bucket.key, ("", None))
        if code is not None and checksum == bucket.checksum:
            bucket.code = code
            return
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


_SHARED = Path(__file__).parent / "templates"
# Not optimized: the optimizer would apply our filters to constants and store the result.
_SETTINGS: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, "optimized": False}


def templates(folder: Path) -> Environment:
    """The templates of a folder and of the report. An undefined variable is an error."""
    environment = Environment(
        loader=FileSystemLoader([folder, _SHARED]),
        bytecode_cache=CompiledTemplates(_SETTINGS),
        undefined=StrictUndefined,
        **_SETTINGS,
    )
    environment.filters |= {
        "text": as_html,
        "plain": lambda value: visible(shortened(str(value), 200)),
        "number": number,
        "signed": lambda value: DASH if value is None else f"{value:+.4f}",
        "interval": interval,
        "fields": to_builtins,  # of a record, without default values
        "percent": lambda value: DASH if value is None else f"{100 * value:.1f}%",
        "count": lambda value: DASH if value is None else f"{value:,}",
        "spans": spans,
        "counted": counted,
        "p": p_value,
    }
    return environment


def number(value: float | None) -> str:
    """Four decimals. A value that rounds to zero has no sign."""
    return DASH if value is None else f"{round(value, 4) + 0.0:,.4f}"


def interval(entry: Any) -> str:
    """low … high, from a record or a JSON object."""
    low, high = (entry["low"], entry["high"]) if isinstance(entry, dict) else (entry.low, entry.high)
    return DASH if low is None else f"{number(low)} … {number(high)}"


def spans(pieces: list[Span], longest: int | None = None) -> Markup:
    """Marked text, or its ends with `longest` characters: words that texts share, and words that only this text has."""
    shown = [
        f'<mark class="{escape(span.mark)}">{codes_marked(span.text)}</mark>' if span.mark else codes_marked(span.text)
        for span in (pieces if longest is None else both_ends(pieces, longest))
    ]
    return Markup(f"<bdi>{''.join(shown)}</bdi>")  # `codes_marked` escapes
