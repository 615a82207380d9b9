"""Words that the parser mistakes."""

from __future__ import annotations

import pytest

from multimodal_eval.text.parsing import is_only_noun, stand_ins
from tests.text.scene_graphs.parsed import parsed


@pytest.mark.parametrize("word", ["hydrant", "hydrants", "racquet", "skateboarder"])
def test_only_nouns(word):
    assert is_only_noun(word)


@pytest.mark.parametrize("word", ["fire", "run", "red", "quickly", "zorble", "ox", "t-shirts", ""])
def test_others(word):
    assert not is_only_noun(word)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/DT/det/2 fire/NN/ROOT/0 hydrant/JJ/amod/2", {2: "car"}),
        ("two/CD/nummod/2 hydrants/VBZ/ROOT/0", {1: "cars"}),
        ("a/DT/det/2 hydrant/NN/ROOT/0", {}),
        # "a dog leaps" cannot be a noun phrase, "dog leaps" can
        ("a/DT/det/3 dog/NN/compound/3 leaps/NNS/ROOT/0", {2: "sits"}),
        ("a/DT/det/3 dog/NN/amod/3 leaps/NNS/ROOT/0", {2: "sits"}),
        ("dog/NN/compound/2 leaps/NNS/ROOT/0", {}),
        ("two/CD/nummod/3 dogs/NNS/compound/3 play/NN/ROOT/0", {2: "sit"}),
        ("a/DT/det/3 sports/NNS/compound/3 play/NN/ROOT/0", {}),
        ("a/DT/det/3 dog/NN/compound/3 biscuits/NNS/ROOT/0", {}),
        # "a bathroom sink": a base form follows a singular only after "to" or another verb, and is not the root
        ("a/DT/det/2 bathroom/NN/nsubj/3 sink/VB/ROOT/0", {2: "car"}),
        ("help/VB/ROOT/0 a/DT/det/3 boat/NN/nsubj/4 sink/VB/ccomp/1", {}),
        ("two/CD/nummod/2 boats/NNS/nsubj/3 sink/VBP/ROOT/0", {}),
        ("box/NN/nsubj/5 sitting/VBG/acl/1 on/IN/prep/2 bathroom/NN/pobj/3 sink/VB/ROOT/0", {4: "car"}),
        ("train/VB/ROOT/0 traveling/VBG/xcomp/1", {0: "car"}),
        ("stop/VB/ROOT/0 sign/NN/dobj/1", {}),
        # "a kitten sleeping": an adjective that is none modifies a verb
        ("a/DT/det/2 kitten/JJ/amod/3 sleeping/VBG/ROOT/0", {1: "car"}),
        ("the/DT/det/2 red/JJ/amod/3 sleeping/VBG/ROOT/0", {}),
    ],
)
def test_stand_ins(text, expected):
    assert stand_ins(parsed(text)) == expected
