"""Samples with captions for the runs in several test files, and the metrics that score them."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval import Sample

PLUGIN = str(Path(__file__).with_name("plugin.py"))
METRICS = ["cider", "rarity", "corpus_precision"]


def samples(count=50):
    nouns = ["dog", "cat", "bird", "horse"]
    return [
        Sample(
            id=f"s{number}",
            references=[f"a {nouns[number % 4]} runs on the street {number}", f"the {nouns[number % 3]}"],
            generated_answer=" ".join([f"a {nouns[number % 3]} runs"] * (1 + number % 3) + ["fast"] * (number % 2))
            if number % 7
            else None,
            group=f"g{number // 2}",
            metadata={"system": "x" if number % 2 else "y"},
        )
        for number in range(count)
    ]
