"""Write captions.json.gz: generated captions, scored by pycocoevalcap.

    python tests/golden/record_captions.py        (needs pycocoevalcap==1.2 and Java)

The captions come from a small grammar with a fixed seed, so that they can be generated again. Every tenth image has
unusual captions.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
from pathlib import Path

FILE = Path(__file__).with_name("captions.json.gz")
IMAGES, REFERENCES = 400, 5

SIZES = ["big", "small", "tiny", "old", "young", "tall"]
COLOURS = ["red", "blue", "green", "black", "white", "yellow", "black-and-white"]
THINGS = ["dog", "cat", "bus", "train", "boat", "horse", "kite", "clock", "pizza", "bench", "t-shirt", "umbrella"]
PEOPLE = ["man", "woman", "boy", "girl", "child", "skateboarder", "couple"]
ACTIONS = ["sits", "stands", "is running", "is waiting", "lies", "plays", "can't be seen", "isn't moving", "jumps"]
PLACES = [
    "on the beach",
    "in a park",
    "near the sea",
    "at St. James station",
    "in the snow",
    "by the window",
    "on a table",
]
ENDS = ["", ".", "!", " at 10:30 a.m.", ", and it's raining.", " (left)", " with the man's bag.", "...", " in the U.S."]

ODD = [
    ("", ["A dog.", "a dog", "the dog", "dog dog dog", "one dog"]),
    (".", ["!", "...", "a dog", "the dog", "?"]),
    ("dog dog dog dog dog dog", ["a dog", "the dog runs", "dog", "dogs", "a big dog and a small dog"]),
    ("Кошка сидит на окне.", ["Серая кошка спит на окне.", "кошка у окна", "a cat", "Кот!", "ёлка и кошка"]),
    ("一只狗在跑", ["一只狗", "狗在跑", "a dog runs", "一只 狗 在 跑", "dog"]),
    ('A sign reads "STOP" & "GO"', ['a "stop" sign', "a sign that reads stop & go", "‘stop’ sign", "“go”", "signs"]),
    (
        "1/2 of 1,000 people's 3.5kg bags cost $5.00",
        ["1,000 bags", "bags for $5", "people's bags", "½ a bag", "3.5 kg"],
    ),
    ("gonna cannot wanna gimme", ["he is gonna go", "she cannot go", "they wanna go", "gimme it", "lemme go"]),
    ("the " * 120, ["the " * 60, "the end", "a " * 30, "the the", "the dog"]),
    ("a\tb\nc  d", ["a b c d", "a b", "c d", "a  b", "d c b a"]),
    ("🙂 a smiling face 🙂", ["a face", "🙂", "smile", "a smiling emoji", "face face"]),
    ("A 5 1/2 foot board, call (555) 123-4567 now", ["5 1/2 feet", "call (555) 123-4567", "5 feet", "1/2", "a board"]),
    (
        "e-mail user@example.com or www.site.com",
        ["an e-mail", "a web site", "www.site.com", "user@example.com", "mail"],
    ),
]


def caption(chooser: random.Random) -> str:
    who = f"{chooser.choice(['A', 'a', 'The', 'One', 'Two'])} {chooser.choice(SIZES)} {chooser.choice(PEOPLE + THINGS)}"
    if chooser.random() < 0.4:
        who += f" with a {chooser.choice(COLOURS)} {chooser.choice(THINGS)}"
    return f"{who} {chooser.choice(ACTIONS)} {chooser.choice(PLACES)}{chooser.choice(ENDS)}"


def nearby(chooser: random.Random, text: str) -> str:
    """The caption with some words changed: a reference that is neither equal nor unrelated."""
    words = [word for word in text.split(" ") if chooser.random() > 0.15]
    return " ".join(chooser.choice(SIZES + COLOURS) if chooser.random() < 0.2 else word for word in words) or text


def images() -> tuple[list[str], list[list[str]]]:
    chooser = random.Random(20150607)
    candidates, references = [], []
    for number in range(IMAGES):
        if number % 10 == 0:
            candidate, texts = ODD[number // 10 % len(ODD)]
        else:
            candidate = caption(chooser)
            texts = [nearby(chooser, candidate) for _ in range(3)] + [caption(chooser) for _ in range(2)]
        candidates.append(candidate)
        references.append(list(texts))
    return candidates, references


def main() -> None:
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.meteor.meteor import Meteor
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    candidates, references = images()
    tokenizer = PTBTokenizer()
    gts = tokenizer.tokenize({i: [{"caption": text} for text in texts] for i, texts in enumerate(references)})
    res = tokenizer.tokenize({i: [{"caption": text}] for i, text in enumerate(candidates)})
    with contextlib.redirect_stdout(io.StringIO()):
        bleu, bleu_each = Bleu(4).compute_score(gts, res)
        rouge, rouge_each = Rouge().compute_score(gts, res)
        cider, cider_each = Cider().compute_score(gts, res)
        meteor, meteor_each = Meteor().compute_score(gts, res)
    content = {
        "made_by": "pycocoevalcap 1.2 (CoreNLP 3.4.1, OpenJDK 17): python tests/golden/record_captions.py",
        "candidates": candidates,
        "references": references,
        "candidate_tokens": [res[i][0] for i in range(IMAGES)],
        "reference_tokens": [gts[i] for i in range(IMAGES)],
        "bleu": bleu_each,
        "rouge_l": [float(value) for value in rouge_each],
        "cider_d": [float(value) for value in cider_each],
        "meteor": meteor_each,
        "corpus": {"bleu": bleu, "rouge_l": float(rouge), "cider_d": float(cider), "meteor": meteor},
    }
    FILE.write_bytes(gzip.compress(json.dumps(content, ensure_ascii=False).encode(), mtime=0))


if __name__ == "__main__":
    main()
