"""Damaged or truncated files and files in another encoding are reported with a code and a place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from multimodal_eval import Sample
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers.inputs import FileInput
from tests.data.readers.reading import GOOD, problems_of, read, write


def test_bom_and_crlf_change_nothing(tmp_path):
    plain = read(write(tmp_path, GOOD + "\n" + GOOD.replace('"a"', '"b"') + "\n"))[0]
    odd = read(
        write(tmp_path, b"\xef\xbb\xbf" + (GOOD + "\r\n" + GOOD.replace('"a"', '"b"') + "\r\n").encode(), "odd.jsonl")
    )[0]
    assert plain == odd


def test_lines_end_at_newline_only(tmp_path):
    text = "a\u2028b\u0085c"
    path = write(tmp_path, json.dumps({"id": "a", "question": text}, ensure_ascii=False) + "\n")
    assert read(path)[0] == [Sample(id="a", question=text)]


def test_utf16_is_reported(tmp_path):
    for name in ("data.jsonl", "data.json", "data.csv"):
        with pytest.raises(InputError, match=r"UTF-16, at byte 0; it must be UTF-8\. Convert it"):
            read(write(tmp_path, '[{"id": "a"}]\n'.encode("utf-16"), name))


def test_invalid_utf8_in_csv_has_its_offset(tmp_path):
    content = b"id,question\n" + b"".join(b"%d,x\n" % i for i in range(300_000)) + b"z,\xff\n"
    _, problems, _ = read(write(tmp_path, content, "data.csv"))
    assert problems.kept[0].code == "ENCODING"
    assert f"byte {len(content) - 2} " in problems.kept[0].message


def test_an_incomplete_last_line_is_truncated(tmp_path):
    (problem,) = problems_of(tmp_path, GOOD, b'{"id": "b", "generated_ans')
    assert problem.code == "TRUNCATED"
    assert "the last good record is on line 1" in problem.message


def test_a_last_line_without_newline_is_fine(tmp_path):
    assert problems_of(tmp_path, GOOD.encode()) == []


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("name", ["data.jsonl", "data.json", "data.csv"])
def test_a_truncated_compressed_file(tmp_path, suffix, name):
    rows = [{"id": str(i), "question": f"{i * 7919 % 10007}"} for i in range(20_000)]
    if name == "data.jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    elif name == "data.json":
        text = json.dumps(rows)
    else:
        text = "id,question\n" + "".join(f"{row['id']},{row['question']}\n" for row in rows)
    packed = gzip.compress(text.encode()) if suffix == ".gz" else pa.compress(text.encode(), "zstd", asbytes=True)
    whole = write(tmp_path, packed, name + suffix)
    assert len(read(whole)[0]) == 20_000
    _, problems, _ = read(write(tmp_path, packed[: len(packed) // 2], "half-" + name + suffix))
    assert problems.kept[0].code == "TRUNCATED"


def test_a_file_that_is_not_gzip(tmp_path):
    _, problems, _ = read(write(tmp_path, GOOD, "data.jsonl.gz"))
    assert problems.kept[0].code == "ENCODING"


def test_json_arrays_report_lines_too(tmp_path):
    path = write(
        tmp_path, '[\n  {"id": "a"},\n  {"id": "b",\n   "perplexity": NaN},\n  {"id": "c", "id": "d"}\n]', "data.json"
    )
    _, problems, _ = read(path)
    assert [(p.code, p.line) for p in problems.kept] == [("NONFINITE", 3), ("DUPLICATE", 5)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('[{"id": "a"}, {"id": "b"', "TRUNCATED"),
        ('[{"id": "a"}] x', "SYNTAX"),
        ("3", "TYPE"),
        ("", "TYPE"),
        ('{"a": 1}', "TYPE"),
    ],
)
def test_json_that_is_not_a_complete_array(tmp_path, text, code):
    _, problems, _ = read(write(tmp_path, text, "data.json"))
    assert [problem.code for problem in problems.kept] == [code]


def test_csv_rows_must_match_the_header(tmp_path):
    _, problems, _ = read(write(tmp_path, 'id,question\na,"two\nlines"\nb\nc,q,r\n', "data.csv"))
    assert [(p.code, p.line) for p in problems.kept] == [("LENGTH", 4), ("LENGTH", 5)]


def test_csv_with_an_open_quote_or_a_repeated_column(tmp_path):
    assert read(write(tmp_path, 'id,question\na,"open', "data.csv"))[1].kept[0].code == "TRUNCATED"
    assert read(write(tmp_path, "id,id\na,b\n", "data.csv"))[1].kept[0].code == "DUPLICATE"


def test_a_damaged_parquet_file(tmp_path):
    assert read(write(tmp_path, b"PAR1 but no more", "data.parquet"))[1].kept[0].code == "TRUNCATED"


def test_unknown_suffixes_and_missing_files():
    with pytest.raises(InputError, match="NOT_FOUND"):
        FileInput(Path("nowhere.jsonl"))
    with pytest.raises(InputError, match="FORMAT"):
        FileInput(Path(__file__))


def test_unusual_file_names_are_shown_unchanged(tmp_path):
    path = write(tmp_path, '{"id": 1.5}', "[bold]ünï.jsonl")
    assert read(path)[1].kept[0].file == str(path)


@pytest.mark.parametrize("text", ['[{"id": "1"},,{"id": "2"}]', '[{"id": "1"},]', "[,]"])
def test_an_array_with_a_missing_element_is_not_json(tmp_path, text):
    _, problems, _ = read(write(tmp_path, text, "data.json"))
    assert {problem.code for problem in problems.kept} == {"SYNTAX"}


def test_a_long_invalid_file_is_refused_quickly(tmp_path):
    _, problems, _ = read(write(tmp_path, "x,y\n" * 300_000))
    assert problems.total == 300_000


def test_the_last_good_record_of_a_truncated_file_is_near_its_end(tmp_path):
    text = "".join(json.dumps({"id": str(i), "question": str(i * 7919 % 10007)}) + "\n" for i in range(20_000))
    packed = gzip.compress(text.encode())
    _, problems, _ = read(write(tmp_path, packed[: len(packed) * 9 // 10], "data.jsonl.gz"))
    assert int(problems.kept[0].message.split()[-1]) > 15_000


def test_a_file_cut_inside_a_character_is_truncated(tmp_path):
    (problem,) = problems_of(tmp_path, GOOD, '{"id": "b", "question": "é'.encode()[:-1])
    assert problem.code == "TRUNCATED"


def test_coco_ids_must_be_numbers_or_text(tmp_path):
    path = write(tmp_path, json.dumps({"annotations": [{"image_id": [1], "caption": "x"}]}), "data.json")
    assert read(path)[1].kept[0].code == "TYPE"
