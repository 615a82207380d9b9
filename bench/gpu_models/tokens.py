"""The vectors of tokens that bertscore needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpu_models.minilm import minilm
from gpu_models.race import say, seconds, show, sized
from gpu_models.random_inputs import texts
from multimodal_eval.models.sentences import by_name


def tokens(folder: Path) -> None:
    """The vectors of bertscore, and the metric itself."""
    minilm(folder)
    captions = texts(sized(100, 10_000), 6, 16)
    layer = sized(1, 4)
    exact = by_name.find_tokens(str(folder)).open()
    expected = exact.encode(captions[:1000], layer)
    base = seconds(exact.encode, captions, layer, rounds=1)
    say(f"\ntokens of bertscore, layer {layer}")
    show("onnxruntime on the CPU", len(captions), base, base)
    for suffix in ("", "+bf16"):
        ours = by_name.find_tokens(f"torch:{folder}{suffix}").open()
        vectors = ours.encode(captions[:1000], layer)
        apart = max(np.abs(a.vectors - b.vectors).max() for a, b in zip(vectors, expected, strict=True))
        show(f"{ours.label.partition('+')[2]}, difference {apart:.0e}", len(captions),
             seconds(ours.encode, captions, layer, rounds=2), base)  # fmt: skip
