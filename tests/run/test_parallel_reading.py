"""Reading in parallel stores the same bytes, counts and messages as reading from start to end."""

from __future__ import annotations

import csv
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval._native import count_records
from multimodal_eval.data.readers import parts
from multimodal_eval.data.readers.files import DataFile
from multimodal_eval.data.readers.splits import Range, counted, splits_of, tasks_of
from tests.run.reading_both_ways import (
    Crashing,
    Together,
    assert_both_ways_equal,
    read,
    read_by_processes,
    read_in_order,
    small_splits,
)

LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n \t\n", b"\n\x0b\x0c\n"])


def rows(count, **more):
    return [
        {"id": f"s{row}", "generated_answer": f"a dog {row}", "references": ["a dog"], **more} for row in range(count)
    ]


def write(path, records, end="\n"):
    path.write_text(end.join(map(json.dumps, records)) + end)
    return path


fields = st.fixed_dictionaries(
    {},
    optional={
        "split": st.sampled_from(["val", "test"]),
        "captoin": st.sampled_from(["é", "犬", "e\u0301"]),
        "generated_answer": st.sampled_from(["a", "", " ", "a\nb"]),
        "references": st.lists(st.sampled_from(["a", "b c", "é"]), min_size=1, max_size=3),
        "n": st.integers(-5, 5) | st.none(),
        "image": st.sampled_from(["a.png", "e\u0301.png"]),
        "logprobs": st.lists(st.floats(-5, 0), min_size=1, max_size=2),
    },
)
odd = st.sampled_from(
    [b'{"id": "s1"}', b'{"id": 3', b"[]", b'{"id": "x", "n": "text"}', b'{"id": ""}', b"\xff", b'{"a": 1}', b"\0"]
)


@st.composite
def files(draw, is_clean):
    """The bytes of some files; their ids are numbered through."""
    contents, number = [], 0
    for _ in range(draw(st.integers(1, 3))):
        data = draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\n", b"\xef\xbb\xbf \n"]))
        for record in draw(st.lists(fields, max_size=8)):
            number += 1
            line = json.dumps({"id": f"s{number}", **record}, ensure_ascii=draw(st.booleans())).encode()
            data += line + draw(LINE_ENDS)
        if draw(st.booleans()):
            data = data.rstrip(b"\n")
        contents.append(data)
    if not is_clean and draw(st.booleans()):
        place = draw(st.integers(0, len(contents) - 1))
        lines = contents[place].split(b"\n")
        lines.insert(draw(st.integers(0, len(lines))), draw(odd))
        contents[place] = b"\n".join(lines)
    return contents


sizes = {"split": st.integers(1, 200), "part": st.integers(1, 7), "block": st.sampled_from([7, 60, 1 << 20])}


def write_files(folder, contents, is_compressed):
    for number, content in enumerate(contents):
        name = folder / f"part-{number}.jsonl"
        if is_compressed and number % 2:
            name.with_suffix(".jsonl.gz").write_bytes(gzip.compress(content))
        else:
            name.write_bytes(content)
    return folder


@given(files(is_clean=True), st.booleans(), st.fixed_dictionaries(sizes), st.sampled_from([None, 2, 3]))
def test_any_clean_files(tmp_path_factory, contents, is_compressed, numbers, workers):
    folder = write_files(tmp_path_factory.mktemp("clean"), contents, is_compressed)
    with small_splits(bucket=4, **numbers):
        assert_both_ways_equal(folder, workers=workers)


@given(files(is_clean=False), st.booleans(), st.fixed_dictionaries(sizes))
def test_any_files(tmp_path_factory, contents, is_compressed, numbers):
    folder = write_files(tmp_path_factory.mktemp("any"), contents, is_compressed)
    with small_splits(bucket=4, **numbers):
        assert_both_ways_equal(folder)
        assert_both_ways_equal(folder, by=["split"], map={"caption": "captoin"})


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_column_with_a_common_name(tmp_path, suffix):
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(3):
        records = [{"id": f"{number}-{row}", "pred": f'a "{row}"\ndog', "caption": "a dog"} for row in range(20)]
        path = folder / f"part-{number}{suffix}"
        if suffix == ".jsonl":
            write(path, records)
        elif suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(records), path, row_group_size=7)
        else:
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["id", "pred", "caption"])
                writer.writeheader()
                writer.writerows(records)
    with small_splits(300):
        assert assert_both_ways_equal(folder)
        _, stored, info, _ = read(Together(), folder)
    assert info.input_notes == ["the column 'pred' is read as generated_answer"]
    assert len([name for name in stored if "part-" in name and "checksums" not in name]) == 20  # of three samples


@given(st.binary(max_size=40), st.integers(1, 40))
def test_counted_lines(tmp_path_factory, content, size):
    content = content.replace(b"\0", b"\n").replace(b"\xff", b"\n")
    path = tmp_path_factory.mktemp("counted") / "data.jsonl"
    path.write_bytes(content)
    lines = [line for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line and not line.isspace()]
    ranges = [each for split in splits_of([DataFile(path)], size) for part in split for each in counted(part)]
    assert sum(each.records for each in ranges) == len(lines)
    assert b"".join(content[each.start : each.stop] for each in ranges) == content
    content = content.removeprefix(b"\xef\xbb\xbf")
    for most in range(len(lines) + 1):
        records, offset, _ = count_records(content, most)
        assert records == most
        left = [line for line in content[offset:].split(b"\n") if line and not line.isspace()]
        assert left == lines[most:]


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6), st.integers(1, 12))
def test_tasks_have_every_row_once(counts, size):
    file = DataFile(None)
    groups, place = [], 0
    for group in counts:
        ranges = []
        for records in group:
            ranges.append(Range(file, 2 * place, 2 * place + 1, 1, records))  # never adjacent
            place += 1
        if ranges:
            groups.append(tuple(ranges))
    total = sum(map(sum, counts))
    tasks = tasks_of(groups, size)
    assert [task.number for task in tasks] == list(range(len(tasks)))
    row = 0
    for task in tasks:
        assert task.first_row == row
        assert task.first_row % size == 0
        assert task.skip + task.rows <= sum(each.records for each in task.ranges)
        row += task.rows
    assert row == total


@pytest.fixture
def tiny():
    with small_splits(300):
        yield


def test_several_files_are_read_in_parallel(tmp_path, tiny):
    for number in range(4):
        write(tmp_path / f"part-{number}.jsonl", [{**row, "id": f"{number}-{row['id']}"} for row in rows(7, split="a")])
    for workers in (None, 2, 3):
        assert assert_both_ways_equal(tmp_path, workers=workers, by=["split"])


@pytest.mark.parametrize("many", [1, 1000])
def test_many_splits_are_read_in_processes(tmp_path, tiny, many, nothing_is_left_running):
    path = write(tmp_path / "data.jsonl", rows(60))
    assert read_by_processes(path, many) == (True, *read_in_order(path)[1:])


def test_a_crash_ends_the_run(tmp_path, tiny):
    """A process that crashes on every attempt is an error, after all other tasks have ended."""
    path = write(tmp_path / "data.jsonl", rows(60))
    assert read(Crashing(), path)[3] == "RunFolderError: a process crashed while reading the input: x"


def test_annotators_and_folder_keys_are_read_record_by_record(tmp_path, tiny):
    for fold in (1, 2):
        (tmp_path / f"fold={fold}").mkdir()
        records = [{**row, "id": f"{fold}-{row['id']}"} for row in rows(8, ann="yes")]
        write(tmp_path / f"fold={fold}" / "data.jsonl", records)
    assert assert_both_ways_equal(tmp_path, annotators=["ann"], by=["fold"])
    assert assert_both_ways_equal(tmp_path, workers=2)


def test_csv_files(tmp_path, tiny):
    for number in range(3):
        lines = [f'{number}-{row},"a ""dog""\n{row}",val' for row in range(20)]
        (tmp_path / f"part-{number}.csv").write_text("\n".join(["id,generated_answer,split", *lines]))
    assert assert_both_ways_equal(tmp_path, by=["split"])
    (tmp_path / "part-2.csv").write_text('id,generated_answer\n7,"a')
    assert not assert_both_ways_equal(tmp_path)


def test_parquet_row_groups(tmp_path, tiny):
    pq.write_table(pa.Table.from_pylist(rows(40)), tmp_path / "a.parquet", row_group_size=9)
    assert assert_both_ways_equal(tmp_path / "a.parquet", workers=2)
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-50])
    assert not assert_both_ways_equal(tmp_path / "b.parquet")
    assert not assert_both_ways_equal(tmp_path)


def test_json_arrays(tmp_path, tiny):
    for number in range(3):
        records = [{**row, "id": f"{number}-{row['id']}"} for row in rows(7)]
        (tmp_path / f"{number}.json").write_text(json.dumps(records))
    assert assert_both_ways_equal(tmp_path)


def unusual():
    """(name, records, settings) of inputs that are refused, or whose parts end early."""
    many = rows(30)
    yield "a duplicate in another split", [*many, many[0]], {}
    yield "a refused record", [*many, {"id": 5.5}], {}
    yield (
        "mixed types in different splits",
        [*rows(20, k="text"), *({**row, "id": f"t{row['id']}", "k": 1} for row in many)],
        {},
    )
    yield "a column that no record has", many, {"map": {"caption": "nowhere"}}
    yield "an annotator that no record has", many, {"annotators": ["nobody"]}
    yield "too many slices", [{**row, "k": row["id"]} for row in rows(300)], {"by": ["k"]}
    strata = {"by": "k", "weights": {"a": 0.5, "b": 0.5}}
    split = [{**row, "group": "g", "k": "a" if number < 15 else "b"} for number, row in enumerate(many)]
    yield "a group in two strata", split, {"strata": strata}


@pytest.mark.parametrize(("records", "settings"), [pytest.param(*case[1:], id=case[0]) for case in unusual()])
def test_a_doubt_gives_the_message_of_today(tmp_path, tiny, records, settings):
    path = write(tmp_path / "data.jsonl", records)
    assert not assert_both_ways_equal(path, **settings)
    assert read_in_order(path, **settings)[3] is not None


def test_large_media_end_a_part_early(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "MEDIA_BYTES", 50)
    path = write(tmp_path / "data.jsonl", rows(40, image="x" * 20))
    with small_splits(300, part=10):
        assert not assert_both_ways_equal(path)
    with small_splits(300, part=2):
        assert assert_both_ways_equal(path)


@pytest.mark.parametrize("content", [b"", b"\n \n" * 300, "{}".encode("utf-16") * 400])
def test_files_without_samples(tmp_path, tiny, content):
    (tmp_path / "data.jsonl").write_bytes(content)
    assert not assert_both_ways_equal(tmp_path / "data.jsonl")


def test_a_limit_and_one_split_are_read_here(tmp_path):
    path = write(tmp_path / "data.jsonl", rows(30))
    with small_splits(300):
        assert not assert_both_ways_equal(path, limit=7)
    with small_splits(1 << 20):
        assert not assert_both_ways_equal(path)
