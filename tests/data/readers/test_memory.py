"""Records in memory: columns that are checked as a whole give the same as records that are checked one by one."""

from __future__ import annotations

import copy
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers import memory_input, parts
from multimodal_eval.data.readers.field_checks import LONGEST_TEXT
from multimodal_eval.data.readers.memory_input import MemoryInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary


def result(data, most, limit):
    problems, summary = Problems(), Summary()
    tables, error = [], None
    try:
        tables.extend(part.table(7) for part in MemoryInput(data).parts(problems, summary, most, limit))
    except (InputError, TypeError, OverflowError, msgspec.MsgspecError) as refusal:
        error = repr(refusal)
    counts = summary.samples, dict(summary.fields), summary.metadata, summary.blank_answers, summary.notes
    return tables, problems.kept, problems.total, counts, error


def assert_same(data, most=10_000, limit=None):
    """Both ways give the same tables, problems, counts and notes; returns whether all parts were columns."""
    before = copy.deepcopy(data)
    plain = []
    with pytest.MonkeyPatch.context() as patch:
        by_columns = memory_input._plain_part
        patch.setattr(memory_input, "_plain_part", lambda *args: plain.append(by_columns(*args)) or plain[-1])
        columns = result(data, most, limit)
        assert data == before
        patch.setattr(memory_input, "_plain_part", lambda *args: None)
        records = result(data, most, limit)
    assert columns[1:] == records[1:]
    assert len(columns[0]) == len(records[0])
    for table, expected in zip(columns[0], records[0], strict=True):
        assert table.equals(expected)
    return None not in plain


GOOD = {"id": "a", "generated_answer": "x", "references": ["y"]}


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"question": "Как дела?", "group": "g", "image": "a.png", "caption": "é", "error": "late"},
        {"year": 2020, "split": "val", "share": 0.1, "checked": True},
        {"metadata": {"year": 2020, "split": "ё"}, "share": 1e300},
        {"metadata": {}, "prompt": None, "other": None},
        {"generated_answer": "  "},
        {"expected_behavior": "", "task": "", "question": ""},
    ],
    ids=str,
)
def test_plain_records_are_checked_as_columns(record):
    first = {**GOOD, **record}
    assert assert_same([first, {**first, "id": "b"}, {**GOOD, "id": "c"}])


def test_samples_columns_and_ids_that_are_numbers():
    samples = [Sample(id=str(n), generated_answer="x", metadata={"k": n} if n % 2 else {}) for n in range(9)]
    assert assert_same(samples, most=4)
    assert assert_same({"id": [3, 1, 2], "prediction": ["a", None, " "], "group": [7, None, 7]})


class Text(str):
    pass


SURROGATE = "\ud800"
UNUSUAL = [
    *({"id": value} for value in (None, "", " ", True, 1.0, "\0", SURROGATE, "e\u0301", Text("a"), np.int64(3))),
    *({"generated_answer": value} for value in (1, ["a"], "a\0b", SURROGATE, "e\u0301", "x" * (LONGEST_TEXT + 1))),
    *({"references": value} for value in ([], "y", ("y",), [1], [None], [" "], ["y\0"], ["e\u0301"], [Text("y")])),
    *({"references": value} for value in (["я" * LONGEST_TEXT], {"a": 1}, [["y"]], ["y", ""])),
    *({"caption": value} for value in ("", " ", 3)),
    *({"image": value} for value in (b"x", Path("a.png"), "a\0", "e\u0301.png", {"path": "a.png"}, 3, SURROGATE)),
    *(
        {"metadata": value}
        for value in (None, 3, {"a": None}, {"a": [1]}, {1: 2}, {"question": 1}, {"id": 1}, {"é": 1})
    ),
    *(
        {"split": value}
        for value in (1, True, float("nan"), float("inf"), 2**70, [1], {"a": 1}, "a\0", b"x", "e\u0301")
    ),
    {"prediction": "y"},
    {"relevant": True},
    {"perplexity": 2},
    {"choices": ["a"]},
    {"epoch": 1},
    {"boxes": []},
    {"messages": [{"role": "user", "content": "x"}]},
    {"annotations": {"a": "b"}},
    {"metadata": {"split": "x"}},
    {"refernces": ["y"]},
    {"question ": "y"},
    {"é": "y"},
    {3: "y"},
]


@pytest.mark.parametrize("unusual", UNUSUAL, ids=lambda record: str(record)[:40])  # one has a million characters
def test_unusual_records_are_checked_one_by_one(unusual):
    for place in range(3):
        rows = [{**GOOD, "id": f"i{n}", "split": "val"} for n in range(4)]
        rows[place] = {**rows[place], **unusual}
        assert_same(rows)
        assert_same(rows, most=2)  # one part may be plain and the other not


@pytest.mark.parametrize("rows", [[], [{}], [GOOD, GOOD], [GOOD, {**GOOD, "id": "e\u0301"}, {**GOOD, "id": "é"}]])
def test_missing_and_duplicate_ids(rows):
    assert_same(rows)


def test_types_are_compared_across_parts():
    rows = [{**GOOD, "id": str(n), "k": "text" if n < 2 else n} for n in range(4)]
    assert not assert_same(rows, most=2)
    problems = Problems()
    list(MemoryInput(rows).parts(problems, Summary(), 2))
    assert [problem.message for problem in problems.kept] == [
        "the column 'k' mixes types: 'text' (text, line 1) and 2 (number, line 3)."
    ]


def test_parts_end_after_some_media(monkeypatch):
    monkeypatch.setattr(parts, "MEDIA_BYTES", 10)
    rows = [{**GOOD, "id": str(n), "image": "a" * (n % 7)} for n in range(40)]
    assert_same(rows, most=3)
    assert_same(rows, most=9)


@pytest.mark.parametrize("limit", [None, 0, 1, 3, 50])
def test_a_limit(limit):
    assert_same([{**GOOD, "id": str(n)} for n in range(7)], most=2, limit=limit)


def test_no_samples_are_created(monkeypatch):
    rows = [{**GOOD, "id": str(n), "split": "val"} for n in range(30)]
    expected = evaluate(
        [Sample(**GOOD | {"id": str(n), "metadata": {"split": "val"}}) for n in range(30)], metrics="bleu"
    )

    def refuse(*args, **kwargs):
        raise AssertionError("a sample was created")

    monkeypatch.setattr(memory_input, "Sample", type("Sample", (), {"__init__": refuse}))
    assert evaluate(rows, metrics="bleu").results == expected.results


texts = st.sampled_from(["x", "", " ", "é", "e\u0301", "два", "a\0", SURROGATE, "犬"]) | st.text(max_size=3)
values = st.none() | texts | st.integers() | st.floats() | st.booleans() | st.lists(texts, max_size=3)
columns = st.sampled_from(
    ["id", "group", "question", "generated_answer", "prediction", "references", "caption", "image", "metadata", "split"]
)
plain = st.fixed_dictionaries(
    {"id": st.text("abc", min_size=1, max_size=4)},
    optional={
        "generated_answer": st.none() | st.text("aё \n", max_size=3),
        "references": st.none() | st.lists(st.text("aё犬", min_size=1, max_size=3), min_size=1, max_size=2),
        "image": st.none() | st.text("aё.", max_size=4),
        "split": st.none() | st.sampled_from(["val", "тест"]),
        "metadata": st.dictionaries(st.sampled_from(["k", "l"]), st.none() | st.integers(0, 9), max_size=2),
    },
)
records = st.builds(
    lambda record, extra: record | extra, plain, st.just({}) | st.dictionaries(columns, values, max_size=2)
)


@given(st.lists(records, max_size=5), st.integers(1, 3))
@example([{"id": "a", "split": "x"}, {"id": "b"}, {"id": "c", "split": 1}], 1)
@settings(max_examples=300)
def test_random_records(rows, most):
    assert_same(rows, most)
