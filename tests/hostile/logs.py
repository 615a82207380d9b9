"""Logs of other harnesses, damaged at random. Each is read, or refused."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from multimodal_eval.data.logs.recognised import log_format
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.data.logs.fixture_logs import EVALSCOPE, HELM, LIGHTEVAL, VLMEVALKIT
from tests.hostile.campaign import campaign, mmeval, tried
from tests.hostile.mutations import damaged, damaged_json, deep

BATCH = {
    "requests.jsonl": [
        {
            "custom_id": name,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "What?"}]}]},
        }
        for name in "abc"
    ],
    "results.jsonl": [
        {
            "custom_id": name,
            "response": {
                "status_code": 200,
                "body": {
                    "model": "m",
                    "choices": [{"message": {"content": "a cat"}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
                },
            },
            "error": None,
        }
        for name in "ba"
    ],
    "errors.jsonl": [{"custom_id": "c", "response": None, "error": {"code": "x", "message": "expired"}}],
}


def openai_batch(folder: Path) -> None:
    for name, lines in BATCH.items():
        (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def evalscope(folder: Path) -> None:
    shutil.copytree(EVALSCOPE / "choices", folder, dirs_exist_ok=True)


def helm(folder: Path) -> None:
    shutil.copytree(HELM / "choices", folder, dirs_exist_ok=True)


def lighteval(folder: Path) -> None:
    shutil.copytree(LIGHTEVAL, folder, dirs_exist_ok=True)


def vlmevalkit(folder: Path) -> None:
    shutil.copytree(VLMEVALKIT / "booleans", folder, dirs_exist_ok=True)


def vlmevalkit_tables(folder: Path) -> None:
    shutil.copytree(VLMEVALKIT / "predictions", folder, dirs_exist_ok=True)


def changed_log(random: Random, file: Path) -> bytes:
    """The content of a file after some damage; that of an archive is also damaged inside."""
    content = file.read_bytes()
    if file.suffix == ".xlsx" and random.random() < 0.7:
        return _changed_entry(random, content)
    if file.suffix == ".json":
        return deep(random) if random.random() < 0.03 else damaged_json(random, content)
    if file.suffix == ".jsonl" and random.random() < 0.6:
        lines = content.splitlines()
        place = random.randrange(len(lines))
        lines[place] = damaged_json(random, lines[place]).replace(b"\n", b" ")
        return b"\n".join(lines) + b"\n"
    return damaged(random, content)


def _changed_entry(random: Random, content: bytes) -> bytes:
    """A workbook with one entry damaged."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as target:
        names = archive.namelist()
        chosen = random.choice([name for name in names if re.search("sheet|Strings|workbook", name)])
        for name in names:
            data = archive.read(name)
            target.writestr(name, damaged(random, data) if name == chosen else data)
    return changed.getvalue()


def damage(make: Callable[[Path], None], random: Random, folder: Path) -> None:
    """Write a log, and damage one of its files."""
    make(folder)
    file = random.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    file.write_bytes(changed_log(random, file))


def attack_log(make: Callable[[Path], None], random: Random, folder: Path) -> str:
    """Import, validate or score a damaged log, as a folder or as a file."""
    log = folder / "log"
    log.mkdir()
    damage(make, random, log)
    files = sorted(str(path.relative_to(folder)) for path in log.rglob("*") if path.is_file())
    named = "log" if random.random() < 0.5 else random.choice(files)
    name = make.__name__.removesuffix("_tables").replace("_", "-")
    forced = ["--format", name] if random.random() < 0.2 else []
    if random.random() < 0.05:
        command = random.choice((["import", named, "-o", "run"], ["validate", named]))
        return mmeval(folder, *command, *forced).verdict
    return tried(lambda: _read(folder / named, name if forced else None))


def _read(path: Path, name: str | None) -> None:
    """What the commands do first, which is much faster than the whole of them."""
    problems = Problems()
    source = FileInput(path, log=name)
    for file in source.data_files.files:
        if file.log is not None:
            log_format(file.log).info(file.path)
    for _ in source.samples(problems, Summary()):
        pass
    problems.raise_if_any()


for make in (openai_batch, evalscope, helm, lighteval, vlmevalkit, vlmevalkit_tables):

    @campaign(f"log_{make.__name__}", cases=60)
    def attack(random: Random, folder: Path, make: Callable[[Path], None] = make) -> str | None:
        return attack_log(make, random, folder)
