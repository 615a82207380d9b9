"""Parquet files of the Hugging Face layout."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.logs.recognised import recognised
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.data.readers.reading import read

FIXTURES = Path(__file__).parent / "fixtures" / "hf"
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def written(path, columns, features=None):
    table = pa.table(columns)
    if features is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def images(*contents, kind=IMAGE):
    return pa.array(contents, kind)


def test_rows_are_those_of_datasets():
    expected = json.loads((FIXTURES / "expected.json").read_text())
    samples, problems, _ = read(FIXTURES / "data")
    assert problems.total == 0
    names = expected["names"]
    for number, (sample, row) in enumerate(zip(samples, expected["records"], strict=True)):
        assert sample.id == f"test/{number}"
        assert hashlib.sha256(sample.image).hexdigest() == row["photo"]["bytes"]["sha256"]
        assert sample.question == row["question"]
        label = None if row["label"] == -1 else names["label"][row["label"]]
        assert sample.metadata.get("label") == label
        assert sample.metadata["tags"] == [names["tags"][tag] for tag in row["tags"]]
        assert sample.metadata["split"] == "test"


def test_one_shard_has_the_numbers_of_its_rows_in_the_split():
    samples, _, _ = read(FIXTURES / "data" / "test-00001-of-00002.parquet")
    assert [sample.id for sample in samples] == ["2"]  # the first shard has rows 0 and 1


def test_ids_of_the_file_are_kept(tmp_path):
    for number in range(2):
        columns = {"id": [f"q{number}"], "label": [number]}
        written(tmp_path / f"test-0000{number}-of-00002.parquet", columns, {"label": labels("no", "yes")})
    samples, _, _ = read(tmp_path)
    assert [(sample.id, sample.metadata["label"]) for sample in samples] == [("q0", "no"), ("q1", "yes")]


def labels(*names):
    return {"_type": "ClassLabel", "names": list(names)}


@pytest.mark.parametrize(
    ("columns", "image", "several"),
    [
        ({"image": images({"bytes": b"a", "path": None})}, b"a", None),
        ({"image": images({"bytes": None, "path": "a.png"})}, "a.png", None),
        ({"photo": images({"bytes": b"a", "path": None})}, b"a", None),
        ({"image": images([{"bytes": b"a"}, {"bytes": b"b"}], kind=pa.list_(IMAGE))}, None, [b"a", b"b"]),
        # As MMMU: numbered columns, of which some are null.
        (
            {f"image_{n}": images({"bytes": bytes([n])} if n != 3 else None) for n in (10, 1, 2, 3)},
            None,
            [b"\x01", b"\x02", b"\n"],
        ),
        # As MathVista: a path in `image`, and the image itself in another column.
        ({"image": ["images/1.jpg"], "decoded_image": images({"bytes": b"a"})}, b"a", None),
        # What is not `image` is not read if there is an `image`.
        ({"image": images({"bytes": b"a"}), "mask": images({"bytes": b"m"})}, b"a", None),
        ({"image": images(None)}, None, None),
    ],
)
def test_images(tmp_path, columns, image, several):
    samples, problems, _ = read(written(tmp_path / "rows.parquet", columns, {}))
    assert problems.total == 0
    assert samples[0].image == image
    assert samples[0].images == several
    assert not {"mask", "decoded_image", "image_1"} & samples[0].metadata.keys()


def test_path_in_a_text_column_is_kept(tmp_path):
    columns = {"image": ["images/1.jpg"], "decoded_image": images({"bytes": b"a"})}
    samples, _, _ = read(written(tmp_path / "rows.parquet", columns, {}))
    assert samples[0].metadata["image_path"] == "images/1.jpg"


def test_a_file_without_metadata_is_read_on_request(tmp_path):
    path = written(tmp_path / "rows.parquet", {"photo": images({"bytes": b"a"}), "question": ["?"]})
    assert recognised(path) is None
    samples = list(FileInput(path, log="hf-parquet").samples(Problems(), Summary()))
    assert [(sample.id, sample.image, sample.question) for sample in samples] == [("0", b"a", "?")]


def test_audio_by_its_feature(tmp_path):
    path = written(tmp_path / "rows.parquet", {"speech": images({"bytes": b"RIFF"})}, {"speech": {"_type": "Audio"}})
    samples, _, _ = read(path)
    assert samples[0].audio == b"RIFF"


def test_files_without_anything_special_are_read_as_before(tmp_path):
    path = written(tmp_path / "rows.parquet", {"id": ["a"], "image": images({"bytes": b"a"})}, {})
    assert recognised(path) is None
    assert FileInput(path).has_columns
    assert recognised(written(tmp_path / "plain.parquet", {"id": ["a"], "question": ["?"]})) is None


def test_a_class_without_a_name_stays_a_number(tmp_path):
    path = written(tmp_path / "rows.parquet", {"label": [0, 7]}, {"label": labels("no")})
    samples, problems, _ = read(path)
    assert [problem.code for problem in problems.kept] == ["TYPE"]  # a column that mixes text and numbers
    assert len(samples) == 1


def test_other_files_in_the_folder_are_not_left_out_silently(tmp_path):
    written(tmp_path / "a.parquet", {"question": ["?"]}, {})
    written(tmp_path / "b.parquet", {"question": ["?"]})
    with pytest.raises(InputError, match=r"b\.parquet: FORMAT: other files in .* have the format hf-parquet"):
        FileInput(tmp_path)


@pytest.mark.parametrize("metadata", [b"", b"{", b"[]", b'{"info": 3}', b'{"info": {"features": []}}', b"\xff"])
def test_damaged_metadata(tmp_path, metadata):
    table = pa.table({"question": ["?"]}).replace_schema_metadata({b"huggingface": metadata})
    pq.write_table(table, tmp_path / "rows.parquet")
    samples, problems, _ = read(tmp_path / "rows.parquet")
    assert [sample.id for sample in samples] == ["0"]
    assert problems.total == 0
