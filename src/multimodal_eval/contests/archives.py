"""Members of submitted zip files, read into memory with a limit; nothing is unpacked to disk."""

from __future__ import annotations

import zipfile
import zlib

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers.problems import Problems


def member_content(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: str, problems: Problems, *, most: int, what: str, how: str
) -> bytes | None:
    """The bytes of a member; a problem is noted and None returned if there are more than `most` or none can be read.

    The size that an archive declares may be wrong, so reading stops at the limit too. `what` names the content, `how`
    says how to make the archive.
    """
    if member.flag_bits & 0x1:
        problems.add("FORMAT", f"{shorten(member.filename)} is encrypted", file=file, hint="Zip it without a password.")
        return None
    try:
        with archive.open(member) as stream:
            content = b"" if member.file_size > most else stream.read(most + 1)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, zlib.error) as error:
        problems.add("TRUNCATED", f"{shorten(member.filename)} cannot be read: {error}", file=file, hint=f"{how}.")
        return None
    if member.file_size > most or len(content) > most:
        message = f"{shorten(member.filename)} is larger than {most >> 20} MB unpacked, too large for {what}"
        problems.add("TOO_LONG", message, file=file)
        return None
    return content
