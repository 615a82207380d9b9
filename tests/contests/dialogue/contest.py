"""Dialogues for the tests: a worked example, and contest files built from dialogues."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from multimodal_eval.dialogue import IntegralScore, integral_score

TYPES = ("Text2Text", "Image2Text", "Audio2Text", "Image-Audio2Text")


def reply(answer: str, variants: list[str], perplexity: Any) -> dict[str, Any]:
    return {"answer": answer, "variants": variants, "perplexity": perplexity}


# With m matched words of w_t in the answer and w_r in the variant, 10PR / (R + 9P) = 10m / (w_t + 9 w_r).
WHOLE = ("cat", ["cat"])  # 10 / (1 + 9) = 1
LONG = ("red cat", ["a big red cat sleeps", "cat"])  # 20 / (2 + 45) = 20/47 and 10 / (2 + 9) = 10/11: 10/11
SHORT = ("on the mat", ["mat", "the cat lies on the mat"])  # 10 / (3 + 9) = 5/6 and 30 / (3 + 54) = 10/19: 5/6
APPLES = ("three green apples", ["apples", "green apples"])  # 10 / 12 = 5/6 and 20 / (3 + 18) = 20/21: 20/21
HOME = ("at home", ["she is at home now"])  # 20 / (2 + 45) = 20/47
DOG = ("a dog barks loudly", ["the dog barks"])  # 20 / (4 + 27) = 20/31
WRONG = ("yes", ["no", "never"])  # 0
BLANK = (" ", ["no"])  # 0

# All four types; unequal numbers of dialogues, replies and variants.
WORKED = [
    # Text2Text, N = 3
    #   t1: METEOR (1 + 10/11) / 2 = 21/22, HM (1 + 1/2) / 2 = 3/4; half their sum 75/88
    {"id": "t1", "type": "Text2Text", "replies": [reply(*WHOLE, 1), reply(*LONG, 2)]},
    #   t2: METEOR 0, HM 1/4; 1/8
    {"id": "t2", "type": "Text2Text", "replies": [reply(*WRONG, 4)]},
    #   t3: METEOR (5/6 + 20/21 + 1) / 3 = 13/14, HM (1/2 + 1/4 + 1/4) / 3 = 1/3; 53/84
    {"id": "t3", "type": "Text2Text", "replies": [reply(*SHORT, 2.0), reply(*APPLES, 4.0), reply(*WHOLE, 4)]},
    # Image2Text, N = 2
    #   i1: METEOR (20/47 + 1) / 2 = 67/94, HM (1/5 + 4/5) / 2 = 1/2; 57/94
    {"id": "i1", "type": "Image2Text", "replies": [reply(*HOME, 5), reply(*WHOLE, 1.25)]},
    #   i2: METEOR 20/31, HM 1/10; 231/620
    {"id": "i2", "type": "Image2Text", "replies": [reply(*DOG, 10)]},
    # Audio2Text, N = 4
    #   a1: METEOR (1 + 0) / 2 = 1/2, HM (1/8 + 1/2) / 2 = 5/16; 13/32
    {"id": "a1", "type": "Audio2Text", "replies": [reply(*WHOLE, 8), reply(*WRONG, 2)]},
    #   a2: METEOR 5/6, HM 1/3; 7/12
    {"id": "a2", "type": "Audio2Text", "replies": [reply(*SHORT, 3)]},
    #   a3: METEOR 10/11, HM 1; 21/22
    {"id": "a3", "type": "Audio2Text", "replies": [reply(*LONG, 1)]},
    #   a4: a blank answer: METEOR 0, HM 1/2; 1/4
    {"id": "a4", "type": "Audio2Text", "replies": [reply(*BLANK, 2)]},
    # Image-Audio2Text, N = 2
    #   b1: METEOR (20/21 + 0 + 1 + 1) / 4 = 31/42, HM (1/2 + 1/2 + 1/2 + 1/4) / 4 = 7/16; 395/672
    {
        "id": "b1",
        "type": "Image-Audio2Text",
        "replies": [reply(*APPLES, 2), reply(*WRONG, 2), reply(*WHOLE, 2), reply(*WHOLE, 4)],
    },
    #   b2: METEOR 1, HM 1; 1
    {"id": "b2", "type": "Image-Audio2Text", "replies": [reply(*WHOLE, 1)]},
]


def score(dialogues: list[dict[str, Any]], **settings: Any) -> IntegralScore:
    """The integral score, without synonyms unless the settings name a source."""
    return integral_score(dialogues, **({"synonyms": "none"} | settings))


def texts(count: int) -> list[dict[str, Any]]:
    """Text2Text dialogues with one reply each."""
    return [{"id": f"t{n}", "type": "Text2Text", "replies": [reply(*WHOLE, 1)]} for n in range(count)]


def write_contest(folder: Path, dialogues: list[dict[str, Any]]) -> tuple[Path, Path, Path]:
    """Write gold.json, output.json and ppl_output.json."""
    folder.mkdir(parents=True, exist_ok=True)
    gold = {
        dialogue["id"]: {"type": dialogue["type"], "replies": [reply["variants"] for reply in dialogue["replies"]]}
        for dialogue in dialogues
    }
    answers = {dialogue["id"]: [reply["answer"] for reply in dialogue["replies"]] for dialogue in dialogues}
    perplexities = {dialogue["id"]: [reply["perplexity"] for reply in dialogue["replies"]] for dialogue in dialogues}
    return (
        write_json(folder / "gold.json", gold),
        write_json(folder / "output.json", answers),
        write_json(folder / "ppl_output.json", perplexities),
    )


def write_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


WORDS = "cat dog red blue tree house sun moon river stone apple bread".split()


def system(seed: int, quality: float, each: int = 8) -> list[dict[str, Any]]:
    """`each` dialogues per type. The gold is always the same; each answer word is right with probability `quality`."""
    gold_random, chance = random.Random(1), random.Random(seed)
    dialogues = []
    for number in range(4 * each):
        replies = []
        for _ in range(gold_random.randint(1, 3)):
            right = gold_random.sample(WORDS, gold_random.randint(2, 5))
            answer = [word if chance.random() < quality else chance.choice(WORDS) for word in right]
            spread = chance.random() * 3 * (1 - quality)
            replies.append(reply(" ".join(answer), [" ".join(right), right[0]], round(1 + spread, 3)))
        dialogues.append({"id": f"d{number}", "type": TYPES[number % 4], "replies": replies})
    return dialogues


# files of a small contest

GOLD = {
    "d1": {"type": "Text2Text", "replies": [["cat", "a cat"], ["dog"]]},
    "d2": {"type": "Image+Text", "replies": [["red"]]},
    "d3": {"type": "Audio2Text", "replies": [["blue"]]},
    "d4": {"type": "Image-Audio2Text", "replies": [["tree"], ["house"], ["sun"]]},
}
OUTPUT = {"d1": ["cat", "dog"], "d2": ["red"], "d3": ["green"], "d4": ["tree", "house", "moon"]}
PPL = {"d1": [1, 2.0], "d2": [1.5], "d3": [4], "d4": [2, 2, 8.5]}


def places(refusals):
    """Code, file and id of each problem."""
    return [refusal[:3] for refusal in refusals]
