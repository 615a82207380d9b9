"""Where the files of a submission come from: two files, a folder, or a zip with both."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from multimodal_eval.contests.archives import member_content, read_archive
from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers.problems import Problems

OUTPUT, PERPLEXITIES = "output.json", "ppl_output.json"
MAX_BYTES = 1 << 28  # of answers or perplexities
HOW = f"Make it with: zip submission.zip {OUTPUT} {PERPLEXITIES}"


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a zip, in memory."""

    archive: Path
    name: str
    content: bytes

    def __str__(self) -> str:
        return f"{self.archive}/{self.name}"


Source = Path | Member


def is_zip(path: Path) -> bool:
    """Whether a submission is a zip, by its name."""
    return path.suffix.lower() == ".zip"


def holds_both(path: Path) -> bool:
    """Whether a path can hold both files: a folder or a zip."""
    return is_zip(path) or path.is_dir()


def both_files(path: Path, problems: Problems) -> tuple[Source, Source] | None:
    """The answers and the perplexities in a folder or a zip; None if the zip has problems, which are noted."""
    if not is_zip(path):
        return path / OUTPUT, path / PERPLEXITIES
    if not path.is_file():
        problems.add("NOT_FOUND", "no such file", file=str(path))
        return None
    members = read_archive(
        path, lambda archive: [_member(archive, name, path, problems) for name in (OUTPUT, PERPLEXITIES)], problems, HOW
    )
    answers, perplexities = members or (None, None)
    return None if answers is None or perplexities is None else (answers, perplexities)


def _member(archive: zipfile.ZipFile, name: str, path: Path, problems: Problems) -> Member | None:
    """The only file with that name, in the archive itself or in a folder of it."""
    files = [member for member in archive.infolist() if not member.is_dir() and not _is_hidden(member.filename)]
    matching = [member for member in files if member.filename.rpartition("/")[2] == name]
    if len(matching) != 1:
        count = f"{len(matching)} files" if matching else "no file"
        shown = ", ".join(shorten(member.filename) for member in (matching or files)[:5]) or "nothing"
        message = f"the archive must contain one file {name!r}. Got {count} with that name: {shown}."
        problems.add("MEMBER", message, file=str(path), hint=f"{HOW}.")
        return None
    content = member_content(archive, matching[0], str(path), problems, most=MAX_BYTES, what="a submission", how=HOW)
    return None if content is None else Member(path, matching[0].filename, content)


def _is_hidden(name: str) -> bool:
    """Files that file managers add, such as __MACOSX/._output.json."""
    return any(part.startswith((".", "__")) for part in name.split("/"))
