"""Logs of other harnesses, damaged at random. Each is read, or refused."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.data.logs.recognised import log_format
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.data.logs.fixture_logs import EVALSCOPE, HELM, LIGHTEVAL, OPENAI_BATCH, VLMEVALKIT
from tests.hostile.campaign import campaign, mmeval
from tests.hostile.mutations import damaged, damaged_json, deep


def openai_batch(folder: Path) -> None:
    shutil.copytree(OPENAI_BATCH, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data"))


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
    return read_log(folder / named, name if forced else None)


def read_log(path: Path, name: str | None) -> str:
    """What the commands do first, which is much faster than the whole of them."""
    problems = Problems()
    try:
        source = FileInput(path, log=name)
        for file in source.data_files.files:
            if file.log is not None:
                log_format(file.log).info(file.path)
        for _ in source.samples(problems, Summary()):
            pass
    except MultimodalEvalError:
        return "refused"
    return "refused" if problems.total else "accepted"


for make in (openai_batch, evalscope, helm, lighteval, vlmevalkit, vlmevalkit_tables):

    @campaign(f"log_{make.__name__}", cases=60)
    def attack(random: Random, folder: Path, make: Callable[[Path], None] = make) -> str | None:
        return attack_log(make, random, folder)
