"""A run whose answers are right to different degrees, with metadata of few, many and unique values."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from tests.report.viewer.viewed import COLOURS, samples

COUNT = 120
WORDS = "one small red dog runs over green grass near water".split()
TOPICS = 20  # more than a list shows without a search field


def graded_samples() -> list[Sample]:
    """Sample n has the first n % 11 words of its reference. Every fifth has no image, every third has audio."""
    graded = []
    for number in range(COUNT):
        right = number % 11
        graded.append(
            Sample(
                f"graded-{number:03d}",
                image=f"{COLOURS[number % 3]}.png" if number % 5 else None,
                audio="silence.wav" if number % 3 == 0 else None,
                references=[" ".join(WORDS), " ".join(WORDS), "an animal outdoors"],
                generated_answer=" ".join([*WORDS[:right], *["purple"] * (10 - right)]),
                error="the generator failed" if number == 50 else None,
                metadata={
                    "language": "en" if number % 4 else "ru",
                    "topic": f"topic-{number % TOPICS:02d}",
                    "serial": f"s{number:04d}",
                },
            )
        )
    return graded


def make_graded_run(folder: Path) -> None:
    """The run `graded` in the folder, with its media beside the folder."""
    media = folder.parent / "media"
    media.mkdir(exist_ok=True, parents=True)
    samples(0, media)  # creates the media
    evaluate(graded_samples(), metrics=["rouge_l", "bleu"], output=folder / "graded", image_root=str(media))
