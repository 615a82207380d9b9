"""Small files that cost a careless reader much memory or time: at most 10 MB each.

`BOMBS` names a function per file. It writes the file below a folder and returns the arguments of `mmeval validate`.
"""

from __future__ import annotations

from tests.hostile import compressed_bombs, log_bombs, parquet_bombs, text_bombs
from tests.hostile.bomb_registry import BOMBS

__all__ = ["BOMBS"]

MODULES = (compressed_bombs, text_bombs, parquet_bombs, log_bombs)  # their imports register the bombs
