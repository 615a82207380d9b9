"""Write the small datasets of tests/data/datasets/fixtures with the programs that define their formats.

    python3 -m venv /tmp/datasets
    /tmp/datasets/bin/pip install datasets==5.2.0 webdataset==1.0.2 mlcroissant==1.1.1 pillow==13.0.0
    /tmp/datasets/bin/python tests/data/datasets/make_fixtures.py

Each folder has the files and `expected.json`: the records as the program itself reads them. Bytes are written as their
SHA-256. All content is our own.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
COLOURS = {"red": (200, 30, 30), "green": (30, 160, 60), "blue": (20, 60, 200)}


def photo(colour: str) -> bytes:
    """A JPEG file of 4 x 4 pixels."""
    return tile(colour, "JPEG")


def tile(colour: str, kind: str = "PNG") -> bytes:
    """An image of 4 x 4 pixels."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), COLOURS[colour]).save(buffer, kind)
    return buffer.getvalue()


def plain(value: Any) -> Any:
    """A value for expected.json."""
    if isinstance(value, bytes | bytearray):
        return {"sha256": hashlib.sha256(bytes(value)).hexdigest()}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def write_expected(folder: Path, program: str, records: Any) -> None:
    """expected.json, with the version of the program."""
    content = {"program": f"{program} {version(program)}", "records": plain(records)}
    (folder / "expected.json").write_text(json.dumps(content, indent=1) + "\n")


def fresh(name: str) -> Path:
    """An empty folder."""
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def hugging_face() -> None:
    """Two shards of a split, with images, lists of images and class labels."""
    from datasets import ClassLabel, Dataset, Features, Image, List, Value, load_dataset

    folder = fresh("hf")
    colours = list(COLOURS)
    features = Features(
        {
            "photo": Image(),
            "question": Value("string"),
            "label": ClassLabel(names=colours),
            "tags": List(ClassLabel(names=["warm", "cold"])),
        }
    )
    rows = {
        "photo": [{"bytes": tile(colour), "path": f"{colour}.png"} for colour in colours],
        "question": ["Which colour?"] * 3,
        "label": [0, 1, -1],
        "tags": [[0], [], [1, 0]],
    }
    dataset = Dataset.from_dict(rows, features=features)
    (folder / "data").mkdir()
    for number in range(2):
        shard = dataset.shard(2, number, contiguous=True)
        shard.to_parquet(str(folder / "data" / f"test-{number:05d}-of-00002.parquet"))
    read = load_dataset("parquet", data_files={"test": str(folder / "data" / "*.parquet")}, split="test")
    read = read.cast_column("photo", Image(decode=False))
    write_expected(folder, "datasets", list(read))
    names = {"label": read.features["label"].names, "tags": read.features["tags"].feature.names}
    content = json.loads((folder / "expected.json").read_text())
    (folder / "expected.json").write_text(json.dumps({**content, "names": names}, indent=1) + "\n")


def web_dataset() -> None:
    """Two shards."""
    import webdataset

    folder = fresh("webdataset")
    samples = [
        {
            "__key__": "a/0001",
            "jpg": photo("red"),
            "txt": "a red tile",
            "json": {"size": 4, "id": "tile-1"},
        },
        {
            "__key__": "a/0002",
            "0.png": tile("green"),
            "10.png": tile("blue"),
            "2.png": tile("red"),
        },
        {
            "__key__": "b/0003",
            "jpg": photo("blue"),
            "cls": 2,
            "npy": b"not read",
            "part.seg.json": [1, 2],
        },
    ]
    for number, part in enumerate((samples[:2], samples[2:])):
        with webdataset.TarWriter(str(folder / f"tiles-{number:06d}.tar"), encoder=True, mtime=0) as writer:
            for sample in part:
                writer.write(sample)
    paths = sorted(map(str, folder.glob("*.tar")))
    read = [
        {key: value for key, value in sample.items() if key not in ("__url__", "__local_path__")}
        for sample in webdataset.WebDataset(paths, shardshuffle=False)
    ]
    write_expected(folder, "webdataset", read)


def croissant() -> None:
    """Record sets of a CSV, a JSONL and a Parquet file, and images that a CSV names."""
    import mlcroissant
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = fresh("croissant")
    with (folder / "questions.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["qid", "question", "gold", "views", "file"])
        writer.writerows(
            [["q1", "Which colour?", "red", 3, "red.png"], ["q2", "Which one, then?", "blue", 0, "blue.png"]]
        )
    (folder / "captions.jsonl").write_text(
        json.dumps({"key": 7, "inner": {"text": "a red tile"}})
        + "\n"
        + json.dumps({"key": 8, "inner": {"text": "a blue tile"}})
        + "\n"
    )
    facts = {"meta": 1, "items": [{"n": 1, "word": "one"}, {"n": 2, "word": "two"}]}
    (folder / "facts.json").write_text(json.dumps(facts) + "\n")
    (folder / "images").mkdir()
    for colour in ("red", "blue"):
        (folder / "images" / f"{colour}.png").write_bytes(tile(colour))
    for split in ("test", "train"):
        (folder / "tables" / split).mkdir(parents=True)
        pq.write_table(pa.table({"n": [1, 2], "word": ["one", "two"]}), folder / "tables" / split / "0.parquet")
    (folder / "croissant.json").write_text(json.dumps(metadata(folder), indent=1) + "\n")
    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    records = {name: list(dataset.records(name)) for name in ("questions", "captions", "facts", "words")}
    for record in records["questions"]:
        if image := record.get("questions/image"):
            record["questions/image"] = list(image.getpixel((0, 0)))
    for record in (record for each in records.values() for record in each):
        record |= {key: value.decode() for key, value in record.items() if isinstance(value, bytes)}
    write_expected(folder, "mlcroissant", records)


def metadata(folder: Path) -> dict[str, Any]:
    """croissant.json of the dataset in a folder."""

    def digest(name: str) -> str:
        return hashlib.sha256((folder / name).read_bytes()).hexdigest()

    def file(name: str, encoding: str) -> dict[str, Any]:
        entry = {"@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name}
        return {**entry, "encodingFormat": encoding, "sha256": digest(name)}

    def field(name: str, kind: str, source: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"@type": "cr:Field", "@id": name, "dataType": kind, "source": source, **more}

    def column(name: str, column: str) -> dict[str, Any]:
        return {"fileObject": {"@id": name}, "extract": {"column": column}}

    def of_set(name: str, **extract: str) -> dict[str, Any]:
        return {"fileSet": {"@id": name}, "extract": extract}

    def in_json(path: str) -> dict[str, Any]:
        return {"fileObject": {"@id": "facts.json"}, "extract": {"jsonPath": path}}

    questions, captions = "questions.csv", "captions.jsonl"
    named = {"references": of_set("image-files", fileProperty="filename")}
    split = {
        **of_set("tables", fileProperty="fullpath"),
        "transform": {"regex": "^tables/(?:partial-)?(test|train)/.+$"},
    }
    from mlcroissant import Metadata

    return {
        "@context": Metadata(name="x").to_json()["@context"],
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "tiles",
        "description": "Tiles of one colour.",
        "license": "https://creativecommons.org/publicdomain/zero/1.0/",
        "url": "https://example.org/tiles",
        "version": "1.0.0",
        "datePublished": "2026-11-16",
        "creator": {"@type": "sc:Organization", "name": "multimodal-eval"},
        "citeAs": "none",
        "distribution": [
            file(questions, "text/csv"),
            file(captions, "application/jsonlines"),
            file("facts.json", "application/json"),
            {"@type": "cr:FileSet", "@id": "image-files", "encodingFormat": "image/png", "includes": "images/*.png"},
            {
                "@type": "cr:FileSet",
                "@id": "tables",
                "encodingFormat": "application/x-parquet",
                "includes": "tables/*/*.parquet",
            },
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "questions",
                "key": {"@id": "questions/qid"},
                "field": [
                    field("questions/qid", "sc:Text", column(questions, "qid")),
                    field("questions/question", "sc:Text", column(questions, "question")),
                    field("questions/expected_answer", "sc:Text", column(questions, "gold")),
                    field("questions/views", "sc:Integer", column(questions, "views")),
                    field("questions/file", "sc:Text", column(questions, "file"), **named),
                    field("questions/image", "sc:ImageObject", of_set("image-files", fileProperty="content")),
                ],
            },
            {
                "@type": "cr:RecordSet",
                "@id": "captions",
                "field": [
                    field(
                        "captions/id",
                        "sc:Integer",
                        column(captions, "key"),
                    ),
                    field(
                        "captions/caption",
                        "sc:Text",
                        {**column(captions, "inner"), "transform": {"jsonPath": "$.text"}},
                    ),
                ],
            },
            {
                "@type": "cr:RecordSet",
                "@id": "facts",
                "field": [
                    field("facts/n", "sc:Integer", in_json("$.items[*].n")),
                    field("facts/word", "sc:Text", in_json("$.items[*].word")),
                ],
            },
            {
                "@type": "cr:RecordSet",
                "@id": "words",
                "field": [
                    field("words/split", "sc:Text", split),
                    field("words/n", "sc:Integer", of_set("tables", column="n")),
                    field("words/word", "sc:Text", of_set("tables", column="word")),
                ],
            },
        ],
    }


if __name__ == "__main__":
    hugging_face()
    web_dataset()
    croissant()
