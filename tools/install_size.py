"""How much disk space an installation takes: python -m tools.install_size [EXTRA ...]

Installs the package with the versions of constraints.txt into a fresh virtual environment and prints the size of each
package that comes with it, then what each EXTRA adds to that. Sizes are those of `du -sb`, in MB of 1,000,000 bytes.

    python -m tools.install_size                          # the base installation
    python -m tools.install_size models view ray          # and what these extras add
    python -m tools.install_size --wheel dist/*.whl       # of a wheel, without a compiler
    python -m tools.install_size --most 400 --keep DIR    # fails above 400 MB; leaves the environment in DIR
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "multimodal-eval"
MB = 1_000_000
# Runs in the environment: the bytes of the files of each distribution.
_SIZES = """
import json, os
from importlib.metadata import distributions
sizes = {}
for distribution in distributions():
    paths = {os.path.realpath(distribution.locate_file(file)) for file in distribution.files or ()}
    name = distribution.metadata["Name"].lower().replace("_", "-")
    sizes[name] = sum(os.lstat(path).st_size for path in paths if os.path.lexists(path))
print(json.dumps(sizes))
"""
OF_PIP = ("pip", "setuptools")


@dataclass
class Environment:
    """A fresh virtual environment."""

    folder: Path
    wheel: Path
    constraints: Path = field(default=ROOT / "constraints.txt")

    def create(self) -> None:
        """Install the package without extras."""
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)
        self.install()

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))

    def install(self, *extras: str) -> None:
        """Install the package with these extras."""
        chosen = f"[{','.join(extras)}]" if extras else ""
        self._pip("install", "-q", "-c", str(self.constraints), f"{NAME}{chosen} @ {self.wheel.resolve().as_uri()}")

    def added_by(self, extra: str) -> dict[str, int]:
        """The sizes of the packages that an extra adds; they are removed again."""
        before = self.sizes()
        self.install(extra)
        added = {name: size for name, size in self.sizes().items() if name not in before}
        if added:
            self._pip("uninstall", "-q", "-y", *added)
        return added

    def sizes(self) -> dict[str, int]:
        """The bytes of each package, the largest first."""
        done = subprocess.run([self.python, "-I", "-c", _SIZES], capture_output=True, text=True, check=True)
        sizes: dict[str, int] = json.loads(done.stdout)
        return dict(sorted(sizes.items(), key=lambda item: -item[1]))

    def total(self) -> int:
        """The bytes of the whole folder, as `du -sb` counts them."""
        sizes: dict[tuple[int, int], int] = {}  # by file, so that a hard link counts once
        for folder, folders, files in os.walk(self.folder):
            for name in (".", *folders, *files):
                status = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - many files
                sizes[status.st_dev, status.st_ino] = status.st_size
        return sum(sizes.values())

    def _pip(self, *arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        command = [self.python, "-m", "pip", "--disable-pip-version-check", *arguments]
        subprocess.run(command, check=True, env=environment)


def built_wheel(folder: Path) -> Path:
    """A wheel of this repository."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def table(sizes: Mapping[str, int], total: int) -> str:
    """One line per package; those below 1 MB are summed up."""
    small = {name: size for name, size in sizes.items() if size < MB}
    lines = [f"{name:<24} {size / MB:>8.1f}" for name, size in sizes.items() if size >= MB]
    if small:
        lines.append(f"{f'{len(small)} smaller packages':<24} {sum(small.values()) / MB:>8.1f}   {', '.join(small)}")
    lines.append(f"{'links, folders, scripts':<24} {(total - sum(sizes.values())) / MB:>8.1f}")
    without_pip = total - sum(sizes.get(name, 0) for name in OF_PIP)
    lines.append(f"{'total':<24} {total / MB:>8.1f}   {without_pip / MB:.1f} without {' and '.join(OF_PIP)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.install_size", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("extras", nargs="*", metavar="EXTRA")
    parser.add_argument("--wheel", type=Path, help="a wheel to install; default: built from this repository")
    parser.add_argument("--most", type=float, metavar="MB", help="exit 1 if the base installation is larger")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="the folder of the environment, which is kept")
    chosen = parser.parse_args(arguments)
    scratch = Path(tempfile.mkdtemp(prefix="install-size-"))
    try:
        environment = Environment(chosen.keep or scratch / "venv", chosen.wheel or built_wheel(scratch))
        environment.create()
        total = environment.total()
        print(table(environment.sizes(), total), flush=True)
        for extra in chosen.extras:
            added = environment.added_by(extra)
            largest = ", ".join(f"{name} {size / MB:.1f}" for name, size in list(added.items())[:6])
            print(f"[{extra}] adds {sum(added.values()) / MB:.1f} MB, {len(added)} packages: {largest}", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if chosen.most is not None and total > chosen.most * MB:
        print(f"the base installation has {total / MB:.1f} MB, more than {chosen.most:g}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
