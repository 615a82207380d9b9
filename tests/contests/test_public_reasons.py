"""Reasons of refusals for everyone."""

from __future__ import annotations

import pytest

from multimodal_eval.contests.submissions import UNKNOWN, public_reason
from multimodal_eval.core.errors import ConfigError, InputError, NothingScoredError, Problem

SECRET = "okapi '17' \"x\" it's"


def problem(code, **fields):
    return Problem(code=code, message=f"Got {SECRET} instead", file=SECRET, line=3, id=SECRET, value=SECRET, **fields)


def test_kinds_are_counted_and_nothing_is_quoted():
    error = InputError([problem("TYPE"), problem("TYPE"), problem("UNMATCHED", hint=SECRET)])
    assert "okapi" in str(error)
    assert public_reason(error) == (
        "TYPE: values of the wrong type (2 problems); UNMATCHED: ids without an answer, or answers without a sample"
    )


def test_a_code_that_is_not_ours_is_not_shown():
    """A plug-in may use any code."""
    assert public_reason(InputError([problem(SECRET)])) == "other problems of the input"


def test_problems_that_are_not_listed_are_counted():
    assert public_reason(InputError([problem("SYNTAX")], 1_200)) == "SYNTAX: invalid JSON; 1,199 further problems"


@pytest.mark.parametrize("error", [ConfigError(SECRET), ValueError(SECRET), InputError([])])
def test_other_errors_say_nothing(error):
    assert public_reason(error) == UNKNOWN


def test_nothing_scored():
    error = NothingScoredError([problem("NOTHING_SCORED")])
    assert public_reason(error) == "NOTHING_SCORED: no sample that the metric can score"
