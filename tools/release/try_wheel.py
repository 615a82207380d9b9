"""Install a wheel as a user without a compiler does, and try it.

    python -m tools.release.try_wheel dist/*.whl [--python PATH ...] [--extra NAME] [--demo] [--keep DIR]

For each interpreter: a fresh virtual environment, `pip install` with a PATH that has no compiler and no build tool, and
no source archive of any dependency, then tools/release/smoke.py. Prints the time of each step and the size on disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.release.interpreters import interpreters, required_version

SMOKE = Path(__file__).with_name("smoke.py")
# What a plain system has: enough for pip and for scripts, nothing that builds.
PROGRAMS = ("cat", "cp", "env", "ls", "mkdir", "mv", "rm", "sh", "uname")
BUILD_TOOLS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cmake", "make", "ninja", "ld", "ar")


@contextmanager
def bare_path() -> Iterator[dict[str, str]]:
    """An environment whose PATH has a few programs and no compiler."""
    with tempfile.TemporaryDirectory(prefix="mmeval-path-") as folder:
        for name in PROGRAMS:
            if program := shutil.which(name):
                (Path(folder) / name).symlink_to(program)
        if present := [name for name in BUILD_TOOLS if shutil.which(name, path=folder)]:
            raise RuntimeError(f"the PATH for the trial has build tools: {present}")
        kept = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CXX", "CC", "VIRTUAL_ENV")
        }
        yield {**kept, "PATH": folder, "PIP_NO_CACHE_DIR": "1"}


def trial(wheel: Path, python: str, environment: Path, *, extra: str = "", demo: bool = False) -> None:
    """Install the wheel into a new environment and try it there."""
    with bare_path() as variables:
        subprocess.run([python, "-m", "venv", "--clear", str(environment)], check=True, env=variables)
        inside = environment / "bin" / "python"
        needed = f"{wheel.resolve()}[{extra}]" if extra else str(wheel.resolve())
        started = time.perf_counter()
        subprocess.run(
            [inside, "-m", "pip", "install", "-q", "--only-binary", ":all:", "--disable-pip-version-check", needed],
            check=True,
            env=variables,
        )
        print(f"pip install {wheel.name}: {time.perf_counter() - started:.1f} s, {_megabytes(environment):.0f} MB")
        sys.stdout.flush()
        smoke = [str(inside), "-I", str(SMOKE), *(["--demo"] if demo else [])]
        subprocess.run(smoke, check=True, env=variables, cwd=environment)


def fitting(wheels: Sequence[Path], version: tuple[int, int]) -> Path:
    """The wheel for a version of CPython: its own, or the one with the stable ABI."""
    major, minor = version
    for wheel in wheels:
        tag, abi = wheel.name.split("-")[2:4]
        if tag == f"cp{major}{minor}" or (abi == "abi3" and int(tag.removeprefix(f"cp{major}")) <= minor):
            return wheel
    raise SystemExit(f"no wheel fits Python {major}.{minor}. Got {[wheel.name for wheel in wheels]}")


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.release.try_wheel")
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--python", action="append", help="an interpreter; default: all supported ones of this machine")
    parser.add_argument("--extra", default="", help="an extra to install too, such as models")
    parser.add_argument("--demo", action="store_true", help="also run the whole demo, which fetches two models")
    parser.add_argument(
        "--print-fitting", metavar="PYTHON", help="print the wheel for this interpreter, and try nothing"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the environments there")
    chosen = parser.parse_args(arguments)
    if chosen.print_fitting:
        print(fitting(chosen.wheels, required_version(chosen.print_fitting)).resolve())
        return
    for python in chosen.python or interpreters().values():
        version = required_version(python)
        with tempfile.TemporaryDirectory(prefix="mmeval-wheel-") as scratch:
            folder = (chosen.keep or Path(scratch)) / f"python{version[0]}.{version[1]}"
            trial(fitting(chosen.wheels, version), python, folder, extra=chosen.extra, demo=chosen.demo)


if __name__ == "__main__":
    main()
