"""Names of submissions as names of folders, which are safe on every file host.

A name is anything a participant could write: a path, another script, `CON`, or the same as another in capital letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from hashlib import sha256

from multimodal_eval.core.system_files import DEVICE

__all__ = ["slugs_of"]

LONGEST = 40  # characters of a name that are kept
_DIGEST = 10  # hexadecimal digits
_PLAIN = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{LONGEST - 1}}}")
_WITH_DIGEST = re.compile(rf".*-[0-9a-f]{{{_DIGEST}}}[0-9a-f]*")


def slugs_of(names: Iterable[str]) -> dict[str, str]:
    """A folder name for each name. It depends on the other names only if two digests are equal.

    A plain name of small letters, digits, hyphens and underscores stays as it is. Any other is shortened to what is
    plain in it, and gets a digest, so that the address of a page does not change when a submission is added.
    """
    slugs: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        slug = _slug(name, _DIGEST)
        if slug in taken:
            slug = _slug(name, 64)
        taken.add(slug)
        slugs[name] = slug
    return slugs


def _slug(name: str, digits: int) -> str:
    if _PLAIN.fullmatch(name) and not DEVICE.fullmatch(name) and not _WITH_DIGEST.fullmatch(name):
        return name
    ascii_letters = unicodedata.normalize("NFKD", name[: 4 * LONGEST]).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_letters.lower()).strip("-")[:LONGEST].strip("-")
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{words or 'submission'}-{digest}"
