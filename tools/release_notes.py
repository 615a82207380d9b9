"""The section of CHANGELOG.md for a release, as the notes of that release.

    python -m tools.release_notes 0.2.0

Exits with 1 if there is no such section, or if it has no date and so is not released; `--draft` accepts it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
_TITLE = re.compile(r"^## (?P<version>\d+\.\d+\.\d+\S*) \((?P<date>[^)]*)\)$", re.MULTILINE)
_WRAPPED = re.compile(r"\n +(?=\S)(?![-*] )")


class NoNotesError(Exception):
    """CHANGELOG has no notes for the version."""


def release_notes(changelog: str, version: str, *, draft: bool = False) -> str:
    """The text between the title of the version and the next title, one line per entry."""
    titles = list(_TITLE.finditer(changelog))
    wanted = version.removeprefix("v")
    versions = [title["version"] for title in titles]
    if wanted not in versions:
        raise NoNotesError(f"CHANGELOG has no section for {wanted!r}. It has: {', '.join(versions)}")
    place = versions.index(wanted)
    title = titles[place]
    end = titles[place + 1].start() if place + 1 < len(titles) else len(changelog)
    if not draft and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", title["date"]):
        raise NoNotesError(f"the section of {wanted} has no date. Got {title['date']!r} instead; --draft prints it")
    notes = changelog[title.end() : end].strip()
    if not notes:
        raise NoNotesError(f"the section of {wanted} is empty")
    return _WRAPPED.sub(" ", notes) + "\n"  # the site that shows them breaks lines as they are written


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release_notes")
    parser.add_argument("version", help="such as 0.2.0 or v0.2.0")
    parser.add_argument("--draft", action="store_true", help="accept a section without a date")
    chosen = parser.parse_args(arguments)
    try:
        notes = release_notes(CHANGELOG.read_text(encoding="utf-8"), chosen.version, draft=chosen.draft)
    except NoNotesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
