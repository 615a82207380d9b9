"""A LLaVA with the towers of CLIP ViT-B/32 and SmolLM2-135M: answers in batches, and one at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import transformers
from PIL import Image

from gpu_models.race import each, say, seconds, show, sized
from gpu_models.random_inputs import SMOLLM, fast_tokenizer, random_weights, rng, texts
from multimodal_eval.core.conversation import Part, Turn
from multimodal_eval.models.language import conversation_torch
from multimodal_eval.models.source import find_model

TEMPLATE = (
    "{% for m in messages %}{% for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}{% else %}<image>"
    "{% endif %}{% endfor %} {% endfor %}"
)


def conversations(folder: Path) -> None:
    names = fast_tokenizer(eos_token="<eos>", extra_special_tokens=["<image>"])
    layers = sized(2, 12)
    vision = transformers.CLIPVisionConfig(
        image_size=224, patch_size=32, hidden_size=768, intermediate_size=3072, num_attention_heads=12,
        num_hidden_layers=layers)  # fmt: skip
    text = sized({**SMOLLM, "num_hidden_layers": 2}, SMOLLM)
    config = transformers.LlavaConfig(
        vision_config=vision, image_token_id=names.convert_tokens_to_ids("<image>"), vision_feature_layer=-1,
        text_config=transformers.LlamaConfig(**text, num_key_value_heads=3, vocab_size=49_152,
                                             max_position_embeddings=8192))  # fmt: skip
    edge = {"size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224}}
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessor(**edge), tokenizer=names, patch_size=32,
        vision_feature_select_strategy="default", num_additional_image_tokens=1, chat_template=TEMPLATE)  # fmt: skip
    random_weights(transformers.LlavaForConditionalGeneration(config), 1.0).save_pretrained(folder)
    processor.save_pretrained(folder)
    count = sized(6, 192)
    images = [Image.fromarray(rng.integers(0, 256, (224, 224, 3)).astype(np.uint8)) for _ in range(count)]
    turns = [
        [Turn("user", (Part("image", image), Part("text", question)))]
        for image, question in zip(images, texts(count, 8, 40), strict=True)
    ]
    answers = texts(count, 5, 30)
    exact = None
    for suffix in ("float32", "bf16"):
        model = conversation_torch.TorchConversationLM(find_model(str(folder)), suffix)
        asked = [model._asked(turn, answer) for turn, answer in zip(turns, answers, strict=True)]
        alone = [model.score_alone(row) for row in asked]
        together = model.batches.scored(iter(asked))
        apart = max(np.abs(a - b).max() for a, b in zip(alone, together, strict=True))
        base = seconds(each, model.score_alone, [(row,) for row in asked], rounds=1)
        say(f"\nconversations, {model.label}: batched {model.batches.can_batch}, difference of a batch {apart:.1e}")
        show("one at a time", count, base, base, "answers")
        show("in batches", count, seconds(model.batches.scored, asked, rounds=2), base, "answers")
        took = seconds(each, model._asked, list(zip(turns[:64], answers[:64], strict=True)), rounds=1)
        few = min(64, count)
        show("the processor of transformers alone", few, took, base * few / count, "answers")
        exact = exact or alone
        say(f"    from float32: {max(np.abs(a - b).max() for a, b in zip(alone, exact, strict=True)):.1e}")
