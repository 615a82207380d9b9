"""Record the results of transformers and torchmetrics for tiny random CLIP and SigLIP models.

    python tests/golden/record_clip.py     (torch 2.13, transformers 5.22, torchmetrics 1.9, Pillow 12)

Writes `clip/tiny-clip`, `clip/tiny-clip-legacy`, `clip/tiny-siglip` (configuration, random weights, a small tokenizer)
and `clip.json.gz` (features, preprocessed pixels, scores). The weights are random and the images are generated, so the
files contain no third-party data.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import PIL
import torch
import transformers
from PIL import Image
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torchmetrics.functional.multimodal.clip_score import _clip_score_update
from transformers import (
    CLIPConfig,
    CLIPImageProcessorPil,
    CLIPModel,
    PreTrainedTokenizerFast,
    SiglipConfig,
    SiglipImageProcessorPil,
    SiglipModel,
)

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.golden.clip.images import pixels as golden_pixels

HERE = Path(__file__).parent / "clip"
SIZES = [(40, 30), (31, 47), (16, 16), (9, 64), (200, 151), (33, 32)]  # width, height: smaller, larger, odd
TEXTS = [
    "a red circle",
    "A photo depicts two blue squares, one above the other",
    "",
    "зелёный круг",
    "circle " * 60,
    "a dog <|endoftext|> and a cat",
]
LONGEST = {"clip": 20, "siglip": 16}
TOWER = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3}


def alphabet_tokenizer(start, end, pad):
    """One token per character, in lower case."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("0123456789.,-") + ["▁"]
    words = [
        "<unk>",
        *letters,
        *([start] if start else []),
        *([pad] if pad != end else []),
        end,
    ]  # the end token has the highest id
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.add_special_tokens([word for word in (start, end, pad) if word])
    template = f"{start} $A {end}" if start else f"$A {end}"
    special = [(word, tokenizer.token_to_id(word)) for word in (start, end) if word]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    return tokenizer


def randomised(model, seed):
    """Add noise to every weight, including those that are initialised with zeros and ones."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * 0.15)
    return model.eval()


def features(output):
    """The features as unit vectors. transformers 5 wraps them."""
    rows = output if isinstance(output, torch.Tensor) else output.pooler_output
    rows = rows / rows.norm(dim=-1, keepdim=True)
    return rows.detach().numpy()


class Unwrapped:
    """A model that returns features as tensors, as torchmetrics 1.9 expects and transformers 5 no longer does."""

    def __init__(self, model):
        self.model, self.config = model, model.config

    def to(self, device):
        return self

    def get_image_features(self, *inputs):
        return self.model.get_image_features(*inputs).pooler_output

    def get_text_features(self, *inputs):
        return self.model.get_text_features(*inputs).pooler_output


def save(name, model, tokenizer, processor, extra):
    folder = HERE / name
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.safetensors").chmod(0o644)
    (folder / "tokenizer_config.json").write_text(json.dumps(extra, indent=1) + "\n")
    return folder


def record_clip(name, seed, *, legacy, dtype):
    tokenizer = alphabet_tokenizer("<|startoftext|>", "<|endoftext|>", "<|endoftext|>")
    end = tokenizer.token_to_id("<|endoftext|>")
    size = tokenizer.get_vocab_size()
    start = tokenizer.token_to_id("<|startoftext|>")
    ends = {"eos_token_id": 2 if legacy else end, "bos_token_id": start, "pad_token_id": end}
    text = {**TOWER, "vocab_size": size, "max_position_embeddings": LONGEST["clip"], "projection_dim": 16, **ends}
    act = "gelu" if legacy else "quick_gelu"
    vision = {**TOWER, "image_size": 32, "patch_size": 8, "projection_dim": 16, "hidden_act": act}
    config = CLIPConfig(text_config={**text, "hidden_act": act}, vision_config=vision, projection_dim=16)
    model = randomised(CLIPModel(config), seed).to(dtype)
    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    settings = {"model_max_length": LONGEST["clip"], "pad_token": "<|endoftext|>"}
    save(name, model, tokenizer, processor, settings)
    model = model.float()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|endoftext|>", eos_token="<|endoftext|>", model_max_length=20
    )
    images = [golden_pixels(number, size) for number, size in enumerate(SIZES)]
    pixels = processor(images=[Image.fromarray(image) for image in images], return_tensors="pt")["pixel_values"]
    ids = fast(TEXTS, padding=True, truncation=True, return_tensors="pt")
    recorded = {
        "images": features(model.get_image_features(pixels)).tolist(),
        "texts": features(model.get_text_features(ids["input_ids"], ids["attention_mask"])).tolist(),
    }
    if not legacy:
        tensors = [torch.from_numpy(image.transpose(2, 0, 1)) for image in images]
        short = [*TEXTS[:4], "a circle", "a square"]  # torchmetrics cuts the end token off longer texts

        def process(text=None, images=None, **settings):
            if text is not None:
                return fast(text, truncation=True, **settings)
            pil_images = [Image.fromarray(image.numpy().transpose(1, 2, 0)) for image in images]
            return processor(images=pil_images, return_tensors="pt")

        with torch.no_grad():
            scores, _ = _clip_score_update(tensors, short, Unwrapped(model), process)
        recorded["torchmetrics"] = {"texts": short, "scores": scores.tolist()}
    return recorded


def record_siglip(name, seed):
    tokenizer = alphabet_tokenizer(None, "</s>", "</s>")
    text = {**TOWER, "vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": LONGEST["siglip"]}
    vision = {**TOWER, "image_size": 32, "patch_size": 8}
    model = randomised(SiglipModel(SiglipConfig(text_config=text, vision_config=vision)), seed)
    processor = SiglipImageProcessorPil(size={"height": 32, "width": 32})
    save(name, model, tokenizer, processor, {"model_max_length": LONGEST["siglip"], "pad_token": "</s>"})
    images = [golden_pixels(number, size) for number, size in enumerate(SIZES)]
    pixels = processor(images=[Image.fromarray(image) for image in images], return_tensors="pt")["pixel_values"]
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="</s>", model_max_length=LONGEST["siglip"])
    ids = fast(TEXTS, padding="max_length", truncation=True, return_tensors="pt")["input_ids"]
    return {
        "images": features(model.get_image_features(pixels)).tolist(),
        "texts": features(model.get_text_features(ids)).tolist(),
    }


def record_pixels():
    """Sums and samples of images preprocessed with several settings."""
    cases = []
    for kind, settings in (
        (CLIPImageProcessorPil, {"size": {"shortest_edge": 24}, "crop_size": {"height": 24, "width": 24}}),
        (
            CLIPImageProcessorPil,
            {"size": {"shortest_edge": 20}, "crop_size": {"height": 25, "width": 27}, "resample": 2},
        ),
        (SiglipImageProcessorPil, {"size": {"height": 24, "width": 24}}),
        (SiglipImageProcessorPil, {"size": {"height": 24, "width": 17}, "resample": 2, "do_normalize": False}),
    ):
        processor = kind(**settings)
        for number, size in enumerate(SIZES):
            image = Image.fromarray(golden_pixels(number, size))
            values = processor(images=image, return_tensors="np")["pixel_values"][0].astype(np.float32)
            places = np.random.default_rng(7).integers(0, values.size, 64)
            cases.append(
                {
                    "family": "clip" if kind is CLIPImageProcessorPil else "siglip",
                    "settings": settings,
                    "picture": [number, *size],
                    "shape": values.shape,
                    "sum": float(values.astype(np.float64).sum()),
                    "places": places.tolist(),
                    "values": values.reshape(-1)[places].tolist(),
                }
            )
    return cases


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    goldens = {
        "made_by": f"transformers {transformers.__version__}, torch {torch.__version__}, Pillow {PIL.__version__}",
        "sizes": SIZES,
        "texts": TEXTS,
        "tiny-clip": record_clip("tiny-clip", 1, legacy=False, dtype=torch.float32),
        "tiny-clip-legacy": record_clip("tiny-clip-legacy", 2, legacy=True, dtype=torch.bfloat16),
        "tiny-siglip": record_siglip("tiny-siglip", 3),
        "pixels": record_pixels(),
    }
    with gzip.GzipFile(HERE.with_name("clip.json.gz"), "wb", mtime=0) as stream:
        stream.write(json.dumps(goldens).encode())


if __name__ == "__main__":
    main()
