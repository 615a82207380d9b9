"""The folder of a site: every file is complete at any time, and nothing that is not ours is touched.

`site.json` lists our files. It names the old and the new ones before the first is written, so that after a crash the
folder is still known to be ours. New files are written before old ones are replaced, and old pages that the new site
does not have are removed at the end, so that no link is ever broken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from multimodal_eval import __version__
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import to_json
from multimodal_eval.data.runs.storage import TEMPORARY, LocalStorage

__all__ = ["Files", "SiteFolder"]

LIST = "site.json"
FORMAT = 1
_SLUG = "[a-z0-9][a-z0-9_-]*"
_OURS = re.compile(
    rf"(?:index|methods)\.html|leaderboard\.(?:json|csv)"
    rf"|submissions/{_SLUG}/(?:(?:index|report)\.html|results\.(?:json|csv))"
)
_LEFTOVER = re.compile(rf"\.[0-9a-f]+{re.escape(TEMPORARY)}\Z")
Files = Mapping[str, Callable[[], bytes]]  # by name, in the order in which they are written
_ADVICE = "Name an empty or a new folder with --site"


class _List(msgspec.Struct, forbid_unknown_fields=True):
    """The content of site.json."""

    created_by: str
    format: int
    files: list[str]


class SiteFolder:
    """A folder that is empty, new, or a site of ours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._storage = LocalStorage(path, is_durable=False)
        self._old = self._checked()

    def _checked(self) -> set[str]:
        """The files of the site that is there; refuses a folder of something else."""
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file, not a folder for a site. {_ADVICE}")
        entries = [name for name in self._storage.names() if not name.startswith(".")]
        if not entries:
            return set()
        if LIST not in entries:
            raise ConfigError(f"{self.path} is not empty and not a site of mmeval: it has {entries[0]!r}. {_ADVICE}")
        try:
            listed = msgspec.json.decode(self._storage.read_bytes(LIST), type=_List)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ConfigError(f"{self.path / LIST} cannot be read: {error}. {_ADVICE}") from None
        if listed.format != FORMAT:
            raise ConfigError(
                f"{self.path / LIST} has format {listed.format}, and this version has {FORMAT}. {_ADVICE}"
            )
        return {name for name in listed.files if _OURS.fullmatch(name)}

    def write(self, files: Files, progress: Progress = silent) -> None:
        """Write the files, and remove those of the old site that are not among them.

        New files come first: when a page is replaced, what it links to is there.
        """
        new = files.keys() - self._old
        for name in sorted(new):
            if (self.path / name).exists():
                raise ConfigError(f"{self.path / name} is in the way: it is not part of the site. Move it elsewhere")
        for name in sorted(files.keys() | self._old):
            self._storage.place_to_change(name)  # refuses links before the first change
        self._storage.make()
        with self._storage.locked():
            self._list(self._old | new)
            for number, name in enumerate(sorted(files, key=lambda name: name not in new), 1):
                self._storage.write_bytes(name, files[name]())
                progress("writing the site", number, len(files))
            for name in sorted(self._old - files.keys()):
                self._remove(name)
            self._remove_leftovers()
            self._list(set(files))

    def _list(self, names: set[str]) -> None:
        content = _List(f"multimodal-eval {__version__}", FORMAT, sorted(names))
        self._storage.write_bytes(LIST, to_json(content))

    def _remove(self, name: str) -> None:
        with suppress(OSError):  # it is not linked to any more
            self._storage.remove(name)
            (self.path / name).parent.rmdir()  # only if nothing else is in it

    def _remove_leftovers(self) -> None:
        """Unfinished files of a process that was killed."""
        for name in self._storage.files():
            final = _LEFTOVER.sub("", name)
            if final != name and (final == LIST or _OURS.fullmatch(final)):
                self._storage.remove(name)
