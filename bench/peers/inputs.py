"""The shared captions and answers, in the form that the runners read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from multimodal_eval.evaluation.rules._readings import letters_of

from .our_captions import CaptionSet

# Kinds of the generated cases -> families of rules.
FAMILIES = {"anls": "anls", "relaxed": "relaxed", "vqa": "vqa", "pope": "yes_no"}
# Programs that are in no package: the columns with what they read -> our rules that are named after them.
RECORDED = {"official": "mmmu-pro@2025", "vlmevalkit_rules": "vlmevalkit@e8e78f05/can_infer"}


def _recorded(letter: str | None) -> str | None:
    return "drawn" if letter == "random" else letter or None


def flickr8k(folder: Path) -> CaptionSet:
    """Flickr8k: the first caption of each image is the candidate, the other four are its references."""
    captions: dict[str, list[str]] = {}
    content = gzip.decompress((folder / "flickr8k" / "Flickr8k.token.txt.gz").read_bytes()).decode("utf-8")
    for line in content.splitlines():
        place, text = line.split("\t")
        image, _ = place.split("#")
        if image.endswith(".jpg"):  # one entry of the file names no image: 2258277193_586949ec62.jpg.1
            captions.setdefault(image, []).append(text)
    return CaptionSet([texts[0] for texts in captions.values()], [texts[1:] for texts in captions.values()])


def own_captions(file: Path) -> CaptionSet:
    """The ordinary captions of our fixture: at least five words, ASCII, on both sides."""
    content = json.loads(gzip.decompress(file.read_bytes()))

    def is_ordinary(text: str) -> bool:
        return text.isascii() and text.isprintable() and len(text.split()) >= 5

    rows = [
        (candidate, references)
        for candidate, references in zip(content["candidates"], content["references"], strict=True)
        if all(map(is_ordinary, (candidate, *references)))
    ]
    return CaptionSet([candidate for candidate, _ in rows], [references for _, references in rows])


def real_answers(folder: Path) -> list[dict[str, Any]]:
    """GPT-4o's answers to MMMU-Pro, with options by letter."""
    content = gzip.decompress((folder / "mmmu-pro" / "gpt4o_half.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in content.splitlines()]
    return [
        {
            "answer": row["response"],
            "options": dict(zip(letters_of(len(row["options"])), row["options"], strict=True)),
            "gold": row["answer"],
            "setting": row["file"],
            "recorded": {rule: _recorded(row["letters"][column]) for column, rule in RECORDED.items()},
        }
        for row in rows
    ]


def generated_answers(file: Path) -> dict[str, list[dict[str, Any]]]:
    """The generated cases by family; those with choices have no gold answer."""
    cases = json.loads(gzip.decompress(file.read_bytes()))["cases"]
    by_family: dict[str, list[dict[str, Any]]] = {
        "choice": [{"answer": case["answer"], "options": case["choices"]} for case in cases if case["kind"] == "mcq"]
    }
    for kind, family in FAMILIES.items():
        by_family[family] = [
            {"answer": case["answer"], "golds": case["gold"] if isinstance(case["gold"], list) else [case["gold"]]}
            for case in cases
            if case["kind"] == kind
        ]
    return by_family
