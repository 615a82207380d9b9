"""Training and test data, generated in processes without torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.shapes_clip.captions import DETAILS, caption, hard_distractors
from tools.shapes_clip.drawing import draw
from tools.shapes_clip.preprocessing import DRAWN, pixels
from tools.shapes_clip.scenes import (
    BACKGROUND_COLOURS,
    CHANGES,
    COLOURS,
    MAX_COUNT,
    RELATIONS,
    SHAPES,
    SIZES,
    TEXTURES,
    Scene,
    drawable,
    random_scene,
    vary,
)
from tools.shapes_clip.statements import is_true
from tools.shapes_clip.vocabulary import COMMON, OFF_TOPIC, padded

TRUE, FALSE = 4, 12  # captions kept per image
WORDS = 32  # tokens per training caption
DISTRACTORS, RIVALS = 100, 20  # wrong captions and images per test scene
# The hardest facts to learn (which of two things is where and has which attribute) are contradicted most often.
FOCUS = tuple(3 if change in ("roles", "exchange") else 2 if change == "shape" else 1 for change in CHANGES)
# The classes of each fact about a scene, in the order of `labels`. 0 for the second group means that there is none.
GROUP_CLASSES = [len(SHAPES) + 1, len(COLOURS) + 1, len(TEXTURES) + 1, len(SIZES) + 1, MAX_COUNT + 1]
CLASSES = [len(RELATIONS) + 1, len(BACKGROUND_COLOURS), len(TEXTURES), *GROUP_CLASSES, *GROUP_CLASSES]


@dataclass(frozen=True)
class Chunk:
    """Pairs of images that differ in one thing, with their captions and facts."""

    images: NDArray[np.uint8]  # n, height, width, 3
    captions: NDArray[np.int16]  # n, TRUE + FALSE, WORDS
    facts: NDArray[np.uint8]  # n, len(CLASSES)


@dataclass(frozen=True)
class Trial:
    """One test scene. The first caption is the true one."""

    image: NDArray[np.uint8]
    detail: float
    captions: list[str]
    changes: list[str]  # of each distractor
    rivals: NDArray[np.uint8]  # images for which the true caption is false


def start_worker(tokenizer: str) -> None:
    """Load the tokenizer in a worker process."""
    global _TOKENIZER
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer

    _TOKENIZER = Tokenizer.from_str(tokenizer)


_TOKENIZER: Any = None


def labels(scene: Scene) -> list[int]:
    """The facts of a scene as class numbers."""
    classes = [
        RELATIONS.index(scene.relation) + 1 if scene.relation else 0,
        BACKGROUND_COLOURS.index(scene.background.colour),
        TEXTURES.index(scene.background.texture),
    ]
    for at in range(2):
        if at == len(scene.groups):
            return classes + [0] * len(GROUP_CLASSES)
        group = scene.groups[at]
        classes += [SHAPES.index(group.shape) + 1, COLOURS.index(group.colour) + 1, TEXTURES.index(group.texture) + 1]
        classes += [SIZES.index(group.size) + 1, group.count]
    return classes


def variation(scene: Scene, random: Random) -> Scene:
    """A drawable scene that differs in one thing."""
    while True:
        other = vary(scene, random.choice(CHANGES), random)
        if other is not None and drawable(other):
            return other


def make_chunk(task: tuple[int, int, int]) -> Chunk:
    """Training data from a seed: (seed, number of pairs, image size)."""
    seed, pairs, size = task
    random = Random(f"train {seed}")
    images, texts, facts = [], [], []
    for _ in range(pairs):
        first = random_scene(random)
        for scene in (first, variation(first, random)):
            images.append(pixels(draw(scene, random.getrandbits(48), DRAWN), size))
            texts += [caption(scene, random).text for _ in range(TRUE)]
            texts += [wrong.text for wrong in hard_distractors(scene, FALSE - 1, random, focus=FOCUS)]
            texts.append(_off_topic(scene, random))
            facts.append(labels(scene))
    ids = [padded(encoding.ids, WORDS) for encoding in _TOKENIZER.encode_batch(texts)]
    captions = np.array(ids, dtype=np.int16).reshape(len(facts), TRUE + FALSE, WORDS)
    return Chunk(np.stack(images), captions, np.array(facts, dtype=np.uint8))


def _off_topic(scene: Scene, random: Random) -> str:
    """A text about something else, or the right colour with the wrong kind of thing."""
    if random.random() < 0.5:
        return " ".join(random.choice(COMMON) for _ in range(random.randint(2, 12)))
    return f"a {scene.groups[0].colour} {random.choice(OFF_TOPIC)}"


def make_trial(task: tuple[int, int]) -> Trial:
    """A test scene from a seed: (seed, image size). Test seeds differ from training seeds."""
    seed, size = task
    random = Random(f"test {seed}")
    scene = random_scene(random)
    detail = random.choice(DETAILS)
    truth = caption(scene, random, detail)
    wrong = hard_distractors(scene, DISTRACTORS, random, detail)
    rivals: list[NDArray[np.uint8]] = []
    while len(rivals) < RIVALS:
        other = variation(scene, random)
        if not is_true(truth.statement, other):
            rivals.append(pixels(draw(other, random.getrandbits(48), DRAWN), size))
    image = pixels(draw(scene, random.getrandbits(48), DRAWN), size)
    texts = [truth.text, *(caption.text for caption in wrong)]
    return Trial(image, detail, texts, [caption.change for caption in wrong], np.stack(rivals))
