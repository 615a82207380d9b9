"""Merged graphs and their F score, worked out by hand."""

from __future__ import annotations

import pytest

from multimodal_eval.text.scene_graphs.matching import (
    Counts,
    SceneGraph,
    attribute_kind,
    compare,
    is_same_object,
    is_same_word,
    merged,
)

ONE = SceneGraph(("dog", "couch"), (("dog", "brown"),), (("dog", "on", "couch"),))
TWO = SceneGraph(
    ("sofa", "dog"), (("dog", "big"), ("dog", "large")), (("dog", "on", "sofa"), ("dog", "sleep on", "sofa"))
)


def test_synonyms_share_a_synset_of_nouns():
    assert is_same_object("couch", "sofa")
    assert is_same_object("bathroom", "toilet")
    assert not is_same_object("couch", "chair")
    # "eat" and "feed" share synsets of verbs only
    assert not is_same_object("eat", "feed")
    assert is_same_word("eat", "feed")
    assert is_same_object("zorble", "zorble")
    assert not is_same_object("zorble", "dog")


def test_merging_unites_synonymous_objects_attributes_and_relations():
    # couch and sofa are one object, big and large one attribute, "on" occurs twice
    assert merged([ONE, TWO]) == SceneGraph(
        ("dog", "couch"),
        (("dog", "brown"), ("dog", "big")),
        (("dog", "on", "couch"), ("dog", "sleep on", "couch")),
    )


def test_merging_twice_changes_nothing():
    once = merged([ONE, TWO])
    assert merged([once]) == once
    assert merged([once, once]) == once
    assert merged([]) == SceneGraph()


def test_f_by_hand():
    # the candidate has 4 tuples: dog, cushion, (dog, brown), (dog, on, cushion); the references 6 (see above).
    candidate = merged([SceneGraph(("dog", "cushion"), (("dog", "brown"),), (("dog", "on", "cushion"),))])
    match = compare(candidate, merged([ONE, TWO]))
    assert match.all == Counts(matched=2, candidate=4, references=6)
    assert match.all.precision == 0.5
    assert match.all.recall == pytest.approx(1 / 3)
    assert match.all.f == pytest.approx(2 * 0.5 * (1 / 3) / (0.5 + 1 / 3))
    assert match.matched.objects == ["dog"]
    assert match.matched.attributes == ["dog: brown"]
    assert match.unmatched.relations == ["dog, on, cushion"]
    assert match.missed.objects == ["couch"]
    assert match.missed.attributes == ["dog: big"]
    assert match.missed.relations == ["dog, on, couch", "dog, sleep on, couch"]


def test_synonyms_match_in_every_position():
    candidate = SceneGraph(("sofa",), (("sofa", "large"),), (("puppy", "drive", "sofa"),))
    reference = SceneGraph(("couch",), (("couch", "big"),), (("puppy", "ride", "couch"),))
    assert compare(candidate, reference).all == Counts(3, 3, 3)


def test_categories():
    graph = SceneGraph(("dog",), (("dog", "brown"), ("dog", "2"), ("dog", "small"), ("dog", "happy")), ())
    match = compare(graph, graph)
    sizes = {name: counts.candidate for name, counts in match.by_category.items()}
    assert sizes == {"object": 1, "attribute": 4, "relation": 0, "color": 1, "count": 1, "size": 1}
    assert attribute_kind("happy") is None


@pytest.mark.parametrize("sides", [(SceneGraph(), SceneGraph()), (SceneGraph(), ONE), (ONE, SceneGraph())])
def test_empty_graphs_score_0(sides):
    match = compare(*sides)
    assert (match.all.f, match.all.precision, match.all.recall) == (0, 0, 0)
