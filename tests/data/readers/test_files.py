"""Folders, patterns and partitions give the same samples as one long file."""

from __future__ import annotations

import json
import os
import string
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import evaluate, load_run, resume
from multimodal_eval.core.errors import InputError
from multimodal_eval.core.records import InputFile
from multimodal_eval.data.readers import inputs as inputs_module
from multimodal_eval.data.readers.files import _natural, file_set
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.data.readers.test_readers import write
from tests.parts import set_part_size

FORMATS = ["jsonl", "ndjson", "json", "csv", "tsv", "parquet", "jsonl.gz", "csv.zst"]


def row(number: int, **more: object) -> dict[str, object]:
    return {"id": f"s{number}", "references": [f"a dog {number}"], "generated_answer": f"dog {number}", **more}


def rows(first: int, count: int) -> list[dict[str, object]]:
    return [row(number) for number in range(first, first + count)]


def put(path: Path, content: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, content)
    return path


def read(path, predictions=None, limit=None, allow_partial=False):
    problems, summary = Problems(), Summary()
    source = FileInput(Path(path), predictions and Path(predictions), {}, allow_partial)
    return list(source.samples(problems, summary, limit)), problems


def ids(path, **settings):
    samples, problems = read(path, **settings)
    assert problems.kept == []
    return [sample.id for sample in samples]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_folder_and_a_pattern_are_read_like_one_file(tmp_path, suffix):
    whole = put(tmp_path / f"whole.{suffix}", rows(0, 25))
    for part in range(12):
        put(tmp_path / "data" / f"part-{part}.{suffix}", rows(2 * part, 2 if part < 11 else 3))
    expected, _ = read(whole)
    assert [sample.id for sample in expected] == [f"s{number}" for number in range(25)]
    for name in (tmp_path / "data", tmp_path / "data" / f"part-*.{suffix}", tmp_path / "d?ta" / "*"):
        assert read(name)[0] == expected
    assert ids(tmp_path / "data", limit=3) == ["s0", "s1", "s2"]


def test_compressed_and_plain_files_have_the_same_format(tmp_path):
    put(tmp_path / "1.jsonl.gz", rows(0, 1))
    put(tmp_path / "2.jsonl", rows(1, 1))
    put(tmp_path / "3.ndjson.zst", rows(2, 1))
    assert ids(tmp_path) == ["s0", "s1", "s2"]


def test_files_that_are_not_data_are_skipped(tmp_path):
    for name in ("_SUCCESS", ".part-0.crc", "_metadata", "_temporary/part-9.jsonl", ".git/x.jsonl", "_common.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("not data")
    put(tmp_path / "_day=1" / "part-0.jsonl", rows(0, 1))  # Spark reads these
    put(tmp_path / "part-1.jsonl", rows(1, 1))
    for name in (tmp_path, tmp_path / "**", tmp_path / "**" / "*"):
        assert sorted(ids(name)) == ["s0", "s1"]


def test_a_name_that_exists_is_taken_literally(tmp_path):
    put(tmp_path / "part-[12].jsonl", rows(0, 1))
    put(tmp_path / "part-1.jsonl", rows(1, 1))
    put(tmp_path / "what?" / "x.jsonl", rows(2, 1))
    put(tmp_path / "whats" / "x.jsonl", rows(3, 1))
    put(tmp_path / "_hidden.jsonl", rows(4, 1))
    assert ids(tmp_path / "part-[12].jsonl") == ["s0"]
    assert ids(tmp_path / "part-[13].jsonl") == ["s1"]
    assert ids(tmp_path / "what?") == ["s2"]
    assert ids(tmp_path / "_hidden.jsonl") == ["s4"]


@pytest.mark.parametrize("name", ["*.jsonl", "nowhere/*.jsonl", "_x*.jsonl"])
def test_a_pattern_that_matches_nothing_is_an_error(tmp_path, name):
    put(tmp_path / "_x1.jsonl", rows(0, 1))
    with pytest.raises(InputError, match="NOT_FOUND: no file matches this pattern"):
        file_set(tmp_path / name)


def test_a_folder_without_data_is_an_error(tmp_path):
    (tmp_path / "_SUCCESS").write_text("")
    with pytest.raises(InputError, match="NOT_FOUND: the folder has no data"):
        file_set(tmp_path)


def test_files_of_two_formats_are_refused(tmp_path):
    put(tmp_path / "a.csv", rows(0, 1))
    put(tmp_path / "b.jsonl", rows(1, 1))
    with pytest.raises(
        InputError, match=r"b\.jsonl: FORMAT: all files must have the same format, but .*a\.csv has .*/\*\.csv"
    ):
        file_set(tmp_path)
    (tmp_path / "a.csv").rename(tmp_path / "a.txt")
    with pytest.raises(InputError, match=r"a\.txt: FORMAT: no format has the suffix '\.txt'"):
        file_set(tmp_path)


def test_coco_annotations_and_arrays_are_different_formats(tmp_path):
    put(tmp_path / "a.json", rows(0, 1))
    (tmp_path / "b.json").write_text('{"annotations": []}')
    with pytest.raises(InputError, match="the same format"):
        file_set(tmp_path)


def test_coco_annotations_in_several_files(tmp_path):
    for number in range(2):
        annotations = [{"image_id": number, "caption": f"a dog {number}"}]
        (tmp_path / f"captions-{number}.json").write_text(json.dumps({"annotations": annotations}))
        (tmp_path / f"results-{number}.json").write_text(json.dumps([{"image_id": number, "caption": "a dog"}]))
    run = evaluate(tmp_path / "captions-*.json", tmp_path / "results-*.json")
    assert "cider_d" in run.metrics
    assert len(run) == 2


def test_a_run_folder_is_not_data(tmp_path):
    evaluate([row(0), row(1)], metrics=["cider"], output=tmp_path / "run")
    with pytest.raises(InputError, match=r"a run folder, not data.*mmeval rescore"):
        file_set(tmp_path / "run")


def test_partitions_become_columns(tmp_path):
    put(tmp_path / "split=val" / "model=a%2Fb" / "part-0.parquet", rows(0, 1))
    put(tmp_path / "split=test" / "model=__HIVE_DEFAULT_PARTITION__" / "part-0.parquet", rows(1, 1))
    put(tmp_path / "split=test" / "model=007" / "part-0.parquet", rows(2, 1))
    expected = {
        "s0": {"split": "val", "model": "a/b"},
        "s1": {"split": "test"},
        "s2": {"split": "test", "model": "007"},
    }
    for name in (tmp_path, tmp_path / "split=*" / "*" / "*.parquet", tmp_path / "split=*"):
        assert {sample.id: sample.metadata for sample in read(name)[0]} == expected
    # A folder before the pattern does not become a column, because it has only one value.
    assert [sample.metadata for sample in read(tmp_path / "split=val" / "model=*")[0]] == [{"model": "a/b"}]


def test_a_dataset_written_by_pyarrow(tmp_path):
    table = pa.Table.from_pylist([row(number, split="val" if number % 2 else "test") for number in range(10)])
    by_split = ds.partitioning(pa.schema([("split", pa.string())]), flavor="hive")
    ds.write_dataset(table, tmp_path / "data", format="parquet", partitioning=by_split, max_rows_per_group=2)
    run = evaluate(tmp_path / "data", metrics=["rouge_l"], by=["split"])
    assert {sample.id: sample.metadata["split"] for sample in run.samples()} == {
        f"s{number}": "val" if number % 2 else "test" for number in range(10)
    }
    assert run.results["slices"]["split"]["val"]["n"] == 5


def test_a_partition_may_be_a_field_of_the_sample(tmp_path):
    put(tmp_path / "group=g1" / "0.csv", rows(0, 2))
    assert [sample.group for sample in read(tmp_path)[0]] == ["g1", "g1"]


def test_a_record_that_contradicts_its_folder(tmp_path):
    put(tmp_path / "fold=1" / "0.jsonl", [row(0, fold=1), row(1, fold=None), row(2, fold=2)])
    _, problems = read(tmp_path)
    assert [(p.code, p.line, p.field) for p in problems.kept] == [("CONFLICT", 3, "fold")]
    assert "the folder is named 'fold=1'" in str(problems.kept[0])


def test_duplicates_name_both_files(tmp_path):
    put(tmp_path / "a.jsonl", rows(0, 3))
    put(tmp_path / "b.jsonl", [row(5), row(1), row(5)])
    _, problems = read(tmp_path)
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    assert sorted((p.code, p.file, p.line, p.id, p.message) for p in problems.kept) == [
        ("DUPLICATE", str(second), 2, "s1", f"the id occurs twice, in {first}:2 and {second}:2"),
        ("DUPLICATE", str(second), 3, "s5", "the id occurs twice, in lines 1 and 3"),
    ]


def test_problems_name_their_file_and_line(tmp_path):
    put(tmp_path / "a.jsonl", [row(0, score=1)])
    (tmp_path / "b.jsonl").write_text('{"id": "x", "score": "high"}\n\n{"id": 1.5}\n{"id": "y"')
    _, problems = read(tmp_path)
    second = str(tmp_path / "b.jsonl")
    assert [(p.code, p.file, p.line) for p in problems.kept] == [
        ("TYPE", second, 1),
        ("TYPE", second, 3),
        ("TRUNCATED", second, 4),
    ]
    assert f"1 (number, {tmp_path / 'a.jsonl'}:1) and 'high' (text, line 1)" in problems.kept[0].message


def test_data_and_predictions_may_both_be_many_files(tmp_path):
    for part in range(3):
        put(tmp_path / "data" / f"{part}.csv", [{"id": f"s{n}", "caption": "a dog"} for n in (2 * part, 2 * part + 1)])
        answers = [{"id": f"s{n}", "generated_answer": f"dog {n}"} for n in (5 - part, part)]
        put(tmp_path / "answers" / f"part-{part}.jsonl", answers)
    samples, problems = read(tmp_path / "data", tmp_path / "answers" / "*.jsonl")
    assert problems.kept == []
    assert [(s.id, s.generated_answer) for s in samples] == [(f"s{n}", f"dog {n}") for n in range(6)]


def test_a_conflict_between_data_and_predictions_names_the_data_file(tmp_path):
    put(tmp_path / "data" / "0.jsonl", [row(0)])
    put(tmp_path / "data" / "1.jsonl", [row(1, question="who?")])
    put(tmp_path / "answers.jsonl", [{"id": "s0"}, {"id": "s1", "question": "what?"}])
    _, problems = read(tmp_path / "data", tmp_path / "answers.jsonl")
    assert [(p.code, p.file, p.line) for p in problems.kept] == [("CONFLICT", str(tmp_path / "data" / "1.jsonl"), 1)]


def test_the_run_lists_every_file(tmp_path):
    files = [put(tmp_path / "data" / f"part-{part}.jsonl", rows(3 * part, 3)) for part in range(2)]
    run = evaluate(str(tmp_path / "data" / "part-*.jsonl"), metrics=["cider"])
    assert run.info.input == [
        InputFile(path=str(file), bytes=file.stat().st_size, sha256=sha256(file.read_bytes()).hexdigest())
        for file in files
    ]
    assert run.info.config.image_root == str(tmp_path / "data")


def test_unreadable_files_and_folders_are_refused(tmp_path, monkeypatch):
    put(tmp_path / "a.jsonl", rows(0, 1))
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"b\.jsonl: NOT_FOUND: no such file"):
        file_set(tmp_path)
    (tmp_path / "b.jsonl").unlink()
    put(tmp_path / "locked" / "c.jsonl", rows(1, 1))
    listed = os.scandir

    def scandir(path):
        if Path(path).name == "locked":  # not by file permissions, because root may list everything
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        with pytest.raises(InputError, match=r"locked: NOT_FOUND: the folder cannot be read: Permission denied"):
            file_set(tmp_path)


def test_links_are_followed_once(tmp_path):
    put(tmp_path / "far" / "1.jsonl", rows(1, 1))
    put(tmp_path / "data" / "0.jsonl", rows(0, 1))
    (tmp_path / "data" / "link").symlink_to(tmp_path / "far")
    (tmp_path / "data" / "loop").symlink_to(tmp_path / "data")
    assert ids(tmp_path / "data") == ["s0", "s1"]


@pytest.mark.parametrize("name", ["part-*.jsonl", "."])
def test_an_interrupted_reading_resumes_from_another_folder(tmp_path, monkeypatch, name):
    # A working directory whose own name looks like a pattern and like a partition.
    home = tmp_path / "run=[1]*"
    for part in range(3):
        put(home / f"part-{part}.jsonl", rows(4 * part, 4))
    monkeypatch.chdir(home)
    set_part_size(monkeypatch, 4)
    whole = evaluate(name, metrics=["cider"], output=tmp_path / "whole")

    def interrupted(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inputs_module, "describe_file", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluate(name, metrics=["cider"], output=tmp_path / "broken")
    monkeypatch.chdir(tmp_path)
    resume(tmp_path / "broken")
    again = load_run(tmp_path / "broken")
    assert again.results == whole.results
    assert list(again.samples()) == list(whole.samples())
    assert [Path(file.path).name for file in again.info.input] == [f"part-{part}.jsonl" for part in range(3)]


names = st.text(string.ascii_letters + string.digits + "-_. ", min_size=1, max_size=12)


@given(st.lists(names, unique=True))
def test_the_order_does_not_depend_on_how_a_folder_is_listed(listed):
    ordered = sorted(map(Path, listed), key=_natural)
    assert sorted(map(Path, listed[::-1]), key=_natural) == ordered


@given(st.lists(st.integers(0, 10**6), unique=True), st.text(string.ascii_lowercase, max_size=3))
def test_parts_are_ordered_by_number(numbers, stem):
    paths = [Path(f"day={number}") / f"{stem}{number}.csv" for number in numbers]
    assert sorted(paths, key=_natural) == [Path(f"day={number}") / f"{stem}{number}.csv" for number in sorted(numbers)]


@given(st.lists(st.integers(0, 3), max_size=12), st.data())
def test_splitting_a_file_changes_nothing(tmp_path_factory, cuts, data):
    folder = tmp_path_factory.mktemp("cut")
    records = [row(data.draw(st.integers(0, 40))) for _ in range(sum(cuts))]  # some ids twice
    put(folder / "whole.jsonl", records)
    (folder / "data").mkdir()
    taken = iter(records)
    for part, size in enumerate(cuts):
        put(folder / "data" / f"{part}.jsonl", [next(taken) for _ in range(size)])
    if cuts:
        whole, of_whole = read(folder / "whole.jsonl")
        parts, of_parts = read(folder / "data")
        assert parts == whole
        assert [(p.code, p.id) for p in of_parts.kept] == [(p.code, p.id) for p in of_whole.kept]
        lines = [(file, line) for file, size in enumerate(cuts) for line in range(1, size + 1)]
        places = [lines[p.line - 1] for p in of_whole.kept]
        assert [(Path(p.file).stem, p.line) for p in of_parts.kept] == [(str(file), line) for file, line in places]


def test_files_are_closed_after_reading(tmp_path):
    for part in range(50):
        put(tmp_path / f"{part}.jsonl", rows(part, 1))
    before = len(list(Path("/proc/self/fd").iterdir()))
    stream = FileInput(tmp_path).samples(Problems(), Summary())
    for _ in range(40):
        next(stream)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
