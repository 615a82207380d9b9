"""What became of pages that were executed before, so that a build after the tests does not execute them again.

A record is found by a digest of the page, of the package and of the runner: a change of any of them executes it again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

from tools.site.execute import Outcome
from tools.site.pages import ROOT

FOLDER = ROOT / ".site-cache"
SUFFIXES = (".py", ".json", ".jsonl", ".md", ".yaml")


@cache
def _code() -> bytes:
    """A digest of everything that pages run: the package, its compiled part, the runner and its setups."""
    native = importlib.util.find_spec("multimodal_eval._native")
    assert native is not None
    assert native.origin is not None
    site = ROOT / "tools" / "site"
    folders = [ROOT / "src", site / "setups", ROOT / "examples"]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES]
    files += [site / f"{name}.py" for name in ("blocks", "code", "execute", "samples", "shell", "workspace")]
    digest = hashlib.sha256(Path(native.origin).read_bytes())
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT)} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def _path(name: str, text: str) -> Path:
    digest = hashlib.sha256(_code() + name.encode() + text.encode()).hexdigest()
    return FOLDER / f"{digest[:32]}.json"


def keep(outcome: Outcome, text: str) -> None:
    """Remember a page that is good."""
    if outcome.is_good:
        FOLDER.mkdir(exist_ok=True)
        _path(outcome.page, text).write_text(json.dumps(asdict(outcome)), encoding="utf-8")


def kept(name: str, text: str) -> Outcome | None:
    """What became of the page, if it was executed with this text and this code."""
    path = _path(name, text)
    if not path.exists():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    record["not_run"] = [tuple(item) for item in record["not_run"]]
    return Outcome(**record)
