"""Data and predictions in separate files, joined in parallel: the same bytes, counts and messages as one by one."""

from __future__ import annotations

import csv
import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.data.readers import parts
from tests.run.reading_both_ways import Together, assert_both_ways_equal, read, read_in_order, small_splits

data_fields = st.fixed_dictionaries(
    {"references": st.lists(st.sampled_from(["a", "b c", "é"]), min_size=1, max_size=3)},
    optional={
        "split": st.sampled_from(["val", "test"]),
        "metadata": st.dictionaries(st.sampled_from(["k", "m"]), st.sampled_from([1, 2]), max_size=2),
        "caption": st.sampled_from(["犬", "e\u0301"]),
        "image": st.just("a.png"),
    },
)
prediction_fields = st.fixed_dictionaries(
    {},
    optional={
        "generated_answer": st.sampled_from(["a", "", " ", "a\nb"]),
        "k": st.sampled_from([1, 2]),
        "caption": st.just("犬"),
        "image": st.just("a.png"),
        "images": st.just(["a.png", "b.png"]),
        "annotations": st.sampled_from([{}, {"ann": "yes"}]),
        "choices": st.sampled_from([[], ["a", "b"]]),
        "boxes": st.just([[0, 0, 1, 1]]),
        "metadata": st.dictionaries(st.sampled_from(["m", "é", "input_tokens"]), st.sampled_from([1, 2.5, [{}]])),
        "logprobs": st.lists(st.floats(-5, 0), min_size=1, max_size=2),
        "captoin": st.just("x"),
        "errr": st.just("x"),
    },
)
sizes = st.fixed_dictionaries(
    {
        "split": st.integers(1, 200),
        "part": st.integers(1, 5),
        "block": st.sampled_from([7, 1 << 20]),
        "bucket": st.integers(1, 9),
    }
)


@st.composite
def sides(draw):
    """The records of both sides. Some ids may be missing or occur twice."""
    pairs = draw(st.lists(st.tuples(data_fields, prediction_fields), min_size=1, max_size=14))
    data = [{"id": f"s{number}", **record} for number, (record, _) in enumerate(pairs)]
    predictions = [{"id": f"s{number}", **record} for number, (_, record) in enumerate(pairs)]
    predictions = draw(st.permutations(predictions))
    change = draw(st.sampled_from([None, None, "missing", "twice", "other"]))
    if change == "missing":
        predictions.pop()
    elif change == "twice":
        predictions[0] = predictions[-1]
    elif change == "other":
        predictions[0] = {"id": "other"}
    return data, predictions


def write(path, records):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def write_in_two(folder, records):
    write(folder / "0.jsonl", records[: len(records) // 2])
    (folder / "1.jsonl.gz").write_bytes(
        gzip.compress("\n".join(json.dumps(record) for record in records[len(records) // 2 :]).encode())
    )
    return folder


@given(sides(), sizes, st.sampled_from([None, 3]), st.booleans())
def test_any_pair(tmp_path_factory, records, numbers, workers, partial):
    folder = tmp_path_factory.mktemp("pair")
    data, predictions = (write_in_two(folder / name, side) for name, side in zip("dp", records, strict=True))
    with small_splits(**numbers):
        assert_both_ways_equal(data, predictions, workers=workers, allow_partial=partial)


def rows(count):
    return [{"id": f"s{row}", "references": ["a dog"], "split": "val" if row % 3 else "test"} for row in range(count)]


def answers(count, **more):
    records = [
        {"id": f"s{row}", "generated_answer": f"a dog {row}" if row % 5 else " ", **more} for row in range(count)
    ]
    random.Random(3).shuffle(records)
    return records


@pytest.fixture
def tiny():
    with small_splits(300, bucket=9):
        yield


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "data.jsonl", rows(50))


@pytest.mark.parametrize("workers", [None, 2, 3])
def test_a_pair_is_joined_in_parallel(tmp_path, tiny, data, workers):
    predictions = write(tmp_path / "predictions.jsonl", answers(50, captoin="x"))
    assert assert_both_ways_equal(data, predictions, workers=workers, by=["split"])


def test_values_on_both_sides_are_merged(tmp_path, tiny, data):
    predictions = write(tmp_path / "predictions.jsonl", answers(50, split="val", references=["a dog"], n=2))
    assert assert_both_ways_equal(data, predictions, by=["predictions.split"])
    assert read_in_order(data, predictions, by=["predictions.split"])[3] is None


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_columns_that_belong_to_the_data(tmp_path, tiny, suffix):
    """The data have no metadata and few fields: whole columns of the predictions are left out or renamed."""
    data = write(tmp_path / "data.jsonl", [{"id": f"s{row}", "references": ["a dog"]} for row in range(50)])
    records = answers(50, caption="a dog", image="a.png", input_tokens=3, n=2.5, tags=["b", "a"])
    path = tmp_path / f"predictions{suffix}"
    if suffix == ".jsonl":
        write(path, [{**record, "boxes": [[0, 0, 1, 1]]} for record in records])
    else:
        pq.write_table(pa.Table.from_pylist(records), path, row_group_size=8)
    assert assert_both_ways_equal(data, path, by=["predictions.n", "input_tokens"])
    _, _, info, error = read(Together(), data, path, by=["predictions.n"])
    assert error is None
    unused, kept = info.input_notes
    assert "not used, because they belong to DATA: image (50 of 50 samples), caption (50 of 50 samples)" in unused
    assert "predictions.n (50 of 50 samples), predictions.tags (50 of 50 samples)" in kept
    assert assert_both_ways_equal(data, path, map={"image": "image"})


def test_columns_with_common_names(tmp_path, tiny):
    """`answer` is a reference in the data and the model's answer in the predictions; VQA results have their own ids."""
    gold = [{"id": f"q{row}", "answer": f"{row} dogs"} for row in range(50)]
    data = write(tmp_path / "data.jsonl", gold)
    assert assert_both_ways_equal(data, write(tmp_path / "predictions.jsonl", gold[::-1]))
    results = [{"question_id": record["id"], "answer": record["answer"]} for record in gold[::-1]]
    assert assert_both_ways_equal(data, write(tmp_path / "results.jsonl", results))


def test_other_formats(tmp_path, tiny, data):
    with (tmp_path / "predictions.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "generated_answer"])
        writer.writeheader()
        writer.writerows(answers(50))
    assert assert_both_ways_equal(data, tmp_path / "predictions.csv")
    path = tmp_path / "predictions.parquet"
    pq.write_table(pa.Table.from_pylist(answers(50)), path, row_group_size=8)
    assert assert_both_ways_equal(data, path)
    pq.write_table(pa.Table.from_pylist(answers(50, split="val")), path, row_group_size=8)
    assert not assert_both_ways_equal(data, path)  # values of Parquet are compared before they are stored


def test_predictions_are_divided_in_several_steps(tmp_path, data):
    with small_splits(300, bucket=9, chunk=1):
        assert assert_both_ways_equal(data, write(tmp_path / "predictions.jsonl", answers(50)))


def test_folder_keys_and_annotators(tmp_path, tiny, data):
    (tmp_path / "p").mkdir()
    predictions = write(tmp_path / "p" / "fold=1" / "x.jsonl", answers(50, ann="yes"))
    assert assert_both_ways_equal(data, predictions.parent.parent, annotators=["ann"], by=["predictions.fold"])
    assert read_in_order(data, predictions.parent.parent, annotators=["ann"], by=["predictions.fold"])[3] is None


def unusual():
    yield "an id without a prediction", answers(49), {}
    yield "a prediction without data", answers(51), {}
    yield "another id", [*answers(49), {"id": "x"}], {}
    yield "a prediction twice", [*answers(49), answers(1)[0]], {}
    yield "different values", answers(50, references=["a cat"]), {}
    yield "a refused prediction", [*answers(49), {"id": "s49", "generated_answer": 5}], {}
    yield "a column that no record has", answers(50), {"map": {"caption": "nowhere"}}
    yield "too many slices", [{**row, "k": row["id"] * 2} for row in answers(50)], {"by": ["predictions.k"]}


@pytest.mark.parametrize(("predictions", "settings"), [pytest.param(*case[1:], id=case[0]) for case in unusual()])
def test_a_doubt_gives_the_message_of_today(tmp_path, tiny, data, predictions, settings, monkeypatch):
    monkeypatch.setattr("multimodal_eval.analysis.slices.MAX_SLICES", 40)
    path = write(tmp_path / "predictions.jsonl", predictions)
    assert not assert_both_ways_equal(data, path, **settings)
    assert read_in_order(data, path, **settings)[3] is not None


def test_unmatched_ids_are_allowed(tmp_path, tiny, data):
    path = write(tmp_path / "predictions.jsonl", [*answers(48), {"id": "x"}, {"id": "y"}])
    assert not assert_both_ways_equal(data, path, allow_partial=True)


def test_media_of_predictions_end_a_part_early(tmp_path, data, monkeypatch):
    monkeypatch.setattr(parts, "MEDIA_BYTES", 50)
    path = write(tmp_path / "predictions.jsonl", answers(50, image="x" * 20))
    with small_splits(300, part=10):
        assert not assert_both_ways_equal(data, path, map={"image": "image"})
        assert assert_both_ways_equal(data, path)  # the images are not used
