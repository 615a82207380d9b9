"""Zip archives with the same bytes for the same content."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from multimodal_eval.core.errors import ConfigError

_DATE = (2026, 1, 1, 0, 0, 0)
_SIZE = 128  # pixels of the logo
_COLOUR = (36, 84, 164)


Files = Mapping[str, bytes | Path]  # name -> content, or a file to read


def write_archive(target: Path | IO[bytes], files: Files) -> None:
    """Write an archive with these files, one after the other."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content.read_bytes() if isinstance(content, Path) else content)


def zipped(files: Files) -> bytes:
    """An archive inside another one."""
    buffer = io.BytesIO()
    write_archive(buffer, files)
    return buffer.getvalue()


def packages_in(folder: str | None) -> Iterator[tuple[str, Path]]:
    """(name, path) of the installed packages that a scoring program carries, below `packages/`."""
    if folder is None:
        return
    root = Path(folder)
    if not (root / "multimodal_eval").is_dir():
        raise ConfigError(
            f"`packages`: {folder} has no multimodal_eval. "
            f"Create it with: pip install --target {folder} multimodal-eval"
        )
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"packages/{path.relative_to(root).as_posix()}", path


def logo() -> bytes:
    """A square of one colour as PNG: platforms ask for an image."""
    row = b"\0" + bytes(_COLOUR) * _SIZE
    header = struct.pack(">IIBBBBB", _SIZE, _SIZE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(row * _SIZE)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
