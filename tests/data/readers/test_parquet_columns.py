"""Parquet as columns: the same samples, problems and counts as from rows, for any table."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from itertools import pairwise

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval._native import ArrowColumns
from multimodal_eval.core.sample import ANSWER_ALIASES, FIELDS, Sample
from multimodal_eval.data.readers import columns, parts, scanned_blocks
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.readers.scanned_blocks import Rest, parquet_blocks
from multimodal_eval.data.readers.summary import Summary
from tests.data.readers.reading import assert_columns_equal_samples, assert_equal_bytes

SCANNER = ArrowColumns(
    [("id", 0, "name"), ("generated_answer", 1, "answer"), ("references", 2, "references"), ("image", 4, "media")],
    5,
    0,
    3,
)


def scan(**arrays):
    return SCANNER.scan(
        list(arrays), [values if isinstance(values, pa.Array) else pa.array(values) for values in arrays.values()]
    )


def accepted(**arrays):
    """The numbers of the rows that compiled code accepts."""
    return scan(**arrays)[0].tolist()


def source_of(folder, table, name="data.parquet", row_group_size=None, mapped=None):
    pq.write_table(table, folder / name, row_group_size=row_group_size)
    return FileInput(folder / name, columns=parse_map(mapped))


texts = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ["", " ", "\u3000", "\x1f", "a dog", "собака", "e\u0301", "é", "각", "犬", "a\nb", 'q"\\/', "\0", "\u212b"]
)
plain_texts = st.sampled_from(["a", "b c", "é", "犬"])
floats = st.floats(width=32) | st.sampled_from([0.0, -0.0, 0.5, 1e-5, 1e-6, 1e15, 1e16, 0.1, float("nan")])
small = st.integers(0, 100)
KINDS = {
    pa.string(): texts,
    pa.large_string(): texts,
    pa.dictionary(pa.int8(), pa.string()): texts,
    pa.dictionary(pa.int32(), pa.large_string()): texts,
    pa.dictionary(pa.int32(), pa.int64()): small,
    pa.list_(pa.string()): st.lists(texts | plain_texts, max_size=3),
    pa.list_(pa.large_string()): st.lists(plain_texts | st.none(), max_size=3),
    pa.large_list(pa.string()): st.lists(plain_texts, max_size=3),
    pa.list_(pa.int32()): st.lists(small, max_size=2),
    pa.list_(pa.string(), 2): st.lists(plain_texts, min_size=2, max_size=2),
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): floats,
    pa.float64(): floats | st.floats(),
    pa.bool_(): st.booleans(),
    pa.null(): st.none(),
    pa.binary(): st.binary(max_size=4),
    pa.date32(): st.dates(datetime.date(1970, 1, 1), datetime.date(2100, 1, 1)),
    pa.timestamp("us"): st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1)),
    pa.decimal128(6, 2): st.sampled_from([decimal.Decimal("1.50"), decimal.Decimal("-3.00")]),
    pa.struct({"a": pa.int64(), "b": pa.string()}): st.fixed_dictionaries({"a": small, "b": texts | st.none()}),
    pa.struct({"bytes": pa.binary(), "path": pa.string()}): st.fixed_dictionaries(
        {"bytes": st.none() | st.binary(max_size=3), "path": st.none() | plain_texts}
    ),
    pa.map_(pa.string(), pa.string()): st.lists(st.tuples(plain_texts, plain_texts), max_size=2),
}
TEXT = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
LISTS = [pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_(pa.large_string())]
LIKELY = {"id": [*TEXT, pa.int64(), pa.uint64()], "group": [*TEXT, pa.int16()], "references": LISTS, "choices": LISTS}
names = st.sampled_from([*FIELDS, *ANSWER_ALIASES, "split", "a", "é", "captoin", 'q"\n', ""])


def array(draw, kind, rows, nulls, unique=False):
    values = draw(st.lists(KINDS[kind], min_size=rows, max_size=rows, unique=unique))
    if nulls:
        values = [None if draw(st.integers(0, 3)) == 0 else value for value in values]
    return pa.array(values, kind)


@st.composite
def tables(draw, fewest=0, most=8):
    rows = draw(st.integers(fewest, most))
    header = draw(st.lists(names, max_size=4, unique=True))
    header += [name for name in draw(st.sampled_from([(), ("id",), ("split", "id")])) if name not in header]
    arrays = []
    for name in header:
        likely = LIKELY.get(name, TEXT if name in FIELDS else list(KINDS))
        kind = draw(st.sampled_from(likely if draw(st.integers(0, 3)) else list(KINDS)))
        arrays.append(array(draw, kind, rows, draw(st.booleans()), unique=name == "id" and kind == pa.int64()))
    return pa.table(arrays, names=header)


@given(tables(), st.none() | st.integers(0, 6), st.integers(1, 5), st.integers(1, 8))
def test_any_rows(tmp_path_factory, table, limit, most, group):
    source = source_of(tmp_path_factory.mktemp("any"), table, row_group_size=group)
    assert_columns_equal_samples(source, limit, most)


@given(tables(3, 12), st.sampled_from([1, 50, 1 << 20]))
def test_mapped_columns_and_small_blocks(tmp_path_factory, table, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BLOCK", 0)  # so that threads scan ahead
        patch.setattr(scanned_blocks, "_LARGE", size)
        patch.setattr(scanned_blocks, "_DECODED", 2)
        folder = tmp_path_factory.mktemp("mapped")
        mapped = {"references": "caption,split", "question": "image", "group": "a", "caption": "", "task": "nowhere"}
        assert_columns_equal_samples(source_of(folder, table, row_group_size=5), most=4)
        assert_columns_equal_samples(source_of(folder, table, mapped=mapped), most=4)


@given(st.lists(tables(1, 5), min_size=2, max_size=3), st.none() | st.integers(0, 10))
def test_files_with_other_types(tmp_path_factory, content, limit):
    folder = tmp_path_factory.mktemp("several")
    for number, table in enumerate(content):
        pq.write_table(table, folder / f"part-{number}.parquet")
    assert_columns_equal_samples(FileInput(folder), limit, most=3)


@given(tables(1, 20), st.data())
def test_damaged_files(tmp_path_factory, table, data):
    source = source_of(tmp_path_factory.mktemp("damaged"), table, row_group_size=4)
    content = bytearray(source.data.read_bytes())
    place = data.draw(st.integers(4, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place - 4 : place] = bytes(4)
    source.data.write_bytes(content)
    outcomes = []
    for read in (source.parts, lambda *arguments: source.samples(*arguments[:2])):
        try:
            list(read(Problems(), Summary(), 5))
            outcomes.append(None)
        except (pa.ArrowException, OSError, ValueError) as error:
            outcomes.append(type(error))
    if outcomes == [None, None]:
        assert_columns_equal_samples(source, most=3)
    assert outcomes[0] == outcomes[1]


def test_damage_in_a_later_batch(tmp_path):
    """The rows before the damage are read, and the problem follows theirs."""
    rows = [{"id": str(row) if row != 3 else " "} for row in range(9_000)]
    source = source_of(tmp_path, pa.Table.from_pylist(rows), row_group_size=100)
    page = pq.read_metadata(source.data).row_group(85).column(0).dictionary_page_offset
    content = source.data.read_bytes()
    source.data.write_bytes(content[:page] + bytes(8) + content[page + 8 :])
    assert_columns_equal_samples(source)
    problems = Problems()
    assert sum(map(len, source.parts(problems, Summary(), 1000))) == 8499  # 85 row groups, without the blank id
    assert [problem.code for problem in problems.kept] == ["TYPE", "SYNTAX"]


def test_plain_rows_are_accepted():
    assert accepted(id=["a", "é", "犬"], split=["x", None, ""], generated_answer=["", " ", "a"]) == [0, 1, 2]
    assert accepted(id=[1, -5], n=pa.array([2**64 - 1, None], pa.uint64()), ok=[True, None], x=[1.5, 1e-5]) == [0, 1]
    assert accepted(id=["a"], references=[["x", "é"]], image=["e\u0301.png"], nothing=pa.nulls(1)) == [0]
    assert accepted(id=pa.array(["a", "b", "a"]).dictionary_encode(), image=pa.nulls(3, pa.binary())) == [0, 1, 2]
    assert accepted(id=pa.array(["-", "a", "b"]).slice(1), references=pa.array([[], ["x"], None]).slice(1)) == [0, 1]


@pytest.mark.parametrize(
    "values",
    [
        {"id": ["", " ", None, "\u3000", "e\u0301", "a\0"]},
        {"id": [1.5, None]},
        {"id": [True]},
        {"id": [b"a"]},
        {"id": ["a", "b"], "generated_answer": [1, 2]},
        {"id": ["a", "b", "c"], "references": [[], ["x", None], ["x", " "]]},
        {"id": ["a"], "references": ["x"]},
        {"id": ["a"], "references": [[1]]},
        {"id": ["a"] * 5, "x": [float("nan"), float("inf"), 1e-6, 1e15, -1e300]},
        {"id": ["a"], "x": [datetime.date(2020, 1, 1)]},
        {"id": ["a"], "x": [decimal.Decimal("1.5")]},
        {"id": ["a"], "x": [{"y": 1}]},
        {"id": ["a"], "x": [[1]]},
        {"id": ["a"], "image": [b"x"]},
        {"id": ["a", "b"], "x": ["\0", "x" * 1_000_001]},
        {"x": ["a"]},
    ],
)
def test_other_rows_are_left_to_the_checker(values):
    assert accepted(**values) == []
    assert [line for line, _, _ in scan(**values)[5]] == list(range(len(next(iter(values.values())))))


@given(st.lists(floats | st.floats() | st.decimals(-1000, 1000, places=4).map(float), min_size=1), st.booleans())
def test_numbers_are_written_as_msgspec_writes_them(values, is_single):
    numbers = pa.array(values, pa.float32() if is_single else pa.float64())
    lines, *_, stored, _ = scan(id=[str(place) for place in range(len(values))], x=numbers)
    if len(lines):
        _, offsets, data = stored[3]
        rows = [data[start:end].tobytes() for start, end in pairwise(offsets)]
        python = numbers.to_pylist()
        assert rows == [msgspec.json.encode({"x": python[line]}, order="deterministic") for line in lines]


def test_integers_and_unicode(tmp_path):
    """Ids become text; other integers stay numbers."""
    table = pa.table(
        {"id": [2**63 - 1, -7], "group": [7, None], "n": pa.array([2**64 - 1, 0], pa.uint64()), "é": ["犬", "e\u0301"]}
    )
    (part,) = source_of(tmp_path, table).parts(Problems(), Summary(), 10)
    assert part.samples(FIELDS) == [
        Sample(id="9223372036854775807", group="7", metadata={"n": 2**64 - 1, "é": "犬"}),
        Sample(id="-7", metadata={"n": 0, "é": "é"}),
    ]


def test_stored_bytes_are_equal(tmp_path):
    rows = [
        {
            "id": row,
            "references": ["a", "b"],
            "caption": "é" if row % 3 else None,
            "k": row / 8,
            "s": "v",
            "n": row,
            "ok": row > 5,
        }
        for row in range(50)
    ]
    rows[20]["k"], rows[33]["caption"] = 1e-9, "e\u0301"
    table = pa.Table.from_pylist(rows)
    table = table.set_column(4, "s", table["s"].dictionary_encode())
    assert_equal_bytes(source_of(tmp_path, table, row_group_size=20), tmp_path)


def test_parts_end_at_the_size_of_media(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "MEDIA_BYTES", 100)
    rows = [{"id": row, "image": "é" * (row % 40), "audio": b"x" * 30 if row % 9 == 0 else None} for row in range(60)]
    source = source_of(tmp_path, pa.Table.from_pylist(rows))
    assert_columns_equal_samples(source, most=8)
    assert len(list(source.parts(Problems(), Summary(), 8))) > 10


def test_an_extension_type_is_left_to_the_checker(tmp_path):
    """pyarrow converts its values in a way of its own: a UUID is not 16 bytes of text."""
    values = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16)))
    assert accepted(id=["a"], x=values) == []
    assert accepted(id=["a"], x=pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"]))) == []


def test_row_groups(tmp_path):
    path = source_of(tmp_path, pa.table({"id": range(20)}), row_group_size=6).data
    for skip in (0, 4, 9, 12, 30):
        blocks = list(parquet_blocks(path, range(1, 3), skip))
        ids = [value for block in blocks for value in block.batch.column(0).to_pylist()]
        assert ids == list(range(6, 18))[skip:]
        assert not blocks or skip >= 12 or blocks[0].first_line == skip + 1
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    (rest,) = parquet_blocks(path)
    assert isinstance(rest, Rest)


def test_repeated_and_missing_columns(tmp_path):
    assert_columns_equal_samples(source_of(tmp_path, pa.table([["x"], ["y"]], names=["id", "id"])))
    assert_columns_equal_samples(source_of(tmp_path, pa.table({"id": []})))
    (tmp_path / "empty.parquet").write_bytes(b"")
    assert_columns_equal_samples(FileInput(tmp_path / "empty.parquet"))


def test_pandas_is_not_imported(tmp_path):
    source_of(tmp_path, pa.table({"id": ["a", "b"], "n": [1.5, 1e-9], "references": [["x"], None]}))
    (tmp_path / "data.csv").write_text("id,n\na,1\n\u212b,\n")
    code = """
import sys
from pathlib import Path
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.readers.problems import Problems
for name in ("data.parquet", "data.csv"):
    for part in FileInput(Path(name)).parts(Problems(), Summary(), 10):
        part.table(0)
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=600)
