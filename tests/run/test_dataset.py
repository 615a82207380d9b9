"""Every Parquet reader can read the parts of a run as one dataset, even if only some samples have a column."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate, metric, rescore, resume
from multimodal_eval.data.runs import sample_table
from tests.parts import leave_columns_uneven, set_part_size

COUNT, SIZE = 13, 2


def register_uneven():
    """A metric with parts that only some samples have, and that are missing from some parts of the run."""

    @metric("uneven", needs=("generated_answer",), version="1")
    def compute_uneven(sample: Sample) -> dict[str, float]:
        number = int(sample.id)
        parts = {"first": 1.0} if number == 3 else {"late": number / 2} if number > 8 else {}
        return {"value": float(number), **parts}


def samples() -> list[Sample]:
    """The first part has no answers, so that BLEU has no scores there."""
    return [
        Sample(
            id=str(number),
            references=["a dog runs on the street"],
            generated_answer="a dog runs" if number > 1 else None,
            image="x.png" if number == 5 else None,
            logprobs=[-0.5] if number > 7 else None,
            metadata={"k": number} if number % 2 else {},
        )
        for number in range(COUNT)
    ]


@pytest.fixture
def run(tmp_path, monkeypatch):
    register_uneven()
    set_part_size(monkeypatch, SIZE)
    return evaluate(samples(), metrics=["uneven", "bleu"], output=tmp_path / "run")


def schemas(run, kind):
    return [pq.read_schema(path) for path in sorted((run.path / kind).iterdir())]


def open_in_every_way(folder):
    files = f"{folder}/*.parquet"
    yield ds.dataset(folder).to_table().to_pylist()
    yield pa.Table.from_pandas(pd.read_parquet(folder), preserve_index=False).to_pylist()
    yield pl.read_parquet(files).to_arrow().to_pylist()
    yield pl.scan_parquet(folder).collect().to_arrow().to_pylist()


@pytest.mark.parametrize("kind", ["samples", "scores"])
def test_all_parts_have_one_schema(run, kind):
    first, *rest = schemas(run, kind)
    assert len(rest) == 6
    assert all(schema.equals(first) for schema in rest)
    assert not any(pa.types.is_null(field.type) for field in first)


def test_a_metric_keeps_its_columns_together(run):
    owners = [name.partition(":")[0].partition(".")[0] for name in schemas(run, "scores")[0].names]
    assert list(dict.fromkeys(owners)) == ["row", "id", "group", "uneven", "bleu"]
    assert sorted(owners[3:], reverse=True) == owners[3:]


def test_every_reader_sees_one_table(run):
    expected = run.scores()
    assert expected.column("uneven.late").to_pylist() == [None] * 9 + [4.5, 5.0, 5.5, 6.0]
    assert "bleu.bleu_1" in expected.column_names
    for rows in open_in_every_way(run.path / "scores"):
        assert [row.keys() for row in rows] == [dict.fromkeys(expected.column_names).keys()] * COUNT
        for name in ("row", "id", "uneven", "uneven.late", "bleu.bleu_1", "bleu:status", "bleu:stats"):
            # pandas has NaN instead of null among numbers
            values = [None if row[name] != row[name] else row[name] for row in rows]
            assert values == expected.column(name).to_pylist()
    for rows in open_in_every_way(run.path / "samples"):
        assert [row["id"] for row in rows] == [str(number) for number in range(COUNT)]
        assert [row["image"] for row in rows].count("x.png") == 1


def test_duckdb_sees_one_table(run):
    duckdb = pytest.importorskip("duckdb")
    query = f"""select sum("uneven.late"), count(*), count("uneven.first") from '{run.path}/scores/*.parquet'"""
    assert duckdb.connect().execute(query).fetchall() == [(21.0, COUNT, 1)]
    joined = f"""select count(*) from '{run.path}/scores/*.parquet' join '{run.path}/samples/*.parquet' using (row)"""
    assert duckdb.connect().execute(joined).fetchall() == [(COUNT,)]


def test_a_run_killed_while_columns_are_added_resumes_to_the_same_bytes(run, tmp_path, monkeypatch):
    def files(path):
        return {file.name: file.read_bytes() for file in (path / "scores").iterdir()}

    write_part = sample_table.RunFolder.write_part
    left = COUNT // SIZE + 1 + 7 + 2  # samples, scores, and two of the rewritten parts

    def failing(self, kind, number, table):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        write_part(self, kind, number, table)

    path = tmp_path / "killed"
    rows = tmp_path / "data.parquet"
    pq.write_table(pa.Table.from_pylist([_record(sample) for sample in samples()]), rows)
    monkeypatch.setattr(sample_table.RunFolder, "write_part", failing)
    with pytest.raises(KeyboardInterrupt):
        evaluate(rows, metrics=["uneven", "bleu"], output=path)
    monkeypatch.setattr(sample_table.RunFolder, "write_part", write_part)
    assert len({len(pq.read_schema(file)) for file in (path / "scores").iterdir()}) > 1
    resume(path)
    assert files(path) == files(run.path)


def _record(sample):
    return {
        "id": sample.id,
        "references": sample.references,
        "generated_answer": sample.generated_answer,
        "image": sample.image,
        "logprobs": sample.logprobs,
        "metadata": sample.metadata or None,
    }


def test_a_rescored_run_is_one_dataset_too(run, tmp_path):
    before = [path.read_bytes() for path in sorted((run.path / "scores").iterdir())]
    again = rescore(run, {"metrics": ["rouge_l", "bleu", "uneven"]}, output=tmp_path / "again")
    first, *rest = schemas(again, "scores")
    assert all(schema.equals(first) for schema in rest)
    owners = dict.fromkeys(name.partition(":")[0].partition(".")[0] for name in first.names)
    assert list(owners) == ["row", "id", "group", "rouge_l", "bleu", "uneven"]
    assert again.scores().column("uneven.late").equals(run.scores().column("uneven.late"))
    assert [path.read_bytes() for path in sorted((run.path / "scores").iterdir())] == before


def test_aligning_columns_does_not_change_results(run, monkeypatch):
    leave_columns_uneven(monkeypatch)
    uneven = evaluate(samples(), metrics=["uneven", "bleu"])
    assert not all(schema.equals(schemas(uneven, "scores")[0]) for schema in schemas(uneven, "scores"))
    assert uneven.results == run.results
    assert uneven.scores().select(run.scores().column_names).equals(run.scores())


names = st.sampled_from(["row", "a", "a:status", "a.x", "a.y", "a.z", "b", "b.x", "b.y"])


@given(st.lists(st.lists(names, unique=True, min_size=1), min_size=1), st.integers(0))
def test_the_columns_of_all_parts(parts, rewritten):
    schemas_of_parts = [pa.schema([(name, pa.float64()) for name in part]) for part in parts]
    whole = sample_table._union(schemas_of_parts)
    assert sorted(whole.names) == sorted({name for part in parts for name in part})
    owners = [name.partition(".")[0].partition(":")[0] for name in whole.names]
    assert [a for a, b in zip(owners, [None, *owners[:-1]], strict=True) if a != b] == list(dict.fromkeys(owners))
    # After an interruption the first parts already have all columns; the others still get the same.
    done = rewritten % (len(parts) + 1)
    assert sample_table._union([whole] * done + schemas_of_parts[done:]).names == whole.names
