"""CSV and TSV as columns: the same samples, problems and counts as from the csv module, for any file."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval._native import CsvColumns, cut_csv
from multimodal_eval.core.sample import ANSWER_ALIASES, FIELDS, Sample
from multimodal_eval.data.readers import columns, scanned_blocks
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.readers.scanned_blocks import Rest, csv_blocks, csv_records
from multimodal_eval.data.readers.summary import Summary
from tests.data.readers.reading import assert_columns_equal_samples, assert_equal_bytes, problems_of

ROUTE = [("id", 0, "name"), ("generated_answer", 1, "answer"), ("references", 2, "references"), ("epoch", 4, "other")]
SCANNER = CsvColumns(ROUTE, 5, 0, 3)
HEADER = ["id", "generated_answer", "references", "split"]
ALL = 1 << 62


def accepted(*lines, header=HEADER):
    """The numbers of the lines that compiled code accepts."""
    return SCANNER.scan(list(header), "\n".join(lines).encode(), ",")[0].tolist()


def source_of(folder, content, name="data.csv", **mapped):
    path = folder / name
    path.write_bytes(content)
    return FileInput(path, columns=parse_map(mapped))


def written(rows, delimiter=",", newline="\r\n", quoting=csv.QUOTE_MINIMAL):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows(rows)
    return text.getvalue().encode()


texts = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    [
        "",
        " ",
        "\u3000",
        "a dog",
        "007",
        "N/A",
        "1.50",
        "true",
        "собака",
        "e\u0301",
        "é",
        "a\nb",
        "a\r\nb",
        "\r",
        'q"',
        '""',
        "a,b",
        "\t",
        "\0",
    ]
)
json_texts = st.one_of(
    st.lists(texts, max_size=3),
    st.dictionaries(texts, texts | st.integers(-5, 5) | st.none() | st.booleans(), max_size=3),
    st.lists(st.integers(), max_size=2),
).map(lambda value: json.dumps(value, ensure_ascii=False))
cells = texts | json_texts | json_texts.map(lambda text: f" {text}\n")
likely = {
    "id": st.text("abcdefgh0123456789", min_size=1, max_size=4),
    "references": json_texts | st.just('["a", "b"]') | texts,
    "choices": json_texts,
    "metadata": json_texts | st.just('{"split": 1, "z": "é"}'),
    "split": st.sampled_from(["val", "test", ""]),
    "relevant": st.sampled_from(["true", "No", "x", ""]),
    "epoch": st.sampled_from(["", "1", "1.5"]),
    "generated_answer": st.sampled_from(["a", "", " ", "é", "a, b"]),
}
names = st.sampled_from([*FIELDS, *ANSWER_ALIASES, "split", "a", "é", "captoin", 'q"\n', ""])


@st.composite
def files(draw, delimiter=","):
    header = draw(st.lists(names, max_size=5, unique=True))
    header += [name for name in draw(st.sampled_from([(), ("id",), tuple(HEADER)])) if name not in header]
    strategies = [likely.get(name, cells) if draw(st.booleans()) else cells for name in header]
    rows = draw(st.lists(st.tuples(*strategies), max_size=8))
    if draw(st.integers(0, 3)) == 0 and rows:
        place = draw(st.integers(0, len(rows) - 1))
        rows[place] = draw(st.sampled_from([(), rows[place][:-1], (*rows[place], "x")]))
    newline = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    text = written([header, *rows], delimiter, newline, quoting)
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + (text.rstrip(b"\r\n") if draw(st.booleans()) else text)


@given(files(), st.none() | st.integers(0, 6), st.integers(1, 5))
def test_any_rows(tmp_path_factory, content, limit, most):
    assert_columns_equal_samples(source_of(tmp_path_factory.mktemp("any"), content), limit, most)


@given(files("\t"), st.integers(1, 5))
def test_tabs(tmp_path_factory, content, most):
    assert_columns_equal_samples(source_of(tmp_path_factory.mktemp("tabs"), content, name="data.tsv"), None, most)


SPECIAL = ["a", '"', '""', ",", "\n", "\r", "\r\n", "é", " "]


@given(st.lists(st.sampled_from([*SPECIAL, "id", "\0", "\t", "[", "\x85"]), max_size=30))
def test_any_text(tmp_path_factory, pieces):
    folder = tmp_path_factory.mktemp("text")
    assert_columns_equal_samples(source_of(folder, "".join(pieces).encode()))
    assert_columns_equal_samples(source_of(folder, ("id,split\n" + "".join(pieces)).encode()))


@given(files(), st.data())
def test_damaged_files(tmp_path_factory, content, data):
    text = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(0, len(text) - 1)))
        change = data.draw(st.sampled_from(["replace", "delete", "insert", "cut"]))
        byte = data.draw(st.sampled_from(b'",\n\r\t\0 \xff\xc3\xa9\xed[{') | st.integers(0, 255))
        if change == "insert":
            text.insert(place, byte)
        elif change == "replace":
            text[place : place + 1] = bytes([byte])
        elif change == "delete":
            del text[place : place + 1]
        else:
            del text[place:]
    assert_columns_equal_samples(source_of(tmp_path_factory.mktemp("damaged"), bytes(text)), most=3)


@given(files(), st.sampled_from([1, 7, 64, 300]))
def test_small_blocks(tmp_path_factory, content, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanned_blocks, "BLOCK", size)
        patch.setattr(scanned_blocks, "_LONGEST", 400)
        patch.setattr(columns, "BLOCK", 0)  # so that threads scan ahead
        folder = tmp_path_factory.mktemp("blocks")
        source = source_of(folder, content)
        assert_columns_equal_samples(source, most=4)
        mapped = {"references": "caption,split", "question": "image", "group": "epoch", "task": "nowhere"}
        assert_columns_equal_samples(source_of(folder, content, **mapped), most=4)
        assert_columns_equal_samples(source_of(folder, gzip.compress(content), name="a.csv.gz"), most=4)


FAULTS = [b"\xff", b"\xc3", b'"x"y,', b'"', b"\xe2\x82", b""]


@given(
    st.integers(0, 24_000),
    st.sampled_from(FAULTS),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
    st.sampled_from([8192, 1 << 20]),  # the csv module reads 8192 bytes at a time
)
def test_a_fault_stops_both_readers_at_the_same_record(tmp_path_factory, place, fault, newline, size):
    rows = [b"id,split", *(b'%d,"\xc3\xa9"' % row if row % 9 else b"%d" % row for row in range(1800))]
    whole = newline.join(rows)
    folder = tmp_path_factory.mktemp("fault")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanned_blocks, "BLOCK", size)
        assert_columns_equal_samples(source_of(folder, whole[:place] + fault + whole[place:]), most=100)
        cut_off = gzip.compress(whole)[: place // 3]
        assert_columns_equal_samples(source_of(folder, cut_off, name="data.csv.gz"), most=100)


def test_half_a_character_at_the_end(tmp_path):
    """The csv module does not see the last record: \\n could follow its \\r."""
    source = source_of(tmp_path, b"id\r1\r2\r\xc3")
    assert_columns_equal_samples(source)
    assert [sample.id for sample in source.samples(Problems(), Summary())] == ["1"]


@given(st.lists(st.sampled_from(SPECIAL), max_size=25), st.integers(0, 4))
def test_cut_records(pieces, most):
    """`cut_csv` ends after as many records as the csv module reads from the same text."""
    text = "".join(pieces)
    end, lines, records, is_valid = cut_csv(text.encode(), ",", True, most or ALL)
    reader = csv.reader(io.StringIO(text.encode()[:end].decode(), newline=""), strict=True)
    rows = [row for row in reader if row]
    assert (len(rows), reader.line_num) == (records, lines)
    rest = csv.reader(io.StringIO(text.encode()[end:].decode(), newline=""), strict=True)
    if is_valid:
        assert most == records or list(rest) == []
    else:
        with pytest.raises(csv.Error):
            list(rest)


def test_plain_rows_are_accepted():
    rows = ["1,a,x,val", '2,"a, ""b""",x,', '"3",,"[""a"", ""b\\n""]",\x1f', "é,собака 犬,犬,犬", "", "4,a\\,[],"]
    assert accepted(*rows[:-1], "5,,,") == [0, 1, 2, 3, 5]
    assert accepted('a,"1\n2\r3\r\n4",,', "b,,,") == [0, 4]


LEFT = [
    "a,b,c",
    "a,b,c,d,e",
    ",b,c,d",
    " ,b,c,d",
    "e\u0301,b,c,d",
    "a\0,b,c,d",
    "a,b,c,d\0",
    "a,b, ,d",
    "a,b,[],d",
    "a,b, [1],d",
    "a,b,\u3000[,d",
    'a,b,"[""x"", 1]",d',
    'a,b,"[""x""",d',
    'a,b,"[""x""] y",d',
    "a,b,c," + "x" * 1_000_001,
]


@pytest.mark.parametrize("row", LEFT)
def test_other_rows_are_left_to_the_checker(row):
    assert accepted("before,,,", row, "after,,,") == [0, 2]


def test_a_field_that_is_not_read_here():
    assert accepted("a,", "b,1", header=["id", "epoch"]) == [0]


def test_two_columns_of_a_field(tmp_path):
    """The second column is a problem even if its cell is empty, except that an empty first cell does not count."""
    text = b"id,generated_answer,prediction,caption\na,x,,\nb,,y,\nc,,,\n"
    assert [problem.code for problem in problems_of(tmp_path, text, name="data.csv")] == ["DUPLICATE"] * 3
    mapped = source_of(tmp_path, b"id,a,b\n1,x,\n2,,y\n3,,\n4,x,y\n", references="a,b")
    assert_columns_equal_samples(mapped)
    assert [sample.references for sample in mapped.samples(Problems(), Summary())] == [["x"], ["y"], None, ["x", "y"]]


def test_values_stay_as_they_are(tmp_path):
    rows = [
        ["id", "references", "generated_answer", "x", "y"],
        ["007", "N/A", "", "1.50", ""],
        ["1e3", '["a"]', "null", "", "NaN"],
    ]
    (part,) = source_of(tmp_path, written(rows)).parts(Problems(), Summary(), 10)
    assert part.samples(FIELDS) == [
        Sample(id="007", references=["N/A"], generated_answer="", metadata={"x": "1.50"}),
        Sample(id="1e3", references=["a"], generated_answer="null", metadata={"y": "NaN"}),
    ]


def test_stored_bytes_are_equal(tmp_path):
    rows = [[str(row), '["a", "b"]', "é" if row % 3 else "", f"k{row % 4}", str(row)] for row in range(50)]
    rows[20][1], rows[33][2] = "", "e\u0301"
    assert_equal_bytes(source_of(tmp_path, written([["id", "references", "caption", "k", 'a "b"'], *rows])), tmp_path)


def test_several_files(tmp_path):
    for number in range(3):
        rows = [["id", "split"], *([f"{number}-{row % 5}", "a"] for row in range(6))]
        (tmp_path / f"part-{number}.csv").write_bytes(written([row[:: -1 if number == 1 else 1] for row in rows]))
    assert_columns_equal_samples(FileInput(tmp_path))
    assert_columns_equal_samples(FileInput(tmp_path), limit=14)


def test_the_first_records_can_be_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(scanned_blocks, "BLOCK", 40)
    path = source_of(tmp_path, b"id,a\n" + b"".join(b'%d,"x\ny"\n\n' % row for row in range(20))).data
    assert csv_records(path, ",") == 20
    for skip in (0, 1, 7, 20, 30):
        blocks = list(csv_blocks(path, ",", skip))
        assert b"".join(block.data for block in blocks).count(b"x") == max(0, 20 - skip)
        # the header is line 1, and every record has three lines
        assert not blocks or skip >= 20 or blocks[0].first_line == 2 + 3 * skip - (skip > 0)
    path.write_bytes(b'id,a\n1,"x"y\n')
    assert csv_records(path, ",") is None
    (rest,) = csv_blocks(path, ",")
    assert isinstance(rest, Rest)


def test_a_long_record_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(scanned_blocks, "BLOCK", 64)
    monkeypatch.setattr(scanned_blocks, "_LONGEST", 200)
    content = b"id,caption\n1,a\n2," + b"x" * 500_000 + b"\n3,b\n"
    source = source_of(tmp_path, content)
    assert_columns_equal_samples(source)
    assert [sample.id for sample in source.samples(Problems(), Summary())] == ["1", "2", "3"]
