"""Scene graphs of our own captions, worked out by hand from their parses."""

from __future__ import annotations

import pytest

from multimodal_eval.text.scene_graphs.captions import scene_graph
from tests.text.scene_graphs.parsed import parsed

CASES = {
    # a brown dog sleeps on a red couch
    "a/DT/det/3 brown/JJ/amod/3 dog/NN/nsubj/4 sleeps/VBZ/ROOT/0 on/IN/prep/4 a/DT/det/8 red/JJ/amod/8 "
    "couch/NN/pobj/5": (
        ["dog", "couch"],
        [("dog", "brown"), ("couch", "red")],
        [("dog", "sleep on", "couch")],
    ),
    # two children build a sand castle
    "two/CD/nummod/2 children/NNS/nsubj/3 build/VBP/ROOT/0 a/DT/det/6 sand/NN/compound/6 castle/NN/dobj/3": (
        ["child", "castle"],
        [("child", "2"), ("castle", "sand")],
        [("child", "build", "castle")],
    ),
    # the baby smiles: a verb without an object is an attribute
    "the/DT/det/2 baby/NN/nsubj/3 smiles/VBZ/ROOT/0": (["baby"], [("baby", "smile")], []),
    # the road is wet and narrow
    "the/DT/det/2 road/NN/nsubj/3 is/VBZ/ROOT/0 wet/JJ/acomp/3 and/CC/cc/4 narrow/JJ/conj/4": (
        ["road"],
        [("road", "wet"), ("road", "narrow")],
        [],
    ),
    # a room with a bed and a desk: the parser attaches the desk to the room, the rule to the bed
    "a/DT/det/2 room/NN/ROOT/0 with/IN/prep/2 a/DT/det/5 bed/NN/pobj/3 and/CC/cc/5 a/DT/det/8 desk/NN/conj/2": (
        ["room", "bed", "desk"],
        [],
        [("room", "with", "bed"), ("room", "with", "desk")],
    ),
    # a room with a bed and a stove and a desk: the last noun of a list, which the parser calls an apposition
    "a/DT/det/2 room/NN/ROOT/0 with/IN/prep/2 a/DT/det/5 bed/NN/pobj/3 and/CC/cc/5 a/DT/det/8 stove/NN/conj/5 "
    "and/CC/cc/5 a/DT/det/11 desk/NN/appos/2": (
        ["room", "bed", "stove", "desk"],
        [],
        [("room", "with", "bed"), ("room", "with", "stove"), ("room", "with", "desk")],
    ),
    # a view of a room with a desk: the room has the desk; a girl in white: "white" is an object
    "a/DT/det/2 view/NN/ROOT/0 of/IN/prep/2 a/DT/det/5 room/NN/pobj/3 with/IN/prep/2 a/DT/det/8 desk/NN/pobj/6": (
        ["view", "room", "desk"],
        [],
        [("view", "of", "room"), ("room", "with", "desk")],
    ),
    "a/DT/det/2 girl/NN/ROOT/0 in/IN/prep/2 white/JJ/pobj/3": (["girl", "white"], [], [("girl", "in", "white")]),
    # a snow covered hill
    "a/DT/det/4 snow/NN/npadvmod/3 covered/VBN/amod/4 hill/NN/ROOT/0": (
        ["snow", "hill"],
        [],
        [("hill", "cover", "snow")],
    ),
    # a cake is cut by a girl in a kitchen: only the agent of a passive is a relation
    "a/DT/det/2 cake/NN/nsubjpass/4 is/VBZ/auxpass/4 cut/VBN/ROOT/0 by/IN/agent/4 a/DT/det/7 girl/NN/pobj/5 "
    "in/IN/prep/4 a/DT/det/10 kitchen/NN/pobj/8": (["cake", "girl", "kitchen"], [], [("girl", "cut", "cake")]),
    # a man walks his dog: "his" is the first object
    "a/DT/det/2 man/NN/nsubj/3 walks/VBZ/ROOT/0 his/PRP$/poss/5 dog/NN/dobj/3": (
        ["man", "dog"],
        [],
        [("man", "walk", "dog"), ("man", "have", "dog")],
    ),
    # the girl 's kite
    "the/DT/det/2 girl/NN/poss/4 's/POS/case/2 kite/NN/ROOT/0": (["girl", "kite"], [], [("girl", "have", "kite")]),
    # a table with a lamp on it
    "a/DT/det/2 table/NN/ROOT/0 with/IN/prep/2 a/DT/det/5 lamp/NN/pobj/3 on/IN/prep/5 it/PRP/pobj/6": (
        ["table", "lamp"],
        [],
        [("table", "with", "lamp"), ("lamp", "on", "table")],
    ),
    # a boat tied to a dock
    "a/DT/det/2 boat/NN/ROOT/0 tied/VBN/acl/2 to/IN/prep/3 a/DT/det/6 dock/NN/pobj/4": (
        ["boat", "dock"],
        [],
        [("boat", "tie to", "dock")],
    ),
    # a house in front of a hill: without a verb, "front" has relations
    "a/DT/det/2 house/NN/ROOT/0 in/IN/prep/2 front/NN/pobj/3 of/IN/prep/4 a/DT/det/7 hill/NN/pobj/5": (
        ["house", "front", "hill"],
        [],
        [("house", "in", "front"), ("front", "of", "hill")],
    ),
    # a bus stops in front of a school: with a verb, "in front of" is a preposition
    "a/DT/det/2 bus/NN/nsubj/3 stops/VBZ/ROOT/0 in/IN/prep/3 front/NN/pobj/4 of/IN/prep/5 a/DT/det/8 "
    "school/NN/pobj/6": (["bus", "front", "school"], [], [("bus", "stop in front of", "school")]),
    # a tent next to a lake
    "a/DT/det/2 tent/NN/ROOT/0 next/RB/advmod/2 to/IN/prep/3 a/DT/det/6 lake/NN/pobj/4": (
        ["tent", "lake"],
        [],
        [("tent", "next to", "lake")],
    ),
    # a horse grazes next to a fence: not an attribute
    "a/DT/det/2 horse/NN/nsubj/3 grazes/VBZ/ROOT/0 next/RB/advmod/3 to/IN/prep/4 a/DT/det/7 fence/NN/pobj/5": (
        ["horse", "fence"],
        [],
        [("horse", "graze next to", "fence")],
    ),
    # a white owl sits on a roof: the parser takes owl and white for modifiers of the verb
    "a/DT/det/4 white/JJ/amod/4 owl/NN/compound/4 sits/VBZ/ROOT/0 on/IN/prep/4 a/DT/det/7 roof/NN/pobj/5": (
        ["owl", "roof"],
        [("owl", "white")],
        [("owl", "sit on", "roof")],
    ),
    # a black and white oak chair: both adjectives belong to the chair
    "a/DT/det/6 black/JJ/amod/5 and/CC/cc/2 white/NN/conj/2 oak/NN/compound/6 chair/NN/ROOT/0": (
        ["chair"],
        [("chair", "oak"), ("chair", "black"), ("chair", "white")],
        [],
    ),
    # a picture is shown with a flag waving: a passive and a participle without an object are not attributes
    "a/DT/det/2 picture/NN/nsubjpass/4 is/VBZ/auxpass/4 shown/VBN/ROOT/0 with/IN/prep/4 a/DT/det/7 flag/NN/pobj/5 "
    "waving/VBG/acl/7": (["picture", "flag"], [], []),
    # a cat tries to climb out of a box: only a coordinated verb has the subject of another
    "a/DT/det/2 cat/NN/nsubj/3 tries/VBZ/ROOT/0 to/TO/aux/5 climb/VB/xcomp/3 out/IN/prep/5 of/IN/prep/6 a/DT/det/9 "
    "box/NN/pobj/7": (["cat", "box"], [("cat", "try")], []),
    # a couple of birds on a wire: "couple of" counts the birds
    "a/DT/det/2 couple/NN/ROOT/0 of/IN/prep/2 birds/NNS/pobj/3 on/IN/prep/4 a/DT/det/7 wire/NN/pobj/5": (
        ["couple", "bird", "wire"],
        [("bird", "couple")],
        [("bird", "on", "wire")],
    ),
    # a group of people riding bicycles: the people ride, although the parser attaches the verb to the group
    "a/DT/det/2 group/NN/ROOT/0 of/IN/prep/2 people/NNS/pobj/3 riding/VBG/acl/2 bicycles/NNS/dobj/5": (
        ["group", "people", "bicycle"],
        [("people", "group")],
        [("group", "of", "people"), ("people", "ride", "bicycle")],
    ),
    # a herd of cows grazing near a river: the same, if the parser takes the herd for the subject
    "a/DT/det/2 herd/NN/nsubj/5 of/IN/prep/2 cows/NNS/pobj/3 grazing/VBG/ROOT/0 near/IN/prep/5 a/DT/det/8 "
    "river/NN/pobj/6": (
        ["herd", "cow", "river"],
        [],
        [("herd", "of", "cow"), ("cow", "graze near", "river")],
    ),
    # a horse that is behind a fence: of a relative clause, only "in front of" and "on top of" are relations
    "a/DT/det/2 horse/NN/ROOT/0 that/WDT/nsubj/4 stands/VBZ/relcl/2 behind/IN/prep/4 a/DT/det/7 fence/NN/pobj/5": (
        ["horse", "fence"],
        [],
        [],
    ),
    # a vase that stands on top of a shelf
    "a/DT/det/2 vase/NN/ROOT/0 that/WDT/nsubj/4 stands/VBZ/relcl/2 on/IN/prep/4 top/NN/pobj/5 of/IN/prep/6 a/DT/det/9 "
    "shelf/NN/pobj/7": (["vase", "top", "shelf"], [], [("vase", "stand on top of", "shelf")]),
    # the boy kicks and throws a ball: the second verb has the subject of the first
    "the/DT/det/2 boy/NN/nsubj/3 kicks/VBZ/ROOT/0 and/CC/cc/3 throws/VBZ/conj/3 a/DT/det/7 ball/NN/dobj/5": (
        ["boy", "ball"],
        [("boy", "kick")],
        [("boy", "throw", "ball")],
    ),
    # this is a castle: a pronoun that refers to nothing is not an object
    "this/DT/nsubj/2 is/VBZ/ROOT/0 a/DT/det/4 castle/NN/attr/2": (["castle"], [], []),
    # the animal is a fox
    "the/DT/det/2 animal/NN/nsubj/3 is/VBZ/ROOT/0 a/DT/det/5 fox/NN/attr/3": (
        ["animal", "fox"],
        [],
        [("animal", "be", "fox")],
    ),
    "": ([], [], []),
}


@pytest.mark.parametrize("text", CASES, ids=lambda text: " ".join(word.split("/")[0] for word in text.split()))
def test_graph(text):
    objects, attributes, relations = CASES[text]
    graph = scene_graph(parsed(text))
    assert list(graph.objects) == objects
    assert sorted(graph.attributes) == sorted(attributes)
    assert sorted(graph.relations) == sorted(relations)
