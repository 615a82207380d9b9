"""Captions of drawn scenes are true, distractors are false, and a seed always gives the same image."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.shapes_clip.captions import caption, hard_distractors
from tools.shapes_clip.drawing import draw
from tools.shapes_clip.layout import lay_out
from tools.shapes_clip.scenes import CHANGES, KINDS, Background, Group, Scene, drawable, random_scene, vary
from tools.shapes_clip.statements import Mention, Statement, is_true
from tools.shapes_clip.wording import COLOUR_WORDS, SHAPE_WORDS

seeds = st.integers(0, 2**32)
RED_LEFT_OF_BLUE = Scene((Group("circle", "red"), Group("square", "blue", "striped", count=3)), "left")
COLOUR_OF = {word: colour for colour, words in COLOUR_WORDS.items() for word in words}


def mentioned_colours(text):
    return {COLOUR_OF[word] for word in re.findall(r"\w+", text.lower()) if word in COLOUR_OF}


@given(seeds)
def test_every_caption_is_true_and_matches_its_statement(seed):
    random = Random(seed)
    scene = random_scene(random)
    description = caption(scene, random)
    assert is_true(description.statement, scene)
    statement = description.statement
    claimed = {mention.colour for mention in statement.mentions} | {statement.background_colour}
    assert mentioned_colours(description.text) == claimed - {None}
    for mention in statement.mentions:
        names = [name for pair in SHAPE_WORDS.get(mention.shape, ()) for name in pair]
        assert not names or any(name in description.text.lower() for name in names)


@given(seeds)
@settings(deadline=None, max_examples=50)
def test_distractors_are_false_and_differ(seed):
    random = Random(seed)
    scene = random_scene(random)
    distractors = hard_distractors(scene, 30, random)
    assert len({distractor.text for distractor in distractors}) == 30
    assert not any(is_true(distractor.statement, scene) for distractor in distractors)
    assert {distractor.change for distractor in distractors} <= set(CHANGES)


@pytest.mark.parametrize(
    ("mentions", "relation", "truth"),
    [
        ((Mention(1, "circle", "red"), Mention(3, "square", "blue", "striped")), "left", True),
        ((Mention(1, "circle", "red"), Mention(3, "square", "blue", "striped")), "right", False),
        ((Mention(3, "square"), Mention(1, "circle")), "right", True),
        ((Mention(1, "circle", "blue"), Mention(3, "square", "red")), "left", False),
        ((Mention(None, "square"),), None, True),
        ((Mention(None, "circle"),), None, False),
        ((Mention(2, "square"),), None, False),
        ((Mention(4),), None, True),  # one circle and three squares make four things
        ((Mention(1, "circle"), Mention(1, colour="red")), None, False),  # the red thing is the circle itself
    ],
)
def test_truth_worked_out_by_hand(mentions, relation, truth):
    assert is_true(Statement(mentions, relation), RED_LEFT_OF_BLUE) is truth


def test_a_background_can_be_wrong():
    scene = Scene((Group("star", "red"),), background=Background("green", "dotted"))
    star = (Mention(1, "star"),)
    assert is_true(Statement(star, background_colour="green", background_texture="dotted"), scene)
    assert not is_true(Statement(star, background_texture="striped"), scene)


@given(seeds, st.sampled_from(CHANGES))
def test_a_change_changes_something(seed, change):
    random = Random(seed)
    scene = random_scene(random)
    other = vary(scene, change, random)
    assert other != scene


@given(seeds, st.sampled_from(KINDS))
def test_things_are_placed_as_in_the_scene(seed, kind):
    random = Random(seed)
    scene = random_scene(random, kind)
    assert drawable(scene)
    placed = lay_out(scene, random)
    assert [sum(thing.group == at for thing in placed) for at in range(len(scene.groups))] == [
        group.count for group in scene.groups
    ]
    assert all(thing.x - thing.radius >= 0 and thing.x + thing.radius <= 1 for thing in placed)
    assert all(thing.y - thing.radius >= 0 and thing.y + thing.radius <= 1 for thing in placed)
    first, second = ([thing for thing in placed if thing.group == at] for at in (0, 1))
    if scene.relation == "left":
        assert max(thing.x for thing in first) < min(thing.x for thing in second)
    if scene.relation == "above":
        assert max(thing.y for thing in first) < min(thing.y for thing in second)
    if scene.relation == "inside":
        assert first[0].radius < second[0].radius / 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_always_gives_the_same_image(kind):
    scene = random_scene(Random(7), kind)
    image = draw(scene, 1, 96)
    assert image.size == (96, 96)
    assert image.mode == "RGB"
    assert image.tobytes() == draw(scene, 1, 96).tobytes()
    assert image.tobytes() != draw(scene, 2, 96).tobytes()


@pytest.mark.parametrize(("size", "low", "high"), [("small", 0.03, 0.07), ("big", 0.3, 0.47)])
def test_the_area_of_a_thing(size, low, high):
    # A circle of radius 0.11 to 0.14 covers 3.8 to 6.2%, one of 0.32 to 0.38 covers 32 to 45 %.
    image = draw(Scene((Group("circle", "red", size=size),), background=Background("white")), 3, 100)
    pixels = np.asarray(image)
    red = (pixels[..., 0] > 100) & (pixels[..., 1] < 100)
    assert low < red.mean() < high
