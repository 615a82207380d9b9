"""Logs of inspect_ai with damaged bytes, samples of other shapes, and hostile archives. Each is read, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from multimodal_eval import import_log
from multimodal_eval.data.logs.inspect_eval import FORMAT
from multimodal_eval.data.logs.zip_entries import open_zip
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.data.logs.zip_files import DEFLATED, STORED, ZSTD, Entry, zip_bytes
from tests.hostile.campaign import campaign, mmeval, tried
from tests.hostile.mutations import as_json, changed, damaged, damaged_json, deep

LOGS = Path(__file__).parents[1] / "data" / "logs" / "fixtures" / "inspect"
NUMBERS = (0, 1, 255, 0xFFFF, 1 << 20, 300 << 20, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)


@campaign("inspect_eval", cases=120)
def archive(random: Random, folder: Path) -> str | None:
    """A .eval file."""
    name = random.choice(("epochs.eval", "choices.eval", "images.eval"))
    if random.random() < 0.4:
        content = damaged(random, (LOGS / name).read_bytes())
    else:
        with open_zip(LOGS / name) as entries:
            items = [Entry(each, entries.read(each)) for each in entries]
        content = zip_bytes(_hostile(random, items), zip_64=random.random() < 0.2)
    (folder / "log.eval").write_bytes(content)
    return _read(random, folder, "log.eval")


def _hostile(random: Random, entries: list[Entry]) -> list[Entry]:
    """The entries after a few changes: of their JSON, of what the directory says, of their number."""
    for _ in range(random.choice((1, 1, 2, 4))):
        entry = random.choice(entries)
        match random.randrange(9):
            case 0 | 1 | 2 | 3:
                entry.content = deep(random) if random.random() < 0.05 else _damaged(random, entry.content)
            case 4:
                entry.method = random.choice((STORED, DEFLATED, ZSTD, 12))
            case 5:
                field = random.choice(("size", "packed_size", "checksum", "offset"))
                setattr(entry, field, random.choice(NUMBERS))
            case 6:
                entry.name = random.choice(("../x", "/x", "", "samples/_epoch_1.json", entry.name * 50, "header.json"))
            case 7:
                entries.append(Entry(entry.name, entry.content))
            case _:
                entries.remove(entry) if len(entries) > 1 else None
    return entries


def _damaged(random: Random, content: bytes) -> bytes:
    """Other JSON, or damaged bytes if the content is not JSON any more."""
    try:
        return damaged_json(random, content)
    except (ValueError, RecursionError):
        return damaged(random, content)


@campaign("inspect_json", cases=120)
def document(random: Random, folder: Path) -> str | None:
    """A .json file."""
    content = (LOGS / "images.json").read_bytes()
    if random.random() < 0.6:
        log: Any = json.loads(content)
        for _ in range(random.choice((1, 2, 3))):
            key = random.choice(("samples", "samples", "eval", "results", "version", "status"))
            log[key] = changed(random, log[key])
        content = as_json(log).encode()
    (folder / "log.json").write_bytes(damaged(random, content) if random.random() < 0.4 else content)
    return _read(random, folder, "log.json")


def _read(random: Random, folder: Path, name: str) -> str | None:
    """Read the log, import it, or check it by the command."""
    way = random.random()
    if way < 0.1:
        return mmeval(folder, "validate", name).verdict
    if way < 0.4:
        form = "inspect" if random.random() < 0.7 else None
        return tried(lambda: import_log(folder / name, output=folder / "run", format=form))
    return tried(lambda: _samples(folder / name))


def _samples(path: Path) -> None:
    problems = Problems()
    for _ in FileInput(path, log="inspect").samples(problems, Summary()):
        pass
    problems.raise_if_any()
    FORMAT.info(path)
