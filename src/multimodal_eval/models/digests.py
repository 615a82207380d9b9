"""SHA-256 of large files, computed once: `$MMEVAL_HOME/digests.json` keeps them by path, size and modification time."""

from __future__ import annotations

import json
import os
from hashlib import file_digest
from pathlib import Path

from multimodal_eval.resources.store import home


def sha256_of(*files: Path) -> list[str]:
    """The SHA-256 of each file."""
    path = home() / "digests.json"
    try:
        known: dict[str, str] = json.loads(path.read_text())
    except (OSError, ValueError):
        known = {}
    keys = [_key(file) for file in files]
    missing = {key: file for key, file in zip(keys, files, strict=True) if key not in known}
    for key, file in missing.items():
        with file.open("rb") as stream:
            known[key] = file_digest(stream, "sha256").hexdigest()
    if missing:
        _store(known, path)
    return [known[key] for key in keys]


def _key(file: Path) -> str:
    stat = file.stat()
    return f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}"


def _store(known: dict[str, str], path: Path) -> None:
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(known))
        temporary.replace(path)
    except OSError:  # the digests are computed again next time
        return
