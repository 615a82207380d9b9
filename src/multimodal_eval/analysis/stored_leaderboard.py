"""A leaderboard that was ranked before, read back from the folder of its runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from multimodal_eval.analysis.leaderboard import RESULT, Leaderboard
from multimodal_eval.core.errors import MissingFileError, RunFolderError
from multimodal_eval.data.runs.storage import Location, storage_at

__all__ = ["read_leaderboard"]


def read_leaderboard(location: Location) -> Leaderboard:
    """The leaderboard of the runs in a folder.

    Names in the file become paths, so that a name that leads out of the folder is refused.
    """
    storage = storage_at(location)
    try:
        content = storage.read_bytes(RESULT)
    except (MissingFileError, NotADirectoryError):
        advice = "Name the folder that `mmeval leaderboard` has written (-o)"
        raise RunFolderError(f"{storage.label} has no {RESULT}. {advice}") from None
    file = f"{storage.label}/{RESULT}"
    try:
        board = msgspec.json.decode(content, type=Leaderboard)
    except (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError) as error:
        raise RunFolderError(f"{file} cannot be read: {error}. Rank the submissions again") from None
    if not board.standings:
        raise RunFolderError(f"{file} ranks no submission. Rank the submissions again")
    _require_names([row.name for row in board.standings], file)
    return board


def _require_names(names: Iterable[str], file: str) -> None:
    seen = set[str]()
    for name in names:
        if name in ("", "..") or "\0" in name or Path(name).name != name:
            raise RunFolderError(f"{file} names {name!r}, which is not the name of a run folder beside it")
        if name in seen:
            raise RunFolderError(f"{file} names {name!r} twice. Rank the submissions again")
        seen.add(name)
