"""Data frames, Arrow tables and datasets are read as the same records in a file; rows without ids are numbered."""

from __future__ import annotations

import datetime
import subprocess
import sys
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.readers.memory_input import NUMBERED, MemoryInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary

RECORDS: list[dict[str, object]] = [
    {"id": "a", "generated_answer": "a dog runs", "references": ["a dog", "the dog"], "length": 3, "language": "en"},
    {"id": "b", "generated_answer": "", "references": ["a cat"], "length": 0, "language": None},
    {"id": "c", "generated_answer": None, "references": ["é", "é"], "length": None, "language": "fr"},
]
WITHOUT_IDS = [{name: value for name, value in record.items() if name != "id"} for record in RECORDS]


def read(data, annotators=(), columns=None):
    """The samples and the notes."""
    problems, summary = Problems(), Summary()
    parts = MemoryInput(data, annotators, columns).parts(problems, summary, 1000)
    samples = [sample for part in parts for sample in part.samples(FIELDS)]
    problems.raise_if_any()
    return samples, summary.notes


def dataset(rows):
    return pytest.importorskip("datasets").Dataset.from_list(rows)


TABLES = {
    "pandas": pd.DataFrame,
    "pandas with Arrow types": lambda rows: pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "lazy polars": lambda rows: pl.DataFrame(rows).lazy(),
    "an Arrow table": pa.Table.from_pylist,
    "an Arrow batch": pa.RecordBatch.from_pylist,
    "an Arrow reader": lambda rows: pa.Table.from_pylist(rows).to_reader(),
    "a dataset": dataset,
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "a generator": lambda rows: (row for row in rows),
}


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]


def test_a_table_has_the_samples_of_its_records(table):
    samples, notes = read(table(RECORDS))
    assert samples == read(RECORDS)[0]
    assert notes == []
    # An empty answer is blank; a missing one is missing.
    assert [sample.generated_answer for sample in samples] == ["a dog runs", "", None]
    assert [sample.metadata for sample in samples] == [
        {"length": 3, "language": "en"},
        {"length": 0},
        {"language": "fr"},
    ]


def test_rows_without_ids_are_numbered(table):
    samples, notes = read(table(WITHOUT_IDS))
    assert [sample.id for sample in samples] == ["0", "1", "2"]
    assert [msgspec.structs.replace(sample, id="") for sample in samples] == [
        msgspec.structs.replace(sample, id="") for sample in read(RECORDS)[0]
    ]
    assert notes == [NUMBERED]


def test_ids_that_are_null_in_all_rows_are_missing_ids():
    samples, notes = read([{"id": None, "prediction": "x"}, {"id": None, "prediction": "y"}])
    assert ([sample.id for sample in samples], notes) == (["0", "1"], [NUMBERED])


def test_the_run_notes_the_numbering_and_scores_as_with_ids():
    numbered = evaluate(WITHOUT_IDS, metrics=["bleu", "exact_match"])
    with_ids = evaluate(RECORDS, metrics=["bleu", "exact_match"])
    assert numbered.info.input_notes == [NUMBERED]
    assert with_ids.info.input_notes == []
    assert numbered.results == with_ids.results


@pytest.mark.parametrize("first_has_an_id", [True, False])
def test_ids_in_some_rows_only_are_refused(first_has_an_id):
    rows = [{"prediction": "x"}, {"id": "a", "prediction": "y"}, {"prediction": "z"}]
    rows = rows[1:] if first_has_an_id else rows
    with pytest.raises(InputError) as refused:
        read(rows)
    lines = [row for row, record in enumerate(rows, 1) if "id" not in record]
    assert [(problem.code, problem.line) for problem in refused.value.problems] == [
        ("MISSING_ID", line) for line in lines
    ]
    assert "Give every sample an id, or none: then they are numbered." in str(refused.value)


def test_a_mapped_column_must_exist():
    with pytest.raises(InputError, match="--map names the column 'key', which no record has"):
        read([{"id": "x"}, {"id": "y"}], columns={"group": ("key",)})
    with pytest.raises(InputError, match="MISSING_ID"):
        read([{"prediction": "x"}], columns={"id": ("key",)})


def test_columns_with_other_names_are_mapped(table):
    rows = [{"key": row["id"], "pred": row["generated_answer"], "a": "x", "b": "y"} for row in RECORDS]
    columns = {"id": ("key",), "generated_answer": ("pred",), "references": ("a", "b")}
    samples, _ = read(table(rows), columns=columns)
    expected = [
        Sample(id=row["id"], generated_answer=row["generated_answer"], references=["x", "y"]) for row in RECORDS
    ]
    assert samples == expected


def test_evaluate_maps_the_columns_of_a_frame():
    frame = pd.DataFrame({"pred": ["yes", "no"], "gold": ["yes", "yes"]})
    run = evaluate(frame, metrics="exact_match", map={"generated_answer": "pred", "expected_answer": "gold"})
    assert run["exact_match"]["value"] == 0.5


def test_a_missing_value_of_pandas_is_missing():
    frame = pd.DataFrame(
        {
            "prediction": pd.Series(["x", np.nan, None, pd.NA], dtype=object),
            "year": pd.Series([1, None, 3, None], dtype="Int64"),
            "size": [1.5, np.nan, 2.5, np.nan],
            "seen": pd.to_datetime(pd.Series(["2024-01-02", None, None, None])),
            "kind": pd.Categorical(["a", None, "b", None]),
        }
    )
    samples, _ = read(frame)
    assert [sample.generated_answer for sample in samples] == ["x", None, None, None]
    assert samples[0].metadata == {"year": 1, "size": 1.5, "seen": datetime.datetime(2024, 1, 2), "kind": "a"}
    assert [sample.metadata for sample in samples[1:]] == [{}, {"year": 3, "size": 2.5, "kind": "b"}, {}]


def test_not_a_number_is_a_value_in_polars():
    with pytest.raises(InputError, match="NONFINITE: `size` is nan"):
        read(pl.DataFrame({"id": ["a"], "size": [float("nan")]}))


def test_arrays_in_cells_are_lists(tmp_path):
    """pandas reads the lists of a Parquet file as arrays."""
    pq.write_table(pa.Table.from_pylist(RECORDS), tmp_path / "data.parquet")
    frame = pd.read_parquet(tmp_path / "data.parquet")
    assert isinstance(frame["references"][0], np.ndarray)
    assert read(frame)[0] == read(RECORDS)[0]


def test_images_in_a_frame():
    red = Image.new("RGB", (2, 2), "red")
    for frame in (pd.DataFrame({"image": [red]}), pl.DataFrame({"image": pl.Series([red], dtype=pl.Object)})):
        assert read(frame)[0][0].image is red


def test_the_index_of_a_frame():
    frame = pd.DataFrame({"prediction": ["x", "y"]}, index=[7, 8])
    assert [sample.id for sample in read(frame)[0]] == ["0", "1"]
    assert [sample.id for sample in read(frame.rename_axis("id"))[0]] == ["7", "8"]
    named = read(frame.rename_axis("image_id"))[0]
    assert [(sample.id, sample.metadata) for sample in named] == [("0", {"image_id": 7}), ("1", {"image_id": 8})]
    mapped, _ = read(frame.rename_axis("image_id"), columns={"id": ("image_id",)})
    assert [sample.id for sample in mapped] == ["7", "8"]
    levels = frame.set_index(pd.MultiIndex.from_tuples([("v", 1), ("v", 2)], names=["split", "id"]))
    assert [(sample.id, sample.metadata) for sample in read(levels)[0]] == [
        ("1", {"split": "v"}),
        ("2", {"split": "v"}),
    ]
    both = pd.DataFrame({"id": ["p", "q"]}, index=pd.Index([1, 2], name="id"))
    assert [sample.id for sample in read(both)[0]] == ["p", "q"]


def test_columns_with_the_same_name_are_refused():
    twice = pd.DataFrame([["a", "b"]], columns=["id", "id"])
    for table in (twice, pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["id", "id"])):
        with pytest.raises(InputError, match="DUPLICATE: the table has more than one column named 'id'"):
            read(table)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "the data must be a path, a frame, a table, or records. Got 5 instead."),
        (b"data.csv", "the data must be a path, a frame"),
        (pa.array([1]), "Int64Array is not a table with named columns"),
        (pd.Series(["x"], name="id"), "Series is not a table with named columns"),
        (["x"], "a sample must be a Sample or a mapping. Got 'x' instead."),
    ],
)
def test_other_data_are_refused(data, message):
    with pytest.raises(ConfigError) as refused:
        read(data)
    assert message in str(refused.value)


def test_an_empty_frame_is_refused():
    with pytest.raises(InputError, match="EMPTY: the input has no samples"):
        evaluate(pd.DataFrame({"prediction": []}), metrics="exact_match")


def test_a_dataset_keeps_its_selection_its_images_and_its_class_names():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        image=datasets.Image(), prediction=datasets.Value("string"), kind=datasets.ClassLabel(names=["cat", "dog"])
    )
    red = Image.new("RGB", (2, 2), "red")
    columns = {"image": [red, red, red], "prediction": ["x", "y", "z"], "kind": [0, 1, -1]}
    data = datasets.Dataset.from_dict(columns, features=features)
    samples, _ = read(data.select([2, 1]))
    assert [(sample.id, sample.generated_answer, sample.metadata) for sample in samples] == [
        ("0", "z", {}),
        ("1", "y", {"kind": "dog"}),
    ]
    assert samples[0].image.startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"several splits: 'val', 'test'. Pass one of them: data\['val'\]"):
        read(datasets.DatasetDict(val=data, test=data))


def test_a_dataset_is_recognised_without_the_library():
    """The part of the interface that is used: features, `with_format` and a slice."""

    class Dataset:
        __module__ = "datasets.arrow_dataset"

        @property
        def features(self):
            return {"kind": SimpleNamespace(int2str=None, names=["cat", "dog"]), "prediction": None}

        def with_format(self, name):
            return {"arrow": SlicedTable()}[name]

    assert [(sample.generated_answer, sample.metadata) for sample in read(Dataset())[0]] == [
        ("x", {"kind": "dog"}),
        ("y", {}),
    ]


class SlicedTable:
    def __getitem__(self, rows):
        return pa.table({"kind": [1, -1], "prediction": ["x", "y"]})[rows]


def test_no_library_of_frames_is_imported():
    code = (
        "import sys, multimodal_eval as m; r = m.evaluate([{'prediction': 'x', 'expected_answer': 'x'}] * 2, "
        "metrics='exact_match'); repr(r); r._repr_html_(); m.compute(predictions=['x'], references=['x'], "
        "metrics='exact_match'); print([n for n in ('pandas', 'polars', 'datasets', 'torch') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.strip() == "[]"
