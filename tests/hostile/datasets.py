"""Datasets as they are published: Hugging Face, VLMEvalKit, WebDataset, Croissant. Each is read, or refused."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.hostile.campaign import campaign, mmeval
from tests.hostile.mutations import damaged, damaged_json

FIXTURES = Path(__file__).parents[1] / "data" / "datasets" / "fixtures"
BLOCK = 512
IMAGE = base64.b64encode(b"image" * 20).decode()
TABLE = f"""index\timage\tquestion\tA\tB\tanswer\tcategory
1\t{IMAGE}\tWhich?\tred\tNone\tA\tx
2\t1\tWhich?\t\t\t['red', 'blue']\ty
3\t['{IMAGE}', '{IMAGE}']\t"a\tb"\t1\t2\tB\tz
"""


def hf(random: Random, folder: Path) -> list[str]:
    shutil.copytree(FIXTURES / "hf" / "data", folder / "data")
    return ["data"]


def vlmevalkit_tsv(random: Random, folder: Path) -> list[str]:
    (folder / "data.tsv").write_text(TABLE)
    return ["data.tsv", "--format", "vlmevalkit-tsv"] if random.random() < 0.3 else ["data.tsv"]


def webdataset(random: Random, folder: Path) -> list[str]:
    for path in (FIXTURES / "webdataset").glob("*.tar"):
        shutil.copy(path, folder)
    return ["tiles-000000.tar"] if random.random() < 0.5 else ["tiles-*.tar"]


def croissant(random: Random, folder: Path) -> list[str]:
    shutil.copytree(FIXTURES / "croissant", folder / "data")
    name = random.choice(("questions", "captions", "facts", "words"))
    return ["data/croissant.json", "--format", f"croissant:{name}"]


def _with_checksums(content: bytes) -> bytes:
    """An archive whose headers have valid checksums, so that damage to other fields is noticed later or not at all."""
    blocks = bytearray(content)
    for start in range(0, len(blocks) - BLOCK + 1, BLOCK):
        if blocks[start + 257 : start + 262] == b"ustar":
            header = blocks[start : start + BLOCK]
            header[148:156] = b" " * 8
            blocks[start + 148 : start + 156] = b"%06o\0 " % sum(header)
    return bytes(blocks)


def _attack(make: Callable[[Random, Path], list[str]], random: Random, folder: Path) -> str:
    arguments = make(random, folder)
    file = random.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    if make is croissant and random.random() < 0.7:
        file = folder / "data" / "croissant.json"
    content = file.read_bytes()
    changed = damaged_json(random, content) if file.suffix == ".json" else damaged(random, content)
    if file.suffix == ".tar" and random.random() < 0.7:
        changed = _with_checksums(changed)
    file.write_bytes(changed)
    if random.random() < 0.02:
        return mmeval(folder, "score", arguments[0], "--metrics", "rouge_l", "--no-report", "-o", "run").verdict
    try:
        _read(folder, *arguments)
    except MultimodalEvalError:
        return "refused"
    return "accepted"


def _read(folder: Path, name: str, *options: str) -> None:
    problems = Problems()
    source = FileInput(folder / name, log=options[1] if options else None)
    for _ in source.samples(problems, Summary()):
        pass
    source.describe()
    problems.raise_if_any()


for make in (hf, vlmevalkit_tsv, webdataset, croissant):

    @campaign(f"dataset_{make.__name__}", cases=400)
    def attack(random: Random, folder: Path, make: Callable[[Random, Path], list[str]] = make) -> str | None:
        return _attack(make, random, folder)
