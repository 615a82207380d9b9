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
def test_an_error_of_another_process_arrives_whole(error):
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
