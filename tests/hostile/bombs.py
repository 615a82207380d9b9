"""Small files that cost a careless reader much memory or time: at most 10 MB each.

`BOMBS` names a function per file. It writes the file below a folder and returns the arguments of `mmeval validate`.
`python -m tests.hostile.bombs NAME FOLDER` writes one and prints those arguments as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.hostile import compressed_bombs, log_bombs, parquet_bombs, text_bombs
from tests.hostile.bomb_registry import BOMBS

__all__ = ["BOMBS"]

MODULES = (compressed_bombs, text_bombs, parquet_bombs, log_bombs)  # their imports register the bombs

if __name__ == "__main__":
    name, folder = sys.argv[1:]
    print(json.dumps([str(path) for path in BOMBS[name](Path(folder))]))
