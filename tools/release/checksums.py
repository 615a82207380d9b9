"""SHA256SUMS: one line per file of a release, which `sha256sum -c` reads.

python -m tools.release.checksums dist
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

NAME = "SHA256SUMS"


def checksums(folder: Path) -> str:
    """The lines for all files of a folder, except the list itself."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name != NAME)
    return "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    (place / NAME).write_text(checksums(place), encoding="utf-8", newline="\n")
