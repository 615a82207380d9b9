"""Paste the demo's output into README.md: python tests/docs/update_readme.py"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"(The demo scores[^\n]*\n\n```\n).*?(\n```)", re.DOTALL)


def demo_output() -> str:
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "demo"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "\n".join(line.rstrip() for line in out.splitlines()).strip()


def updated(readme: str) -> str:
    return BLOCK.sub(lambda match: match[1] + demo_output() + match[2], readme)


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
