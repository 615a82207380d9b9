"""Make records of Every Eval Ever with the project's own converter, from logs of lm-evaluation-harness.

    python3.12 -m venv ENV && ENV/bin/pip install every-eval-ever==0.3.0
    python -m tools.make_logs.eee_records ENV tests/data/logs/fixtures/lm-eval OUT

OUT/data then has one folder per task. The fixtures are the tasks toy_sum (two filters) and toy_captions (several
references, which the converter writes as the source of a Python list).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def convert(environment: Path, logs: Path, output: Path) -> None:
    """Convert all logs of a folder, with their samples."""
    program = environment / "bin" / "every_eval_ever"
    options = ["--log_path", str(logs), "--output_dir", str(output / "data"), "--include_samples"]
    subprocess.run([str(program), "convert", "lm_eval", *options], check=True)


if __name__ == "__main__":
    convert(*map(Path, sys.argv[1:4]))
