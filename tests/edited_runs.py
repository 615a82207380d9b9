"""Run folders that are changed by hand, with checksums that fit: what a careful person, or an attacker, would write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from multimodal_eval.core.records import CHECKED_FORMAT
from multimodal_eval.data.runs.checksums import sealed
from multimodal_eval.data.runs.run_folder import RunFolder


def stored_json(path: Path) -> dict[str, Any]:
    """The content of a JSON file of a run, without checksums."""
    content = json.loads(path.read_text())
    return {key: value for key, value in content.items() if key not in ("manifest", "sha256")}


def rewrite_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the content of a JSON file of a run."""
    content = json.loads(path.read_text())
    content.pop("sha256", None)
    change(content)
    write_json(path, content)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file of a run, with its checksum."""
    content = {key: value for key, value in content.items() if key != "sha256"}
    path.write_bytes(sealed(json.dumps(content, indent=2).encode() + b"\n"))


def accept_changes(path: Path) -> None:
    """Make the checksums of a finished run fit its files as they are."""
    folder = RunFolder(path)
    results = folder.read_results()
    (path / "manifest.json").unlink(missing_ok=True)
    folder.checksums.forget_manifest()
    folder.write_results(results)


def without_checksums(path: Path, format: int = CHECKED_FORMAT - 1) -> None:
    """Turn a run into one of an earlier version."""
    (path / "manifest.json").unlink(missing_ok=True)
    for file in path.glob("*.json"):
        content = json.loads(file.read_text())
        content.pop("sha256", None)
        content.pop("manifest", None)
        if file.name == "run.json":
            content["format"] = format
        file.write_text(json.dumps(content, indent=2) + "\n")
