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
