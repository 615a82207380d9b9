"""The section of CHANGELOG.md for a release, as the notes of that release.

    python -m tools.release_notes 0.2.0
    python -m tools.release_notes 0.3.0 --join     # first moves the files of changes/ into the section

Exits with 1 if there is no such section, or if it has no date and so is not released; `--draft` accepts it.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
CHANGES = CHANGELOG.with_name("changes")
KINDS = ("added", "changed", "fixed", "removed")
_entry = textwrap.TextWrapper(
    150, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
)
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


def fragments() -> dict[Path, str]:
    """The files of changes/, NAME.KIND.md, and their kinds."""
    kinds = {path: path.name.removesuffix(".md").rpartition(".")[2] for path in sorted(CHANGES.glob("*.md"))}
    kinds.pop(CHANGES / "README.md", None)
    for path, kind in kinds.items():
        if kind not in KINDS:
            raise NoNotesError(f"{path.name} must be named NAME.KIND.md, where KIND is one of {', '.join(KINDS)}")
    return kinds


def joined(changelog: str, version: str, entries: Mapping[str, Iterable[str]]) -> str:
    """The changelog with the entries of each kind at the end of the section's part of that kind."""
    titles = list(_TITLE.finditer(changelog))
    if version not in [title["version"] for title in titles]:
        start = titles[0].start()
        return joined(f"{changelog[:start]}## {version} (unreleased)\n\n{changelog[start:]}", version, entries)
    place = next(place for place, title in enumerate(titles) if title["version"] == version)
    head = titles[place].end()
    end = titles[place + 1].start() if place + 1 < len(titles) else len(changelog)
    pieces = re.split(r"^### (\w+)\n", changelog[head:end], flags=re.MULTILINE)
    parts = dict(zip(map(str.lower, pieces[1::2]), pieces[2::2], strict=True))
    for kind, texts in entries.items():
        lines = [_entry.fill(" ".join(text.split())) for text in texts]
        parts[kind] = "\n".join(filter(None, [parts.get(kind, "").strip(), *lines])) + "\n\n"
    body = "".join(f"### {kind.capitalize()}\n\n{parts[kind].lstrip()}" for kind in KINDS if kind in parts)
    return (
        changelog[:head] + "\n\n" + (pieces[0].strip() + "\n\n" if pieces[0].strip() else "") + body + changelog[end:]
    )


def join(version: str) -> None:
    """Move the files of changes/ into the section of the version."""
    entries: dict[str, list[str]] = {}
    files = fragments()
    for path, kind in files.items():
        entries.setdefault(kind, []).append(path.read_text(encoding="utf-8"))
    changelog = joined(CHANGELOG.read_text(encoding="utf-8"), version, entries)
    CHANGELOG.write_text(changelog, encoding="utf-8")
    for path in files:
        path.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release_notes")
    parser.add_argument("version", help="such as 0.2.0 or v0.2.0")
    parser.add_argument("--draft", action="store_true", help="accept a section without a date")
    parser.add_argument("--join", action="store_true", help="first move the files of changes/ into the section")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.join:
            join(chosen.version)
        notes = release_notes(CHANGELOG.read_text(encoding="utf-8"), chosen.version, draft=chosen.draft)
    except NoNotesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
