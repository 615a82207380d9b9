"""Small datasets in published layouts: mmmu/ (Parquet), MMBench_DEV_EN.tsv, shards/, croissant/; answers.jsonl."""

from __future__ import annotations

import base64
import io
import json
import shutil
import tarfile

from tools.site.pages import ROOT
from tools.site.setups.demo_files import DEMO
from tools.site.setups.files import write
from tools.site.workspace import Workspace

FIXTURES = ROOT / "tests" / "data" / "datasets" / "fixtures"
QUESTIONS = [("q1", "Which colour?", "red"), ("q2", "Which one, then?", "blue")]


def prepare(work: Workspace) -> None:
    """Write the files."""
    rows = [
        {"id": name, "question": text, "options": ["red", "blue"], "answer": "AB"["red blue".split().index(gold)]}
        for name, text, gold in QUESTIONS
    ]
    write(rows, work.folder / "mmmu" / "data" / "test-00000-of-00001.parquet")
    image = base64.b64encode((DEMO / "images" / "scene-01.png").read_bytes()).decode()
    cells = [[str(row["id"]), image, str(row["question"]), "red", "blue", str(row["answer"])] for row in rows]
    head = ["index", "image", "question", "A", "B", "answer"]
    lines = ["\t".join(line) for line in [head, *cells]]
    (work.folder / "MMBench_DEV_EN.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write([{"id": name, "generated_answer": gold} for name, _, gold in QUESTIONS], work.folder / "answers.jsonl")
    captions = {"tile-1": "a red tile", "tile-2": "a blue tile"}
    (work.folder / "shards").mkdir()
    with tarfile.open(work.folder / "shards" / "tiles-000000.tar", "w") as archive:
        for number, (name, text) in enumerate(captions.items()):
            for suffix, content in (("json", json.dumps({"id": name})), ("txt", text)):
                entry = tarfile.TarInfo(f"{number:04}.{suffix}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content.encode()))
    write([{"id": name, "generated_answer": "a tile"} for name in captions], work.folder / "captions.jsonl")
    croissant = work.folder / "croissant"
    shutil.copytree(FIXTURES / "croissant", croissant)
