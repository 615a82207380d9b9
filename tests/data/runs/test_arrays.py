"""The arrays equal those of `pyarrow.array`, and no pandas is imported for them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.analysis.columns import selected
from multimodal_eval.core import arrow
from multimodal_eval.data.runs import sample_table

text = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
number = st.none() | st.floats(allow_nan=False)


@given(st.lists(text))
def test_strings(values):
    array = sample_table.strings(values)
    assert array.equals(pa.array(values, pa.string()))
    array.validate(full=True)
    assert sample_table.python_strings(array) == values
    assert sample_table.python_strings(array[1:]) == values[1:]
    assert sample_table.python_strings(pa.chunked_array([array, array])) == values * 2
    few = {row: value for row, value in enumerate(values) if value is not None}
    assert sample_table.few_strings(len(values), few).equals(pa.array(values, pa.string()))


@given(st.lists(st.none() | st.lists(text, max_size=3)))
def test_string_lists(values):
    array = sample_table.string_lists(values)
    assert array.equals(pa.array(values, pa.list_(pa.string())))
    assert sample_table.python_string_lists(array) == values
    assert sample_table.python_string_lists(array[1:]) == values[1:]


def test_python_strings_of_other_arrays():
    assert sample_table.python_strings(pa.nulls(2, pa.string())) == [None, None]
    assert sample_table.python_string_lists(pa.nulls(2, pa.list_(pa.string()))) == [None, None]
    assert sample_table.python_strings(pa.array(["a", "", "", "a", "a", None, "é" * 300, "é" * 300])[1:7]) == [
        *("", "", "a", "a", None, "é" * 300)
    ]
    nested = pa.array([["x"], ["é", None, "é"], [], None, ["y", "y"]])
    assert sample_table.python_string_lists(nested[1:]) == [["é", None, "é"], [], None, ["y", "y"]]
    assert sample_table.python_string_lists(nested[2:4]) == [[], None]
    for wrong in (pa.array([1]), pa.array([[1]]), pa.array(["a"], pa.large_string())):
        with pytest.raises(TypeError):
            sample_table.python_strings(wrong)
        with pytest.raises(TypeError):
            sample_table.python_string_lists(wrong)
    invalid = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(UnicodeDecodeError):
        sample_table.python_strings(invalid)


@given(st.lists(number))
def test_floats(values):
    expected = pa.array(values, pa.float64())
    assert sample_table.floats(np.array([np.nan if value is None else value for value in values])).equals(expected)
    assert arrow.integers(np.arange(len(values))).equals(pa.array(range(len(values)), pa.int64()))
    for column in (expected, expected[1:], pa.chunked_array([expected, expected[:1]])):
        np.testing.assert_array_equal(arrow.float_values(column), np.array(column.to_pylist(), float))
        assert arrow.null_rows(column).tolist() == [value is None for value in column.to_pylist()]
    mask = np.array([value is None for value in values], bool)
    assert arrow.booleans(mask).to_pylist() == mask.tolist()


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1), st.floats(0, 1))))
def test_float_rows(rows):
    table = np.array([row[1:] for row in rows]).reshape(-1, 2)
    valid = np.array([row[0] for row in rows], bool)
    expected = pa.array([list(row[1:]) if row[0] else None for row in rows], pa.list_(pa.float64()))
    assert sample_table.float_rows(table, valid).equals(expected)


@given(st.lists(st.integers(0, 3)))
def test_categories(codes):
    expected = pa.array(["abcd"[code] for code in codes], pa.dictionary(pa.int8(), pa.string()))
    assert sample_table.categories(np.array(codes, np.uint8), "abcd").equals(expected)


def test_numbers_of_another_type():
    np.testing.assert_array_equal(arrow.float_values(pa.chunked_array([[1, None]], pa.int8())), [1.0, np.nan])
    np.testing.assert_array_equal(arrow.float_values(pa.chunked_array([pa.nulls(2)])), [np.nan, np.nan])


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 8))
def test_selected_rows(rows, size):
    values = [f"text {row}" for row in range(len(rows))]
    chunks = [pa.array(values[start : start + size]) for start in range(0, len(values), size)]
    kept = selected(pa.chunked_array(chunks, pa.string()), np.array(rows, np.bool_))
    assert kept.to_pylist() == [value for value, row in zip(values, rows, strict=True) if row]


@given(st.lists(st.none() | st.lists(text, max_size=2), min_size=1, max_size=90), st.data())
def test_taken_rows(values, data):
    array = pa.array(values, pa.list_(pa.string()))
    rows = data.draw(st.lists(st.integers(0, len(values) - 1)) | st.just(list(range(len(values)))))
    assert arrow.taken(array, np.array(rows, np.int64)).to_pylist() == [values[row] for row in rows]


def test_scoring_a_file_imports_neither_pandas_nor_scipy_special(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"id": "1", "references": ["a dog"], "generated_answer": "a dog"}\n')
    code = (
        "import sys; from multimodal_eval.cli.main import cli; "
        "cli.main(['score', 'data.jsonl', '--metrics', 'rouge_l,bleu', '-o', 'run'], standalone_mode=False); "
        "heavy = {'pandas', 'scipy.special', 'scipy.stats'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=tmp_path)
