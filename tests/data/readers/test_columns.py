"""JSONL as columns: the same samples, problems and counts as from samples, for any file."""

from __future__ import annotations

import gzip
import json
import sys
import unicodedata

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval._native import JsonColumns, text_hash
from multimodal_eval.core.sample import ANSWER_ALIASES, FIELDS, Sample
from multimodal_eval.data.readers import blocks, columns, parts
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.parts import SamplePart
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.readers.summary import Summary
from tests.data.readers.reading import assert_columns_equal_samples

SCANNER = JsonColumns([("id", 0, "name"), ("generated_answer", 1, "answer"), ("references", 2, "references")], 4, 0, 3)


def accepted(*lines):
    """The numbers of the lines that compiled code accepts."""
    return SCANNER.scan(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))[0].tolist()


def source_of(tmp_path, content, name="data.jsonl", **columns):
    path = tmp_path / name
    path.write_bytes(content)
    return FileInput(path, columns=parse_map(columns))


texts = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    [
        "",
        " ",
        "\u3000",
        "\x1f",
        "a dog",
        "собака",
        "e\u0301",
        "é",
        "각",
        "犬",
        "😀",
        "a\nb",
        'q"\\/',
        "\0",
        "\u212b",
        "\x7f",
    ]
)
numbers = st.integers(-(10**25), 10**25) | st.floats() | st.sampled_from([0, -0.0, 0.5, 1.0, 0.001, 1e16, 123456.789])
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
names = (
    st.sampled_from(
        [*FIELDS, *ANSWER_ALIASES, "pred", "output", "Response", "split", "height", "a", "b", "é", "captoin"]
    )
    | texts
)
likely = {
    "id": texts | st.integers(0, 5) | st.text("abc", min_size=1, max_size=3),
    "references": st.lists(texts, max_size=3),
    "split": st.sampled_from(["val", "test", 3, True, None]),
    "generated_answer": texts,
    "choices": st.lists(texts, max_size=3) | st.dictionaries(texts, texts, max_size=2),
    "metadata": st.dictionaries(st.sampled_from(["split", "a", "id"]) | texts, values, max_size=3),
}


@st.composite
def records(draw):
    keys = draw(st.lists(names, max_size=5, unique=True))
    record = {key: draw(likely[key] if key in likely and draw(st.booleans()) else values) for key in keys}
    for key in draw(st.permutations(["id", "generated_answer", "references", "split"]))[: draw(st.integers(0, 4))]:
        record.setdefault(key, draw(likely[key]))
    return record


@st.composite
def lines(draw):
    record = draw(records())
    separators = draw(st.sampled_from([None, (",", ":"), (" ,\t", " :\r")]))
    line = json.dumps(record, ensure_ascii=draw(st.booleans()), separators=separators)
    return line.encode(errors="surrogatepass")


plain_records = st.fixed_dictionaries(
    {"id": st.text("abcdefgh", min_size=1, max_size=6)},
    optional={
        "split": st.sampled_from(["val", "test"]),
        "caption": st.sampled_from(["a dog", "a cat"]),
        "generated_answer": st.sampled_from(["a", "", " ", "é"]),
        "references": st.lists(st.sampled_from(["a", "b c"]), min_size=1, max_size=3),
        "n": st.integers(-5, 5) | st.none(),
        "ok": st.booleans(),
        "choices": st.lists(st.sampled_from(["", "a", "é\n"]), max_size=3),
        "metadata": st.dictionaries(
            st.sampled_from(["split", "id", "ok", "z", "y"]), st.sampled_from(["val", 1, 2.5, True, None]), max_size=3
        ),
        "image": st.sampled_from(["a.png", "e\u0301.png"]),
    },
).map(lambda record: json.dumps(record).encode())


@given(st.lists(lines() | plain_records, max_size=12), st.none() | st.integers(0, 6), st.integers(1, 5))
def test_any_records(tmp_path_factory, content, limit, most):
    source = source_of(tmp_path_factory.mktemp("any"), b"\n".join(content))
    assert_columns_equal_samples(source, limit, most)


@given(st.lists(plain_records, min_size=1, max_size=30), st.data())
def test_damaged_lines(tmp_path_factory, content, data):
    text = bytearray(b"\n".join(content))
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(text) - 1))
        change = data.draw(st.sampled_from(["replace", "delete", "insert", "cut"]))
        byte = data.draw(st.sampled_from(b'"\\{}[],:\n \r\t\0\x0b-0.eEnu\xff\xc3\xa9\xed\xa0') | st.integers(0, 255))
        if change == "replace":
            text[place] = byte
        elif change == "delete" and len(text) > 1:
            del text[place]
        elif change == "insert":
            text.insert(place, byte)
        elif change == "cut" and place:
            del text[place:]
    source = source_of(tmp_path_factory.mktemp("damaged"), bytes(text))
    assert_columns_equal_samples(source, most=7)


@given(st.lists(plain_records, max_size=20), st.sampled_from([(1 << 20), 64, 300]))
def test_mapped_columns_and_small_blocks(tmp_path_factory, content, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", size)
        patch.setattr(columns, "BLOCK", 0)  # so that threads scan ahead
        text = b"\n".join(content)
        mapped = {"references": "caption,split", "question": "image", "group": "n", "caption": "", "task": "nowhere"}
        folder = tmp_path_factory.mktemp("mapped")
        assert_columns_equal_samples(source_of(folder, text), most=4)
        assert_columns_equal_samples(source_of(folder, text, **mapped), most=4)
        assert_columns_equal_samples(source_of(folder, gzip.compress(text), name="data.jsonl.gz"), most=4)
        assert_columns_equal_samples(source_of(folder, gzip.compress(text)[:-9], name="cut.jsonl.gz"), most=4)


def test_several_files(tmp_path):
    for number in range(3):
        rows = [{"id": f"{number}-{row % 5}", "split": row if number == 2 else "a"} for row in range(6)]
        (tmp_path / f"part-{number}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert_columns_equal_samples(FileInput(tmp_path))
    assert_columns_equal_samples(FileInput(tmp_path), limit=14)


def test_stored_bytes_are_equal(tmp_path):
    rows = [{"id": row, "references": ["a", "b"], "caption": "é" if row % 3 else None, "k": row} for row in range(50)]
    rows[20]["choices"], rows[33]["caption"] = ["x", "y"], "e\u0301"
    source = source_of(tmp_path, "\n".join(map(json.dumps, rows)).encode())
    problems, summary = Problems(), Summary()
    for number, part in enumerate(source.parts(problems, summary, 15)):
        start = 15 * number
        samples = list(source.samples(Problems(), Summary()))[start : start + 15]
        assert part.samples(FIELDS) == samples
        for name, table in (("columns", part.table(start)), ("samples", SamplePart(samples).table(start))):
            pq.write_table(table, tmp_path / name, compression="zstd")
        assert (tmp_path / "columns").read_bytes() == (tmp_path / "samples").read_bytes()


def test_parts_end_at_the_size_of_media(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "MEDIA_BYTES", 100)
    rows = [{"id": row, "image": "é" * (row % 40), "images": ["x" * 30] if row % 9 == 0 else None} for row in range(60)]
    source = source_of(tmp_path, "\n".join(map(json.dumps, rows)).encode())
    assert_columns_equal_samples(source, most=8)
    assert len(list(source.parts(Problems(), Summary(), 8))) > 10


def test_plain_records_are_accepted():
    assert accepted(
        '{"id": "a"}',
        ' { "id" : 12 , "split":null,"n":-3,"x":1.5,"ok":true } \r',
        '{"id": "é", "generated_answer": "собака 犬 각 ひ 😀", "references": ["a", "\\u00e9 \\ud83d\\ude00"]}',
        '{"generated_answer": " ", "id": "q\\"\\n\\\\\\/"}',
        "",
        '{"id": "last"}',
    ) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"a": 1}',
        '{"id": null}',
        '{"id": ""}',
        '{"id": " \\u3000"}',
        '{"id": 1.5}',
        '{"id": -0}',
        '{"id": 1234567890123456789}',
        '{"id": true}',
        '{"id": "a", "id": "a"}',
        '{"id": "a", "x": 1, "x": null}',
        '{"id": "a", "\\u0061": 1}',
        '{"id": "a", "x": {}}',
        '{"id": "a", "x": []}',
        '{"id": "a", "x": 1e3}',
        '{"id": "a", "x": 1.50}',
        '{"id": "a", "x": 0.0001}',
        '{"id": "a", "x": 01}',
        '{"id": "a", "x": -0.0}',
        '{"id": "a", "references": []}',
        '{"id": "a", "references": [" "]}',
        '{"id": "a", "references": ["x", 1]}',
        '{"id": "a", "references": "x"}',
        '{"id": "a", "references": ["x",]}',
        '{"id": "a\\u0000"}',
        '{"id": "a\\ud83d"}',
        '{"id": "a\\ud83dx"}',
        '{"id": "e\u0301"}',
        '{"id": "\\u212b"}',
        b'{"id": "a\xff"}',
        b'{"id": "a", "\xff": 1}',
        '{"id": "a\tb"}',
        '{"id": "a"',
        '{"id": "a',
        '{"id": "a"}}',
        '{"id": "a",}',
        '{"id": "a"} x',
        '["id"]',
        '{"id": "a", "generated_answer": 1}',
        '{"id": "a", "x": tru}',
        '{"id": "a", "x": nul}',
        '{"id": "a", "generated_answer": "' + "x" * 1_000_001 + '"}',
    ],
)
def test_other_records_are_left_to_the_checker(line):
    assert accepted(line) == []
    assert accepted('{"id": "before"}', line, '{"id": "after"}') == [0, 2]


def test_accepted_characters_never_change_in_nfc():
    seconds = {0x0}
    for code in range(sys.maxunicode + 1):
        pair = unicodedata.decomposition(chr(code)).split()
        if len(pair) == 2 and not pair[0].startswith("<"):
            seconds.add(int(pair[1], 16))
    seconds.update(range(0x1161, 0x1176), range(0x11A7, 0x11C3))  # letters of Hangul compose by rule
    codes = [code for code in range(0x80, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    taken = [codes[line] for line in accepted(*(f'{{"id": "x{chr(code)}"}}' for code in codes))]
    assert len(taken) > 40_000
    for code in taken:
        character = chr(code)
        assert unicodedata.category(character) != "Cn"
        assert unicodedata.combining(character) == 0
        assert unicodedata.is_normalized("NFC", character)
        assert code not in seconds
    alone = [f'{{"id": "{chr(code)}"}}' for code in taken]
    assert set(accepted(*alone)) == {line for line, code in enumerate(taken) if not chr(code).isspace()}


@given(st.floats(allow_nan=False, allow_infinity=False) | st.decimals(-1000, 1000, places=4).map(float) | st.integers())
def test_numbers_are_written_as_msgspec_writes_them(value):
    for written in {repr(value), json.dumps(value), f"{value:.3f}", f"{value:.0f}"}:
        line = f'{{"id": "a", "x": {written}}}'.encode()
        if accepted(line):
            decoded = msgspec.json.decode(line)["x"]
            stored = SCANNER.scan(line)[7][3][2].tobytes()
            assert stored == msgspec.json.encode({"x": decoded}, order="deterministic")


@given(st.lists(st.text(max_size=20), unique=True, max_size=20))
def test_hash_of_ids(ids):
    assert len({text_hash(item) for item in ids}) == len(ids)


def test_samples_of_a_part(tmp_path):
    source = source_of(tmp_path, b'{"id": 1, "split": "val"}\n{"id": 2, "x": {"y": 1.25}}\n{"id": 3, "split": "val"}')
    (part,) = source.parts(Problems(), Summary(), 10)
    assert part.samples(["metadata"]) == [
        Sample(id="1", metadata={"split": "val"}),
        Sample(id="2", metadata={"x": {"y": 1.25}}),
        Sample(id="3", metadata={"split": "val"}),
    ]
    assert part.samples([]) == [Sample(id="1"), Sample(id="2"), Sample(id="3")]
