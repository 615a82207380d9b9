"""Export every run below a folder as records of Every Eval Ever, and check them with the project's own validator.

    python -m tools.validate_eee PROGRAM RUNS

PROGRAM is `every_eval_ever` of an environment with Python 3.12 or later, which the package needs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from multimodal_eval.interop.export.registry import export


def validate(program: Path, runs: Path) -> int:
    """The number of files that the validator accepted; it fails if one is refused."""
    folders = sorted(path.parent for path in runs.rglob("run.json"))
    with tempfile.TemporaryDirectory() as folder:
        paths = [path for run in folders for path in export(run, "eee", folder, model="demo/model").paths]
        names = [str(path.relative_to(folder)) for path in paths]
        report = subprocess.run([program, "validate", *names], cwd=folder, check=False, capture_output=True, text=True)
        if report.returncode:
            sys.exit(f"{report.stdout}{report.stderr}")
    return len(names)


if __name__ == "__main__":
    print(f"{validate(Path(sys.argv[1]).absolute(), Path(sys.argv[2]))} files are valid")
