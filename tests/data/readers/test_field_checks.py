"""The values of fields at and beyond the ends of what is allowed."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from multimodal_eval.data.readers import field_checks
from multimodal_eval.data.readers.field_checks import (
    RefusedError,
    as_mapping,
    checked_boolean,
    checked_boxes,
    checked_epoch,
    checked_expected,
    checked_logprobs,
    checked_name,
    checked_perplexity,
    checked_references,
    checked_text,
)


@pytest.mark.parametrize(
    ("check", "value", "checked"),
    [
        (checked_perplexity, 1, 1.0),
        (checked_perplexity, 1e300, 1e300),
        (checked_logprobs, [0, -0.5], [0.0, -0.5]),
        (checked_logprobs, [], []),
        (checked_epoch, 0, 0),
        (checked_epoch, 2.0, 2),
        (checked_epoch, 2**63 - 1, 2**63 - 1),
        (checked_name, 7, "7"),
        (checked_name, "a", "a"),
        (checked_references, ("a", "é"), ["a", "é"]),
        (checked_references, "a dog", ["a dog"]),
        (checked_expected, 0, "0"),
        (checked_expected, np.int64(7), "7"),
        (checked_boolean, False, False),
    ],
)
def test_values_at_the_ends_are_taken(check, value, checked):
    assert check("field", value) == checked


@pytest.mark.parametrize(
    ("check", "value", "code"),
    [
        (checked_perplexity, 0.999, "RANGE"),
        (checked_perplexity, inf, "NONFINITE"),
        (checked_perplexity, 10**400, "NONFINITE"),
        (checked_perplexity, True, "TYPE"),
        (checked_logprobs, [-1.0, 1e-9], "RANGE"),
        (checked_logprobs, [nan], "NONFINITE"),
        (checked_logprobs, -1.0, "TYPE"),
        (checked_epoch, -1, "RANGE"),
        (checked_epoch, 2**63, "RANGE"),
        (checked_epoch, 1.5, "TYPE"),
        (checked_epoch, nan, "TYPE"),
        (checked_epoch, -inf, "TYPE"),
        (checked_name, " ", "TYPE"),
        (checked_name, True, "TYPE"),
        (checked_name, 1.0, "TYPE"),
        (checked_references, [], "NO_REFERENCE"),
        (checked_references, ["a", " "], "EMPTY_REFERENCE"),
        (checked_references, ["a", 1], "TYPE"),
        (checked_references, " ", "EMPTY_REFERENCE"),
        (checked_references, 3, "TYPE"),
        (checked_boolean, 1, "TYPE"),
        (checked_text, "a\0", "CONTROL_CHAR"),
        (checked_text, "\ud800", "CONTROL_CHAR"),
        (checked_boxes, [[1, 2, 3]], "TYPE"),
        (checked_boxes, [[1, 2, 3, "4"]], "TYPE"),
        (checked_boxes, [[5, 0, 4, 1]], "RANGE"),
        (checked_boxes, [[0, 5, 1, 4]], "RANGE"),
        (checked_boxes, [{"box": [0, 0, 1, 1], "name": "dog"}], "TYPE"),
        (as_mapping, [("a", 1), ("a", 2)], "DUPLICATE"),
    ],
)
def test_values_beyond_the_ends_are_refused(check, value, code):
    with pytest.raises(RefusedError) as refusal:
        check("field", value)
    assert refusal.value.code == code


def test_boxes_may_have_no_area():
    point, line, named = checked_boxes("boxes", [[3, 4, 3, 4], [1, 2, 1, 9], {"box": [0, 0, 1, 1], "score": 1}])
    assert (point.box, line.box, named.box) == ((3, 4, 3, 4), (1, 2, 1, 9), (0, 0, 1, 1))
    assert (named.label, named.score) == (None, 1.0)


def test_a_text_has_at_most_the_allowed_bytes(monkeypatch):
    monkeypatch.setattr(field_checks, "LONGEST_TEXT", 4)
    assert checked_references("field", ["éé"]) == ["éé"]
    assert checked_text("field", "abcd") == "abcd"
    for text in ("abcde", "ééé"):
        with pytest.raises(RefusedError, match="`field` is longer than 4 bytes"):
            checked_text("field", text)
