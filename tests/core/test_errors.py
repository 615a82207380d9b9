from __future__ import annotations

import pickle

import pytest

from multimodal_eval.core.errors import InputError, Problem, UnknownNameError


@pytest.mark.parametrize(
    "error",
    [
        UnknownNameError("metric", "cidr", ["cider"]),
        InputError([Problem(code="bad_type", message="`id` must be a string", line=3)], total=7),
    ],
)
def test_errors_can_be_pickled(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def problem(line, message="`id` must be a string. Got 1.5 instead.", **fields):
    return Problem(code="TYPE", message=message, file="data.jsonl", line=line, **fields)


def test_problems_of_one_kind_are_grouped():
    values = [problem(number, f"`id` must be a string. Got {number}.5 instead.") for number in range(1, 11)]
    error = InputError(
        [*values, problem(20, "`references` must be a list. Got 'a \\'dog\\' 7' instead.", field="references")]
    )
    assert str(error).splitlines() == [
        "data.jsonl:1: TYPE: `id` must be a string. Got 1.5 instead.",
        "data.jsonl:2: TYPE: `id` must be a string. Got 2.5 instead.",
        "data.jsonl:3: TYPE: `id` must be a string. Got 3.5 instead.",
        "  7 more like this: line 4, line 5, line 6, line 7, line 8 …",
        "data.jsonl:20: TYPE: `references` must be a list. Got 'a \\'dog\\' 7' instead.",
        "11 problems",
    ]


def test_problems_without_a_line_are_found_by_their_id():
    unmatched = [Problem(code="UNMATCHED", message="not in the run b", id=str(number)) for number in range(5)]
    assert "  2 more like this: id '3', id '4'\n5 problems" in str(InputError(unmatched))
    assert str(InputError(unmatched[:1], 7000)).endswith("\n… 7,000 problems in total, the first 1 listed")
    nowhere = [Problem(code="ODD", message="it is odd")] * 4
    assert "  1 more like this\n4 problems" in str(InputError(nowhere))
