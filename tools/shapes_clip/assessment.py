"""Measures how well a saved model distinguishes test scenes from scenes that differ in one thing."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from tools.shapes_clip.dataset import Trial
from tools.shapes_clip.model import Encoders, normalised
from tools.shapes_clip.vocabulary import TEXT_LENGTH, padded


def assess_folder(folder: Path, trials: list[Trial], device: torch.device) -> dict[str, Any]:
    """The accuracy of a saved model: finding the caption among captions, and the image among images."""
    from tokenizers import Tokenizer
    from transformers import CLIPModel

    clip = CLIPModel.from_pretrained(str(folder), local_files_only=True).float().to(device).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    encoders = Encoders(clip)
    hits = defaultdict(list)
    for trial in trials:
        # All vectors have length one, so their product is the cosine.
        image = torch.from_numpy(trial.image[None]).to(device)
        rivals = torch.from_numpy(trial.rivals).to(device)
        ids = [padded(encoding.ids, TEXT_LENGTH) for encoding in tokenizer.encode_batch(trial.captions)]
        with torch.no_grad():
            image_vectors = encoders.look(normalised(torch.cat((image, rivals))))[1]
            text_vectors = encoders.read(torch.tensor(ids, device=device))
        caption_scores = (text_vectors @ image_vectors[0]).tolist()
        image_scores = (image_vectors @ text_vectors[0]).tolist()
        hits["image to text"].append(caption_scores[0] > max(caption_scores[1:]))
        hits[f"image to text, detail {trial.detail}"].append(caption_scores[0] > max(caption_scores[1:]))
        hits["text to image"].append(image_scores[0] > max(image_scores[1:]))
        hits[f"text to image, detail {trial.detail}"].append(image_scores[0] > max(image_scores[1:]))
        for change, score in zip(trial.changes, caption_scores[1:], strict=True):
            hits[f"against one caption with another {change}"].append(caption_scores[0] > score)
    return {name: round(sum(outcomes) / len(outcomes), 4) for name, outcomes in sorted(hits.items())}
