"""Logs of lm-eval and lmms-eval with damaged lines and results. Each is read, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from multimodal_eval import import_log
from multimodal_eval.data.logs.recognised import log_format
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.data.logs.fixture_logs import FIXTURES
from tests.hostile.campaign import campaign, mmeval, tried
from tests.hostile.mutations import as_json, changed, damaged, damaged_json


def _attack(name: str, random: Random, folder: Path) -> str | None:
    samples = random.choice(sorted((FIXTURES / name).glob("*.jsonl")))
    (results,) = (FIXTURES / name).glob("*.json")
    path = folder / samples.name
    path.write_bytes(_lines(random, samples.read_bytes()) if random.random() < 0.8 else samples.read_bytes())
    if random.random() < 0.8:
        content = results.read_bytes()
        (folder / results.name).write_bytes(damaged_json(random, content) if random.random() < 0.5 else content)
    way = random.random()
    if way < 0.05:
        return mmeval(folder, "import", path.name, "-o", "run", "--no-report").verdict
    if way < 0.15:
        return tried(lambda: import_log(path, output=folder / "run", progress=False))
    return tried(lambda: _read(path, name))


def _lines(random: Random, content: bytes) -> bytes:
    """The log with damaged bytes, or with other values in some lines, or lines removed, repeated and moved."""
    if random.random() < 0.3:
        return damaged(random, content)
    lines = content.splitlines()
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.randrange(len(lines))
        match random.randrange(8):
            case 0:
                lines.insert(random.randrange(len(lines)), lines[place])
            case 1:
                del lines[place]
                lines = lines or [b"{}"]
            case 2:
                random.shuffle(lines)
            case _:
                lines[place] = _changed(random, lines[place])
    return b"\n".join(lines) + b"\n"


def _changed(random: Random, line: bytes) -> bytes:
    """A line with another value under some key."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return damaged(random, line)
    if not isinstance(record, dict) or not record:
        return as_json(changed(random, record)).encode()
    key = random.choice(sorted(record))
    return as_json({**record, key: changed(random, record[key])}).encode()


def _read(path: Path, name: str) -> None:
    problems = Problems()
    for _ in FileInput(path, log=name).samples(problems, Summary()):
        pass
    log_format(name).info(path)
    problems.raise_if_any()


for harness in ("lm-eval", "lmms-eval"):

    @campaign(harness.replace("-", "_"), cases=200)
    def attack(random: Random, folder: Path, harness: str = harness) -> str | None:
        return _attack(harness, random, folder)
