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


CAT = "black/JJ/amod/4 and/CC/cc/1 white/JJ/conj/1 cat/NN/ROOT/0"
ON_TOP_OF_A_BOX = "on/IN/prep/5 top/NN/pobj/6 of/IN/prep/7 a/DT/det/10 box/NN/pobj/8"


def shifted(text):
    """The parse with another word before it."""
    words = [word.rsplit("/", 3) for word in text.split()]
    return " ".join("/".join([*rest, str(int(head) + 1 if int(head) else 0)]) for *rest, head in words)


def test_two_colours_before_a_bare_noun_keep_the_subject():
    # the first colour is lost, "sitting" is an adjective, and "on top of" is one relation, as if there were a verb
    assert tuples(f"{CAT} sitting/VBG/acl/4 {ON_TOP_OF_A_BOX}") == (
        {"cat", "top", "box"},
        {("cat", "white"), ("cat", "sitting")},
        {("cat", "on top of", "box")},
    )
    standing = f"{CAT} standing/VBG/acl/4 in/IN/prep/5 snow/NN/pobj/6"
    assert tuples(standing)[1] == {("cat", "black"), ("cat", "white"), ("cat", "standing")}


def test_after_a_determiner_two_colours_keep_the_subject_of_other_gerunds():
    holding = f"a/DT/det/5 {shifted(CAT)} holding/VBG/acl/5 a/DT/det/8 ball/NN/dobj/6"
    assert tuples(holding)[2] == {("cat", "hold", "ball")}


def test_counted_plurals_keep_their_subject():
    boys = "boys/NNS/ROOT/0 flying/VBG/acl/1 a/DT/det/4 kite/NN/dobj/2"
    assert tuples(boys)[2] == set()
    assert tuples(f"two/CD/nummod/2 {shifted(boys)}")[2] == {("boy", "fly", "kite")}


def test_a_plural_without_its_ending_is_read_as_a_singular():
    zebra = "zebra/NNS/ROOT/0 standing/VBG/acl/1 in/IN/prep/2 grass/NN/pobj/3"
    assert tuples(zebra) == ({"standing", "grass"}, {("standing", "zebra")}, {("standing", "in", "grass")})


def test_one_colour_keeps_the_subject_of_standing():
    bear = "black/JJ/amod/2 bear/NN/ROOT/0 standing/VBG/acl/2 in/IN/prep/3 water/NN/pobj/4"
    assert tuples(bear) == (
        {"bear", "water"},
        {("bear", "black"), ("bear", "standing")},
        {("bear", "in", "water")},
    )


def test_sitting_keeps_its_subject_and_loses_its_phrase():
    girl = "a/DT/det/3 young/JJ/amod/3 girl/NN/ROOT/0 sitting/VBG/acl/3 on/IN/prep/4 a/DT/det/7 log/NN/pobj/5"
    assert tuples(girl) == ({"girl", "log"}, {("girl", "young")}, set())


def test_in_front_of_is_not_the_phrase_that_makes_riding_a_noun():
    in_snow = "man/NN/ROOT/0 riding/VBG/acl/1 a/DT/det/4 horse/NN/dobj/2 in/IN/prep/2 snow/NN/pobj/5"
    assert tuples(in_snow)[0] == {"riding", "horse", "snow"}
    in_front = f"{in_snow.replace('snow', 'front')} of/IN/prep/6 snow/NN/pobj/7"
    assert tuples(in_front)[0] == {"man", "horse", "front", "snow"}


def test_a_group_whose_name_has_no_ending_of_a_plural_is_of_standing():
    group = "herd/NN/ROOT/0 of/IN/prep/1 {} standing/VBG/acl/3 in/IN/prep/4 snow/NN/pobj/5"
    assert tuples(group.format("sheep/NNS/pobj/2")) == (
        {"herd", "standing", "snow"},
        {("standing", "sheep")},
        {("herd", "of", "standing"), ("standing", "in", "snow")},
    )
    assert tuples(group.format("cows/NNS/pobj/2"))[0] == {"herd", "cow", "snow"}
    assert tuples(group.format("people/NNS/pobj/2"))[0] == {"herd", "people", "snow"}


def test_a_man_and_a_tie_are_verbs_together():
    tie = "{}/NN/ROOT/0 in/IN/prep/1 a/DT/det/4 suit/NN/pobj/2 and/CC/cc/4 tie/NN/conj/4"
    assert tuples(tie.format("man")) == ({"suit"}, set(), set())
    assert tuples(tie.format("woman")) == (
        {"woman", "suit", "tie"},
        set(),
        {(w, "in", t) for w, t in [("woman", "suit"), ("woman", "tie")]},
    )


def test_skis_are_a_verb_after_riding():
    skis = "man/NN/ROOT/0 riding/VBG/acl/1 skis/NNS/dobj/2 down/IN/prep/2 a/DT/det/6 slope/NN/pobj/4"
    assert tuples(skis) == ({"riding", "slope"}, {("riding", "man")}, set())
    ridden = {("man", "ride", "ski"), ("man", "ride down", "slope")}
    assert tuples(f"a/DT/det/2 {shifted(skis)}") == ({"man", "ski", "slope"}, set(), ridden)


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
