"""Run one function of one runner in the environment of a peer.

    PYTHON launch.py RUNNER.py {captions,answers} < INPUT.json > RESULT.json

It needs the standard library only. What the peer prints goes to stderr. The result is {"result": ..., "versions": ...},
or {"error": ...} if the peer failed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main(file: str, kind: str) -> None:
    result = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    data = json.load(sys.stdin)
    sys.path.pop(0)  # this folder, whose modules could hide those of the peer
    sys.path.append(os.path.dirname(file))  # noqa: PTH120 - partial_packages
    answer: dict[str, Any]
    try:
        spec = importlib.util.spec_from_file_location("runner", file)
        assert spec is not None
        assert spec.loader is not None
        runner = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(runner)
        answer = {"result": getattr(runner, kind)(data)}
        answer["versions"] = {name: version_of(name) for name in runner.PACKAGES}
    except Exception as error:  # noqa: BLE001 - the reason becomes a row of the table
        traceback.print_exc()
        lines = str(error).strip().splitlines() or [""]
        answer = {"error": f"{type(error).__name__}: {lines[0]}"}
    json.dump(answer, result)
    result.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
