"""How openings are read, as the original's output shows it; `plain` reads them as clauses."""

from __future__ import annotations

import pytest

from multimodal_eval.text.scene_graphs.captions import scene_graph
from multimodal_eval.text.scene_graphs.matching import opening_of
from tests.text.scene_graphs.parsed import parsed

STANDING = "a/DT/det/3 tall/JJ/amod/3 man/NN/ROOT/0 standing/VBG/acl/3 on/IN/prep/4 a/DT/det/7 rock/NN/pobj/5"
PAINTING = (
    "a/DT/det/2 man/NN/ROOT/0 painting/VBG/acl/2 a/DT/det/5 wall/NN/dobj/3 in/IN/prep/3 a/DT/det/8 room/NN/pobj/6"
)
BARE = "man/NN/ROOT/0 sitting/VBG/acl/1 on/IN/prep/2 a/DT/det/5 log/NN/pobj/3 near/IN/prep/2 a/DT/det/8 fire/NN/pobj/6"
HOLDING = "girl/NN/ROOT/0 holding/VBG/acl/1 a/DT/det/4 kite/NN/dobj/2"
HOLDING_IN = f"{HOLDING} in/IN/prep/2 a/DT/det/7 park/NN/pobj/5"
STOP = "stop/NN/compound/2 sign/NN/ROOT/0 on/IN/prep/2 a/DT/det/5 post/NN/pobj/3"
PLURAL = "dogs/NNS/ROOT/0 playing/VBG/acl/1 in/IN/prep/2 snow/NN/pobj/3"


def tuples(text, openings="original"):
    graph = scene_graph(parsed(text), openings)
    return set(graph.objects), set(graph.attributes), set(graph.relations)


def test_a_frequent_gerund_is_a_noun_with_the_words_before_it_as_attributes():
    assert tuples(STANDING) == (
        {"standing", "rock"},
        {("standing", "tall"), ("standing", "man")},
        {("standing", "on", "rock")},
    )


def test_other_gerunds_lose_their_subject_if_they_have_an_object():
    assert tuples(PAINTING) == ({"man", "wall", "room"}, set(), set())


def test_the_first_phrase_after_a_lost_object_is_lost_too():
    flying = "man/NN/ROOT/0 flying/VBG/acl/1 a/DT/det/4 kite/NN/dobj/2 in/IN/prep/4 the/DT/det/7 sky/NN/pobj/5"
    assert tuples(flying) == ({"man", "kite", "sky"}, set(), set())
    game = "boys/NNS/ROOT/0 playing/VBG/acl/1 a/DT/det/4 game/NN/dobj/2 of/IN/prep/4 chess/NN/pobj/5"
    assert tuples(game)[2] == {("game", "of", "chess")}


def test_after_a_bare_noun_the_first_phrase_is_lost_and_the_second_belongs_to_the_nearest_noun():
    assert tuples(BARE) == ({"man", "log", "fire"}, set(), {("log", "near", "fire")})


def test_a_bare_gerund_is_a_noun_only_with_an_object_and_one_phrase():
    assert opening_of(parsed(HOLDING)).reading == "lost"
    assert opening_of(parsed(HOLDING_IN)).reading == "noun"
    assert tuples(HOLDING_IN) == ({"holding", "kite", "park"}, {("holding", "girl")}, {("kite", "in", "park")})


def test_two_colours_before_a_bare_noun():
    # the first colour is lost, and "on top of" is one relation, as if there were a verb
    cat = (
        "black/JJ/amod/4 and/CC/cc/1 white/JJ/conj/1 cat/NN/ROOT/0 sitting/VBG/acl/4 on/IN/prep/5 top/NN/pobj/6 "
        "of/IN/prep/7 a/DT/det/10 box/NN/pobj/8"
    )
    assert tuples(cat) == (
        {"sitting", "top", "box"},
        {("sitting", "white"), ("sitting", "cat")},
        {("sitting", "on top of", "box")},
    )


def test_stop_is_an_order():
    assert tuples(STOP) == ({"sign", "post"}, set(), set())


def test_plurals_without_an_object_are_clauses():
    assert tuples(PLURAL) == ({"dog", "snow"}, set(), {("dog", "play in", "snow")})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STANDING, ({"man", "rock"}, {("man", "tall")}, {("man", "stand on", "rock")})),
        (HOLDING_IN, ({"girl", "kite", "park"}, set(), {("girl", "hold", "kite"), ("girl", "hold in", "park")})),
        (STOP, ({"sign", "post"}, {("sign", "stop")}, {("sign", "on", "post")})),
    ],
)
def test_plain_openings_are_clauses(text, expected):
    assert tuples(text, "plain") == expected
