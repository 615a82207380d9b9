"""Two runs of the same samples, each better on some of them, with many different scores."""

from __future__ import annotations

from pathlib import Path
from random import Random

from msgspec.structs import replace

from multimodal_eval import evaluate
from tests.report.viewer.viewed import samples

_WORDS = "a the red green blue cross star circle heart thing near under big small".split()


def mixed_runs(folder: Path) -> None:
    """`alba` and `boreas`: answers between those of the references and random words."""
    media = folder.parent / "media"
    media.mkdir(exist_ok=True)
    for seed, name in enumerate(("alba", "boreas")):
        random = Random(seed)
        texts = []
        for sample in samples(seed, media):
            answer = sample.generated_answer
            if answer is not None and answer.strip():
                words = random.choice(sample.references or [""]).split()
                kept = words[: random.randint(0, len(words))]
                answer = " ".join([*kept, *random.choices(_WORDS, k=random.randint(1, 4))])
            texts.append(replace(sample, generated_answer=answer))
        evaluate(texts, metrics=["bleu", "rouge_l", "cider_d"], output=folder / name, image_root=str(media))
