"""Every format gives the same samples, in one file or two."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval import Sample, evaluate, metric
from multimodal_eval._native import array_elements, repeated_keys
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.sample_table import to_samples, to_table

ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "question": "what?",
        "references": ["a dog", "the dog"],
        "generated_answer": 'dog, "big"',
        "split": "val",
    },
    {"id": "b", "question": "кто?", "references": ["ёлка"], "generated_answer": "two\nlines", "split": "test"},
]
SAMPLES = [
    Sample(
        id=row["id"],
        question=row["question"],
        references=row["references"],
        generated_answer=row["generated_answer"],
        metadata={"split": row["split"]},
    )
    for row in ROWS
]


def write(path, rows):
    name = path.name
    if ".jsonl" in name or ".ndjson" in name:
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    elif ".json" in name:
        content = json.dumps(rows, ensure_ascii=False, indent=1).encode()
    elif ".parquet" in name:
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if ".tsv" in name else ",")
            writer.writeheader()
            for row in rows:
                writer.writerow(
                    {**row, **({"references": json.dumps(row["references"])} if "references" in row else {})}
                )
        content = path.read_bytes()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    if name.endswith(".zst"):
        content = pa.compress(content, "zstd", asbytes=True)
    path.write_bytes(content)
    return path


def read(path, predictions=None, columns=None, allow_partial=False, limit=None):
    problems, summary = Problems(), Summary()
    samples = list(FileInput(path, predictions, parse_map(columns), allow_partial).samples(problems, summary, limit))
    problems.raise_if_any()
    return samples, summary


TEXT_FORMATS = ["jsonl", "ndjson", "json", "csv", "tsv"]


@pytest.mark.parametrize(
    "kind", [f"{kind}{packing}" for kind in TEXT_FORMATS for packing in ("", ".gz", ".zst")] + ["parquet"]
)
def test_every_format_gives_the_same_samples(tmp_path, kind):
    samples, summary = read(write(tmp_path / f"data.{kind}", ROWS))
    assert samples == SAMPLES
    assert summary.samples == 2
    assert summary.fields["references"] == 2
    assert summary.metadata == {"split"}


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
def test_columns_can_be_mapped(tmp_path, kind):
    rows = [{"key": "a", "pred": "x", "ref1": "r", "ref2": "s"}]
    columns = {"id": "key", "generated_answer": "pred", "references": "ref1,ref2"}
    samples, _ = read(write(tmp_path / f"data.{kind}", rows), columns=columns)
    assert samples == [Sample(id="a", generated_answer="x", references=["r", "s"])]


def test_a_map_must_name_known_fields_and_columns(tmp_path):
    path = write(tmp_path / "data.jsonl", ROWS)
    with pytest.raises(ConfigError, match="Did you mean 'question'"):
        read(path, columns={"qestion": "q"})
    with pytest.raises(InputError, match=r"UNKNOWN_COLUMN.*'pred'"):
        read(path, columns={"generated_answer": "pred"})


@pytest.mark.parametrize("kinds", [("jsonl", "csv"), ("parquet", "jsonl"), ("csv", "json")])
def test_two_files_are_joined_by_id_in_any_order(tmp_path, kinds):
    data = [{key: row[key] for key in ("id", "question", "references", "split")} for row in ROWS]
    predictions = [{"id": row["id"], "prediction": row["generated_answer"]} for row in reversed(ROWS)]
    samples, _ = read(
        write(tmp_path / f"data.{kinds[0]}", data), write(tmp_path / f"predictions.{kinds[1]}", predictions)
    )
    assert samples == SAMPLES


def test_unmatched_ids_are_counted_on_both_sides(tmp_path):
    data = write(tmp_path / "data.jsonl", [{"id": str(i), "references": ["r"]} for i in range(30)])
    predictions = write(tmp_path / "predictions.jsonl", [{"id": str(i), "prediction": "p"} for i in range(20, 35)])
    with pytest.raises(InputError) as refused:
        read(data, predictions)
    message = str(refused.value)
    assert "UNMATCHED: 20 ids of" in message
    assert "5 ids of" in message
    assert "'9'" in message  # the first ten are named
    assert "'10'" not in message
    samples, summary = read(data, predictions, allow_partial=True)
    assert (len(samples), summary.unmatched_data, summary.unmatched_predictions) == (35, 20, 5)
    assert samples[0].generated_answer is None
    assert samples[-1].references is None


def test_files_that_disagree_are_refused_and_metadata_keep_both(tmp_path):
    data = write(tmp_path / "data.jsonl", [{"id": "a", "question": "x", "k": 1}])
    with pytest.raises(InputError, match="CONFLICT"):
        read(data, write(tmp_path / "p.jsonl", [{"id": "a", "question": "y"}]))
    samples, _ = read(data, write(tmp_path / "p.jsonl", [{"id": "a", "question": "x", "k": 2, "m": 3}]))
    assert samples[0].metadata == {"k": 1, "predictions.k": 2, "predictions.m": 3}


def test_a_join_handles_equal_hashes(tmp_path, monkeypatch):
    from multimodal_eval.data.readers import summary

    monkeypatch.setattr(summary, "hash", lambda text: 1, raising=False)
    data = write(tmp_path / "data.jsonl", [{"id": i} for i in "abc"])
    predictions = write(tmp_path / "p.jsonl", [{"id": i, "prediction": i * 2} for i in "cba"])
    assert [sample.generated_answer for sample in read(data, predictions)[0]] == ["aa", "bb", "cc"]


COCO = {
    "images": [{"id": 7, "file_name": "7.jpg"}, {"id": 8, "file_name": "8.jpg"}],
    "annotations": [
        {"image_id": 7, "id": 1, "caption": "a dog"},
        {"image_id": 8, "id": 2, "caption": "a cat"},
        {"image_id": 7, "id": 3, "caption": "the dog"},
    ],
}


def test_the_coco_pair(tmp_path):
    data = tmp_path / "captions.json"
    data.write_text(json.dumps(COCO))
    results = write(tmp_path / "results.json", [{"image_id": 8, "caption": "cat"}, {"image_id": 7, "caption": "dog"}])
    samples, _ = read(data, results)
    assert samples == [
        Sample(id="7", image="7.jpg", references=["a dog", "the dog"], generated_answer="dog"),
        Sample(id="8", image="8.jpg", references=["a cat"], generated_answer="cat"),
    ]


def test_coco_annotations_must_have_image_and_caption(tmp_path):
    data = tmp_path / "captions.json"
    data.write_text(json.dumps({"annotations": [{"image_id": 1}, {"caption": "x"}, {"image_id": 1, "caption": "x"}]}))
    with pytest.raises(InputError, match=r"annotations\[0\]") as refused:
        read(data)
    assert refused.value.total == 2


def test_a_likely_misspelling_is_pointed_out(tmp_path):
    _, summary = read(write(tmp_path / "data.jsonl", [{"id": "a", "reference": "x"}]))
    assert summary.notes == [
        "the column 'reference' is kept as metadata. Did you mean 'references'? Then use --map references=reference"
    ]


def test_a_field_that_is_there_is_not_pointed_out(tmp_path):
    path = write(tmp_path / "data.jsonl", [{"id": "a", "pred": "x", "generated_answer": "y", "referencs": ["x"]}])
    _, summary = read(path, columns={"generated_answer": "pred"})
    assert [note for note in summary.notes if "generated_answer" in note] == []
    assert "'referencs' is kept as metadata. Did you mean 'references'?" in summary.notes[0]


def test_empty_cells_are_null_except_for_the_answer(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,question,expected_answer,generated_answer,relevant\na,,,,true\n")
    samples, summary = read(path)
    assert samples == [Sample(id="a", generated_answer="", relevant=True)]
    assert summary.blank_answers == 1


def test_images_in_memory_are_stored_losslessly():
    image = Image.new("RGB", (3, 2), (1, 2, 3))
    (stored,) = to_samples(to_table([Sample(id="a", image=image)], 0))
    again = Image.open(io.BytesIO(stored.image))
    assert (again.format, again.mode, again.tobytes()) == ("PNG", "RGB", image.tobytes())
    assert to_samples(to_table([Sample(id="a", image=b"raw"), Sample(id="b", image="x.jpg")], 0))[1].image == "x.jpg"


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
samples_of_any_kind = st.builds(
    Sample,
    id=text,
    question=st.none() | text,
    references=st.none() | st.lists(text, min_size=1, max_size=3),
    generated_answer=st.none() | text,
    relevant=st.none() | st.booleans(),
    annotations=st.none() | st.dictionaries(text, text, min_size=1, max_size=2),
    perplexity=st.none() | st.floats(1, 1e300),
    logprobs=st.none() | st.lists(st.floats(-1e300, 0), max_size=3),
    group=st.none() | text,
    metadata=st.dictionaries(text, st.integers(-(2**53), 2**53) | text | st.booleans(), max_size=3),
)


@given(st.lists(samples_of_any_kind, min_size=1, max_size=5))
def test_samples_are_read_back_unchanged(samples):
    assert to_samples(to_table(samples, 0)) == samples


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=8), st.booleans(), st.sampled_from([None, 1]), st.integers(1, 5))
def test_array_elements_are_found_for_any_content(values, ascii_only, indent, limit):
    data = json.dumps(values, ensure_ascii=ascii_only, indent=indent).encode()
    elements_read, position, closed, line = [], 1, False, 1
    while not closed:
        elements, position, passed, closed, broken = array_elements(data, position, limit)
        assert not broken
        for begin, end, before in elements:
            assert line + before == 1 + data.count(b"\n", 0, begin)
            elements_read.append(json.loads(data[begin:end]))
        line += passed
    assert elements_read == values


def repeated_by_the_standard_library(data):
    repeated = []

    def collect(pairs):
        keys = [key for key, _ in pairs]
        repeated.extend(key for index, key in enumerate(keys) if key in keys[:index])
        return None

    json.loads(data, object_pairs_hook=collect)
    return sorted(repeated)


@st.composite
def json_objects_with_repeats(draw, depth=2):
    names = draw(st.lists(st.sampled_from(['"a"', '"b"', '"\\u0061"', '"a\\""', '"é"', '"\\u00e9"', '""']), max_size=5))
    inner = st.just("1") | st.just('"}{\\""') | st.just("[{}, []]")
    values = inner | json_objects_with_repeats(depth=depth - 1) if depth else inner
    return "{" + ", ".join(f"{name}: {draw(values)}" for name in names) + "}"


@given(st.lists(json_objects_with_repeats(), max_size=4))
@settings(max_examples=300)
def test_repeated_keys_are_those_the_standard_library_finds(objects):
    expected = sorted(key for item in objects for key in repeated_by_the_standard_library(item))
    joined = "\n".join(objects).encode()
    assert sorted(key for _, key in repeated_keys(joined, True)) == expected
    assert sorted(key for item in objects for _, key in repeated_keys(item.encode(), False)) == expected


def test_many_keys_in_one_object_stay_fast_and_exact():
    names = [f"k{number}" for number in range(50_000)]
    data = json.dumps(dict.fromkeys(names, 1)).encode()
    assert repeated_keys(data, True) == []
    assert [key for _, key in repeated_keys(data[:-1] + b', "k123": 2}', True)] == ["k123"]


@given(st.binary(max_size=200))
def test_the_scanners_accept_any_bytes(data):
    repeated_keys(data, True)
    repeated_keys(data, False)
    array_elements(data, 0, 10)


def test_a_limit_reads_no_further(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"id": "a"}\n{"id": "b"}\nnot json\n')
    assert len(read(path, limit=2)[0]) == 2


def test_columns_and_records_in_memory():
    @metric("length")
    def length(sample):
        return float(len(sample.generated_answer))

    columns = evaluate({"id": ["a", "b"], "prediction": ["x", "yyy"]}, metrics=["length"])
    records = evaluate([{"id": "a", "prediction": "x"}, {"id": "b", "prediction": "yyy"}], metrics=["length"])
    assert columns["length"]["value"] == records["length"]["value"] == 2.0


def test_duplicate_ids_in_memory_are_refused():
    with pytest.raises(InputError, match="lines 1 and 3"):
        evaluate([Sample(id="a"), Sample(id="b"), Sample(id="a")], metrics=["cider"])


def test_a_path_given_as_text_is_a_file(tmp_path):
    path = write(tmp_path / "data.jsonl", ROWS)
    assert len(evaluate(str(path), metrics=["cider"])) == 2
    assert isinstance(path, Path)
