"""The model, a `transformers.CLIPModel` with under four million parameters, and its encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tools.shapes_clip.preprocessing import DEVIATION, MEAN
from tools.shapes_clip.vocabulary import END, START, TEXT_LENGTH


@dataclass(frozen=True)
class Size:
    """The size of the model."""

    image: int = 112
    patch: int = 14
    vision_width: int = 192
    vision_layers: int = 6
    text_width: int = 128
    text_layers: int = 4
    joint: int = 128


TINY = Size(image=64, patch=16, vision_width=96, vision_layers=3, text_width=64, text_layers=2, joint=64)


def build(size: Size, tokenizer: Any) -> Any:
    """A new CLIPModel. Its end token has the highest id, so both of CLIP's pooling rules find it."""
    from transformers import CLIPConfig, CLIPModel

    special = {"bos_token_id": tokenizer.token_to_id(START), "eos_token_id": tokenizer.token_to_id(END)}
    text = {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": size.text_width,
        "intermediate_size": 4 * size.text_width,
        "num_hidden_layers": size.text_layers,
        "num_attention_heads": size.text_width // 32,
        "max_position_embeddings": TEXT_LENGTH,
        "projection_dim": size.joint,
        "pad_token_id": special["eos_token_id"],
        **special,
    }
    vision = {
        "hidden_size": size.vision_width,
        "intermediate_size": 4 * size.vision_width,
        "num_hidden_layers": size.vision_layers,
        "num_attention_heads": size.vision_width // 32,
        "image_size": size.image,
        "patch_size": size.patch,
        "projection_dim": size.joint,
    }
    return CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=size.joint))


def normalised(pixels: torch.Tensor) -> torch.Tensor:
    """Convert bytes (n, height, width, 3), or floats in the same range, to model inputs (n, 3, height, width)."""
    mean = torch.tensor(MEAN, device=pixels.device)
    deviation = torch.tensor(DEVIATION, device=pixels.device)
    return ((pixels.float() / 255 - mean) / deviation).permute(0, 3, 1, 2).contiguous()


class Encoders:
    """The two encoders of a CLIPModel, with vectors of length one."""

    def __init__(self, clip: Any) -> None:
        self.clip = clip

    def look(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The pooled features and the joint vectors of images."""
        pooled = self.clip.vision_model(pixel_values=images).pooler_output
        return pooled, torch.nn.functional.normalize(self.clip.visual_projection(pooled).float(), dim=-1)

    def read(self, ids: torch.Tensor) -> torch.Tensor:
        """The joint vectors of captions. Attention is causal, so padding after the end needs no mask."""
        pooled = self.clip.text_model(input_ids=ids).pooler_output
        return torch.nn.functional.normalize(self.clip.text_projection(pooled).float(), dim=-1)
