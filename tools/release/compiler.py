"""A C++ compiler for an old glibc: clang of PyPI's `ziglang`, which brings the headers of every version.

With the compiler of a new Linux, the extension would ask for the glibc of that Linux. cibuildwheel uses a container
with an old Linux instead; this way needs no container.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

GLIBC = "2.28"  # that of manylinux_2_28, as in cibuildwheel's images; numpy and pyarrow ask for the same


def environment(folder: Path, machine: str = "x86_64", glibc: str = GLIBC) -> dict[str, str]:
    """Write the compiler and its archiver as scripts into the folder; returns the environment that builds with them."""
    folder.mkdir(parents=True, exist_ok=True)
    target = f"{machine}-linux-gnu.{glibc}"
    tools = {"c++": ("c++", "-target", target), "ar": ("ar",), "ranlib": ("ranlib",)}
    paths = {}
    for name, arguments in tools.items():
        paths[name] = folder / name
        command = shlex.join([sys.executable, "-m", "ziglang", *arguments])
        paths[name].write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        paths[name].chmod(0o755)
    return {
        **os.environ,
        "CXX": str(paths["c++"]),
        "CMAKE_ARGS": f"-DCMAKE_AR={paths['ar']} -DCMAKE_RANLIB={paths['ranlib']}",
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",  # names the wheel
    }
