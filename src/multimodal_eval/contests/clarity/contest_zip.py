"""The contest's upload: a zip that holds one file `prediction`, one label a line in the order of the rows."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from multimodal_eval.core.errors import InputError, shorten
from multimodal_eval.data.readers.blocks import BOM, refuse_utf16
from multimodal_eval.data.readers.problems import Problems

MEMBER = "prediction"
LARGEST = 1 << 24  # bytes of labels: over half a million rows, where the contest has hundreds
MOST_MEMBERS = 1000  # a list of names to look through, not a memory to fill
HOW = f"Make it with: zip submission.zip {MEMBER}"


def read_contest_zip(path: Path, problems: Problems) -> list[tuple[int, str]]:
    """(line, label) of every line, blank ones with an empty label; what is wrong with the archive is noted.

    Nothing is unpacked to the disk, and no more than `LARGEST` bytes into the memory, whatever the archive says.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            member = _only_member(archive, str(path), problems)
            content = None if member is None else _content(archive, member, str(path), problems)
    except zipfile.BadZipFile as fault:
        problems.add("FORMAT", f"not a readable zip file: {fault}", file=str(path), hint=HOW + ".")
        return []
    return [] if content is None else _lines(content, f"{path}/{member.filename if member else MEMBER}", problems)


def _only_member(archive: zipfile.ZipFile, file: str, problems: Problems) -> zipfile.ZipInfo | None:
    """The one file that the archive may hold; under a wrong name it is still looked into."""
    found = archive.infolist()[:MOST_MEMBERS]
    members = [member for member in found if not member.is_dir()]
    right = [member for member in members if member.filename == MEMBER]
    if not members:
        problems.add("MEMBER", f"the archive is empty; it must hold the file {MEMBER!r}.", file=file, hint=HOW + ".")
        return None
    if len(found) > 1:
        others = [member.filename for member in found if member not in right[:1]]
        shown = ", ".join(shorten(name) for name in others[:5])
        told = (
            f"{len(archive.infolist()):,} entries" if right else f"{len(archive.infolist()):,} entries, none so named"
        )
        message = f"the archive must hold one file, {MEMBER!r}, and holds {told}: besides, {shown}."
        if not right:
            message = f"the archive must hold one file, {MEMBER!r}, and holds {told}: {shown}."
        problems.add("MEMBER", message, file=file, hint=HOW + ".")
        return right[0] if right else None
    if not right:
        message = f"the file in the archive must be named {MEMBER!r}. Got {shorten(members[0].filename)} instead."
        problems.add("MEMBER", message, file=file, hint=_why(members[0].filename))
    return members[0]


def _why(name: str) -> str:
    stem = name.rpartition("/")[2]
    if stem == MEMBER:
        return f"It must not lie in a folder. {HOW}, from within that folder."
    if stem.partition(".")[0] == MEMBER:
        return f"The name has no extension. {HOW}."
    return f"{HOW}."


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: str, problems: Problems) -> bytes | None:
    """The member's bytes. The size that an archive declares may be a lie: reading stops at the cap as well."""
    if member.flag_bits & 0x1:
        problems.add("FORMAT", f"{shorten(member.filename)} is encrypted", file=file, hint="Zip it without a password.")
        return None
    try:
        with archive.open(member) as stream:
            content = b"" if member.file_size > LARGEST else stream.read(LARGEST + 1)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, zlib.error) as fault:
        problems.add("TRUNCATED", f"{shorten(member.filename)} cannot be read: {fault}", file=file, hint=HOW + ".")
        return None
    if member.file_size > LARGEST or len(content) > LARGEST:
        message = f"{shorten(member.filename)} is larger than {LARGEST >> 20} MB unpacked, which no list of labels is"
        problems.add("TOO_LONG", message, file=file)
        return None
    return content


def _lines(content: bytes, file: str, problems: Problems) -> list[tuple[int, str]]:
    try:
        refuse_utf16(content, file)
        text = content.removeprefix(BOM).decode()
    except UnicodeDecodeError as bad:
        at = bad.start + (len(BOM) if content.startswith(BOM) else 0)
        problems.add("ENCODING", f"byte {at} of the file is no valid UTF-8", file=file)
        return []
    except InputError as refusal:
        for problem in refusal.problems:
            problems.add(problem.code, problem.message, file=file, hint=problem.hint)
        return []
    lines = text.split("\n")
    if not lines[-1].strip():  # what stands behind the last newline
        lines.pop()
    if not lines:
        problems.add("EMPTY", "the file has no lines", file=file)
    return list(enumerate((line.strip() for line in lines), 1))
