"""From captions to matches, with the fetched parser."""

from __future__ import annotations

import pytest

from multimodal_eval.text.parsing import open_parser
from multimodal_eval.text.scene_graphs import captions
from multimodal_eval.text.scene_graphs.captions import compared_captions

pytestmark = pytest.mark.weights

CANDIDATES = ["A brown dog sleeps on a sofa.", "a fire hydrant", "", "a dog leaps over a log"]
REFERENCES = [
    ["A dog is sleeping on the couch.", "a brown dog"],
    ["two red hydrants"],
    ["a dog"],
    ["the dog jumps over a log", ""],
]


def test_matches_by_hand(weights):
    first, second, third, fourth = compared_captions(open_parser(), CANDIDATES, REFERENCES)
    # dog, sofa, (dog, brown), (dog, sleep on, sofa), in the candidate and in the references
    assert (first.all.matched, first.all.candidate, first.all.references) == (4, 4, 4)
    # hydrant, (hydrant, fire) against hydrant, (hydrant, 2), (hydrant, red)
    assert (second.all.matched, second.all.candidate, second.all.references) == (1, 2, 3)
    assert second.by_category["count"].references == second.by_category["color"].references == 1
    assert (third.all.matched, third.all.candidate, third.all.references) == (0, 0, 1)
    # dog, log, (dog, leap over, log) against dog, log, (dog, jump over, log)
    assert (fourth.all.matched, fourth.all.candidate, fourth.all.references) == (2, 3, 3)


def test_neither_threads_nor_blocks_change_a_match(weights, monkeypatch):
    parser = open_parser()
    whole = list(compared_captions(parser, CANDIDATES * 3, REFERENCES * 3))
    assert list(compared_captions(parser, CANDIDATES * 3, REFERENCES * 3, threads=3)) == whole
    monkeypatch.setattr(captions, "IMAGES_AT_ONCE", 5)
    assert list(compared_captions(parser, CANDIDATES * 3, REFERENCES * 3)) == whole
