"""A flipped bit in any file of a run is noticed, or changes nothing that a reader shows."""

from __future__ import annotations

import pytest

from tests.hostile.bit_flips import KINDS, audit, flips, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("flipped"))


def test_the_run_has_every_kind_of_file(run):
    assert [kind for kind in KINDS if not list(flips(run, kind, 1, 0))] == []


def test_no_flip_changes_anything_unnoticed(run):
    outcomes = audit(run, count=8)
    assert {kind: dict(counts) for kind, counts in outcomes.items() if counts["silent"] or counts["crash"]} == {}
    assert outcomes["scores"] == outcomes["samples"] == outcomes["state"] == {"detected": 8}


@pytest.mark.slow
def test_no_flip_changes_anything_unnoticed_in_many_places(run):
    outcomes = audit(run, count=300, seed=1)
    assert {kind: dict(counts) for kind, counts in outcomes.items() if counts["silent"] or counts["crash"]} == {}
