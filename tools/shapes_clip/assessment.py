"""How well a saved model tells test scenes from others that differ in one thing."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from tools.shapes_clip.dataset import Trial
from tools.shapes_clip.model import Encoders, normalised
from tools.shapes_clip.vocabulary import TEXT_LENGTH, padded


def assess_folder(folder: Path, trials: list[Trial], device: torch.device) -> dict[str, Any]:
    """Accuracies of the model saved in a folder: caption among captions, picture among pictures."""
    from tokenizers import Tokenizer
    from transformers import CLIPModel

    clip = CLIPModel.from_pretrained(str(folder), local_files_only=True).float().to(device).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    encoders = Encoders(clip)
    first = defaultdict(list)
    for trial in trials:
        # The length of every picture's and caption's vector is one: their product is the cosine.
        seen = torch.from_numpy(trial.picture[None]).to(device)
        rivals = torch.from_numpy(trial.rivals).to(device)
        ids = [padded(encoding.ids, TEXT_LENGTH) for encoding in tokenizer.encode_batch(trial.captions)]
        with torch.no_grad():
            look = encoders.look(normalised(torch.cat((seen, rivals))))[1]
            read = encoders.read(torch.tensor(ids, device=device))
        of_captions, of_pictures = (read @ look[0]).tolist(), (look @ read[0]).tolist()
        first["image to text"].append(of_captions[0] > max(of_captions[1:]))
        first[f"image to text, detail {trial.detail}"].append(of_captions[0] > max(of_captions[1:]))
        first["text to image"].append(of_pictures[0] > max(of_pictures[1:]))
        first[f"text to image, detail {trial.detail}"].append(of_pictures[0] > max(of_pictures[1:]))
        for change, score in zip(trial.changes, of_captions[1:], strict=True):
            first[f"against one caption with another {change}"].append(of_captions[0] > score)
    return {name: round(sum(hits) / len(hits), 4) for name, hits in sorted(first.items())}
