"""Run the steps of a case in an empty folder, and describe what they print and write, without times and paths."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

import multimodal_eval
from tools.site.code import Namespace, run_python
from tools.site.setups import prepare
from tools.site.shell import run, stripped
from tools.site.workspace import Workspace, workspace

ROOT = Path(__file__).parents[2]
TEXTS = {".json", ".jsonl", ".csv", ".md", ".tex", ".yaml", ".txt", ".html"}
# Bytes of a file that a record shows; of a longer one, it has the digest.
SHOWN = {"results.json": 8_000, "judges.json": 8_000, "classification.json": 8_000, "manifest.json": 0}
SHOWN_OF_OTHERS = 3_500
PAGE = 240  # characters of a page
WIDTH = 118
# In files that say when, where and by which process a run was made.
VARYING = re.compile(r'"(created|finished|started|advanced|updated|host|pid)": ?("[^"]*"|[\d.]+)')
OWNER = re.compile(r',\s*"owner": ?"[^"]*"')
VERSIONS = re.compile(r'"versions": ?\{[^{}]*\}')
# Its own digest, and those of other run.json.
OWN_DIGEST = re.compile(r'"sha256": ?"[0-9a-f]{64}"(?=\s*\}\s*$|,\s*"samples")')
SPEED = re.compile(r"[\d,]+ tokens/s")
LONG_NUMBER = re.compile(r"\d+\.\d{12,}(e-?\d+)?")
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")


@dataclass(frozen=True)
class Case:
    """Steps that run one after the other in one folder.

    A step that starts with `mmeval ` is a command, any other one Python code. `setups` are those of `tools.site`.
    """

    name: str
    steps: Sequence[str]
    setups: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)  # folders of the repository, by their names in the folder
    part_size: int | None = None
    digits: int | None = None  # of numbers in JSON: the last ones of linear algebra depend on the processor
    is_slow: bool = False  # left out unless it is named


@contextmanager
def steady(part_size: int | None = None) -> Iterator[None]:
    """Requests take a known time, replies have the same id, and parts are small."""
    from multimodal_eval.generate.engine import Asker
    from tests.generate import server

    asked = Asker.ask

    async def ask(asker: Asker, request: Any) -> Any:
        return msgspec.structs.replace(await asked(asker, request), started=1_800_000_000.0, latency=0.25)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Asker, "ask", ask))
        stack.enter_context(patch.object(server, "_numbers", repeat(7)))
        for name in ("PART_SIZE", "PART_SIZE_WITH_MODEL") if part_size else ():
            stack.enter_context(patch(f"multimodal_eval.run.plan.{name}", part_size))
        stack.enter_context(patch("multimodal_eval.core.metric_failures.FIRST_DELAY", 0.0))
        yield


@contextmanager
def prepared(case: Case) -> Iterator[Workspace]:
    """The folder of a case before its first step."""
    with workspace() as work, steady(case.part_size):
        prepare(list(case.setups), work)
        for name, folder in case.copies.items():
            shutil.copytree(ROOT / folder, work.folder / name)
        for name, text in case.files.items():
            path = work.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield work


def record(case: Case, keep: Path | None = None) -> str:
    """The record of a case. `keep`: a folder for the files that it is made of, without times and paths."""
    with prepared(case) as work:
        space: Namespace = {"__name__": "__main__"}
        before = contents(work.folder)
        lines: list[str] = []
        shown: set[bytes] = set()
        for step in case.steps:
            lines += _printed(step, work, space)
            after = contents(work.folder)
            lines += _changes(before, after, work, case.digits, shown)
            before = after
        if keep is not None:
            _keep(before, work, case.digits, keep / case.name)
    return "\n".join(lines) + "\n"


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their names."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def normal(name: str, content: bytes, work: Workspace, digits: int | None = None) -> bytes:
    """The content of a file without what differs from run to run; of a page, its text."""
    path = Path(name)
    if path.suffix not in TEXTS:
        return content
    text = content.decode("utf-8")
    if path.name in ("run.json", "progress.json"):
        text = OWNER.sub("", VARYING.sub(r'"\1": "…"', text))
        text = OWN_DIGEST.sub('"sha256": "…"', VERSIONS.sub('"versions": {}', text))
        text = SPEED.sub("… tokens/s", text)
    if path.suffix == ".html":
        text = DIGEST.sub("…", _page_text(text))
    if path.suffix == ".json" and digits is not None:
        text = OWN_DIGEST.sub('"sha256": "…"', LONG_NUMBER.sub(lambda match: f"{float(match[0]):.{digits}g}", text))
    return plain(text, work).encode()


def plain(text: str, work: Workspace) -> str:
    """A text without times, paths, versions, and what tells the machine."""
    text = re.sub(r"(?<=pillow-)\d[\d.]*\d", "VERSION", text)
    text = text.replace(platform.platform(), "PLATFORM").replace(platform.python_version(), "VERSION")
    text = work.shown(text).replace(str(ROOT), "/repository").replace(multimodal_eval.__version__, "VERSION")
    now = datetime.now(UTC)
    for day in {now.date(), (now - timedelta(days=1)).date(), datetime.now().date()}:
        text = re.sub(rf"{day}([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?)?", "TIME", text)
        text = re.sub(rf"{day:%Y%m%d}-\d{{6}}", "TIME", text)
    return text


def _printed(step: str, work: Workspace, space: Namespace) -> Iterator[str]:
    if not step.startswith("mmeval "):
        yield from (f">>> {line}" for line in step.splitlines())
        yield from plain(run_python(step, space, "step"), work).splitlines()
        return
    yield f"$ {step}"
    done = run(work.meant(step), work.folder)
    yield from plain(stripped(done.stdout), work).splitlines()
    if done.stderr.strip():
        yield "[stderr]"
        yield from plain(stripped(done.stderr), work).splitlines()
    yield f"[exit {done.status}]"


def _changes(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    work: Workspace,
    digits: int | None,
    shown: set[bytes],
) -> Iterator[str]:
    """The files that a step wrote or removed. Those that are `shown` already are not shown again."""
    for name in sorted({*before, *after}):
        if name not in after:
            yield f"- {plain(name, work)}"
        elif before.get(name) != after[name]:
            content = normal(name, after[name], work, digits)
            mark = "~" if name in before else "+"
            yield f"{mark} {plain(name, work)} {hashlib.sha256(content).hexdigest()[:16]}"
            if content not in shown:
                yield from (f"    {line}" for line in _shown(name, content))
            shown.add(content)
    yield ""


def _shown(name: str, content: bytes) -> Iterator[str]:
    """What a record shows of a file besides its digest."""
    path = Path(name)
    if path.suffix == ".html":
        yield " ".join(content.decode().split())[:PAGE]
    elif path.suffix in TEXTS and len(content) <= SHOWN.get(path.name, SHOWN_OF_OTHERS):
        text = DIGEST.sub(r"\1…", content.decode())
        yield from (_condensed(json.loads(text)) if path.suffix == ".json" else text).splitlines()


def _condensed(value: Any, indent: str = "") -> str:
    """JSON with as many values on a line as fit."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inner = f"{indent} "
    if isinstance(value, dict):
        items = [f"{json.dumps(key, ensure_ascii=False)}: {_condensed(item, inner)}" for key, item in value.items()]
    else:
        items = [_condensed(item, inner) for item in value]
    lines = items[:1]
    for item in items[1:]:
        if "\n" in item or "\n" in lines[-1] or len(inner) + len(lines[-1]) + len(item) + 2 > WIDTH:
            lines.append(item)
        else:
            lines[-1] += f", {item}"
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{inner}" + f",\n{inner}".join(lines) + last


class _Text(HTMLParser):
    """Collects the text of a page outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.parts.append(" ".join(data.split()))


def _page_text(page: str) -> str:
    reader = _Text()
    reader.feed(page)
    return "\n".join(reader.parts) + "\n"


def _keep(files: Mapping[str, bytes], work: Workspace, digits: int | None, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(normal(name, content, work, digits))
