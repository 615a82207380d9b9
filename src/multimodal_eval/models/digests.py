"""sha256 of large files, taken once: remembered in `$MMEVAL_HOME/digests.json` by path, size and time of change."""

from __future__ import annotations

import json
import os
from hashlib import file_digest
from pathlib import Path

from multimodal_eval.resources.store import home


def sha256_of(*files: Path) -> list[str]:
    """The sha256 of each file."""
    place = home() / "digests.json"
    try:
        known: dict[str, str] = json.loads(place.read_text())
    except (OSError, ValueError):
        known = {}
    keys = [_key(file) for file in files]
    missing = {key: file for key, file in zip(keys, files, strict=True) if key not in known}
    for key, file in missing.items():
        with file.open("rb") as stream:
            known[key] = file_digest(stream, "sha256").hexdigest()
    if missing:
        _remember(known, place)
    return [known[key] for key in keys]


def _key(file: Path) -> str:
    stat = file.stat()
    return f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}"


def _remember(known: dict[str, str], place: Path) -> None:
    temporary = place.with_suffix(f".{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(known))
        temporary.replace(place)
    except OSError:  # they are only taken again next time
        return
