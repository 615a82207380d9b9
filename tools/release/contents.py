"""What the files of a release contain: everything that is needed, and nothing else.

python -m tools.release.contents dist/*
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

# The source archive: single files, and folders with all that is in them.
FILES = {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "NOTICE", "PKG-INFO", "tools/release/smoke.py"}
FOLDERS = ("src/multimodal_eval", "native", "docs/metrics")  # the last one becomes the metric cards of the wheel
PACKAGE = "multimodal_eval"
MOST_MEGABYTES = {".gz": 15, ".whl": 12}
_EXTENSION = re.compile(rf"{PACKAGE}/_native\.[\w.-]*?(so|pyd)")
_LEFT_OVER = re.compile(r"(^|/)(__pycache__|\.git\w*|\.DS_Store|\.venv)(/|$)|\.(pyc|o|a|orig|rej)$")


def problems(path: Path) -> list[str]:
    """What is wrong with a source archive or a wheel."""
    size, most = path.stat().st_size / 1e6, MOST_MEGABYTES[path.suffix]
    faults = [f"it has {size:.1f} MB, more than {most}"] if size > most else []
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            members = archive.getmembers()
            faults += [f"{member.name} is not a plain file" for member in members if not member.isreg()]
        return faults + _source_problems([member.name for member in members])
    with zipfile.ZipFile(path) as wheel:
        return faults + _wheel_problems(wheel.namelist())


def _source_problems(names: Sequence[str]) -> list[str]:
    paths = [name.partition("/")[2] for name in names]
    faults = _unwanted(paths)
    faults += [f"{name} is missing" for name in sorted(FILES - set(paths))]
    for folder in FOLDERS:
        if not any(path.startswith(f"{folder}/") for path in paths):
            faults.append(f"{folder} is missing")
    known = tuple(f"{folder}/" for folder in FOLDERS)
    faults += [f"{path} is not needed" for path in paths if path not in FILES and not path.startswith(known)]
    faults += [f"{path} is compiled" for path in paths if path.endswith((".so", ".pyd"))]
    return faults


def _wheel_problems(names: Sequence[str]) -> list[str]:
    faults = _unwanted(names)
    described = {PurePosixPath(name).parts[0] for name in names if ".dist-info/" in name}
    if len(described) != 1:
        return [*faults, f"one .dist-info folder is expected. Got {sorted(described)} instead"]
    info = described.pop()
    tops = {PurePosixPath(name).parts[0] for name in names}
    faults += [f"{top} is not needed" for top in sorted(tops - {PACKAGE, info})]
    needed = [
        f"{info}/{name}" for name in ("METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE")
    ]
    needed += [f"{PACKAGE}/{name}" for name in ("py.typed", "cards/cider.md", "models/shapes-clip/model.safetensors")]
    faults += [f"{name} is missing" for name in needed if name not in names]
    if not any(name.startswith(f"{PACKAGE}/report/compiled/") for name in names):
        faults.append(f"{PACKAGE}/report/compiled is missing")
    extensions = [name for name in names if _EXTENSION.fullmatch(name)]
    if len(extensions) != 1:
        faults.append(f"one compiled extension is expected. Got {extensions} instead")
    return faults


def _unwanted(names: Iterable[str]) -> list[str]:
    return [f"{name} does not belong there" for name in names if _LEFT_OVER.search(name)]


def main(arguments: Sequence[str]) -> int:
    failed = False
    for path in map(Path, arguments):
        faults = problems(path)
        failed = failed or bool(faults)
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {'; '.join(faults) or 'complete'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
