"""Multimodal models with random weights and a vocabulary of bytes, in the layout of transformers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tests.models.language.tiny_llama import byte_letters

TEMPLATE = (
    "{% for message in messages %}[{{ message['role'] }}]"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}PLACEHOLDER{% endif %}"
    "{% endfor %}<eos>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
TEXT = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": 256,
}


ROPE = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1000.0}
PIXELS = {"shortest_edge": 64, "longest_edge": 256}
OMNI = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}


def tokenizer(*special: str, **named: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    inner = Tokenizer(models.BPE(vocab=byte_letters(), merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    kind = import_module("transformers").PreTrainedTokenizerFast
    more: Any = named or list(special)
    return kind(tokenizer_object=inner, eos_token="<eos>", pad_token="<pad>", extra_special_tokens=more)


def _write(folder: Path, model: Any, processor: Any, width: float = 0.3) -> None:
    torch = import_module("torch")
    torch.manual_seed(1)
    for parameter in model.parameters():  # so large that every input matters
        torch.nn.init.normal_(parameter, 0, width)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def write_llava(folder: Path, *, template: bool = True, **text: Any) -> None:
    """A model that reads images of 16 x 16 pixels, with four tokens each."""
    library = import_module("transformers")
    words = tokenizer("<image>")
    image_token = words.convert_tokens_to_ids("<image>")
    vision = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = library.LlavaConfig(
        vision_config=library.CLIPVisionConfig(image_size=16, patch_size=8, **vision),
        text_config=library.LlamaConfig(vocab_size=len(words), **{**TEXT, **text}),
        image_token_id=image_token,
        vision_feature_layer=-1,
    )
    images = import_module("transformers.models.clip.image_processing_pil_clip").CLIPImageProcessorPil(
        size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}
    )
    processor = library.LlavaProcessor(
        image_processor=images,
        tokenizer=words,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE.replace("PLACEHOLDER", "<image>") if template else None,
    )
    _write(folder, library.LlavaForConditionalGeneration(config), processor)


def write_mllama(folder: Path) -> None:
    """A model in which every token attends to the images, in separate layers."""
    library = import_module("transformers")
    words = tokenizer("<|begin_of_text|>", "<|python_tag|>", "<|image|>")  # the last one has no logit
    words.bos_token = "<|begin_of_text|>"
    vision = {"hidden_size": 16, "attention_heads": 2, "num_hidden_layers": 2, "num_global_layers": 1}
    tiles = {"max_num_tiles": 2, "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]]}
    config = library.MllamaConfig(
        text_config={
            **TEXT,
            "vocab_size": len(words) - 1,
            "num_hidden_layers": 3,
            "cross_attention_layers": [1],
            "pad_token_id": words.pad_token_id,
            "bos_token_id": words.bos_token_id,
        },
        vision_config={
            **vision,
            **tiles,
            "intermediate_size": 24,
            "vision_output_dim": 32,
            "image_size": 16,
            "patch_size": 8,
            "intermediate_layers_indices": [0],
        },
        image_token_index=words.convert_tokens_to_ids("<|image|>"),
    )
    images = import_module("transformers.models.mllama.image_processing_pil_mllama").MllamaImageProcessorPil(
        size={"height": 16, "width": 16}, max_image_tiles=2
    )
    processor = library.MllamaProcessor(
        image_processor=images, tokenizer=words, chat_template=TEMPLATE.replace("PLACEHOLDER", "<|image|>")
    )
    _write(folder, library.MllamaForConditionalGeneration(config), processor)


def write_paligemma(folder: Path) -> None:
    """A model that is not causal: tokens of a prompt see each other in both directions."""
    library = import_module("transformers")
    words = tokenizer("<image>", "<bos>")
    words.bos_token = "<bos>"
    vision = {"model_type": "siglip_vision_model", "hidden_size": 16, "intermediate_size": 24}
    vision |= {"num_hidden_layers": 2, "num_attention_heads": 2}
    config = library.PaliGemmaConfig(
        text_config={**TEXT, "model_type": "gemma", "vocab_size": 2048, "head_dim": 8},
        vision_config={
            **vision,
            "model_type": "siglip_vision_model",
            "image_size": 16,
            "patch_size": 8,
            "vision_use_head": False,
        },
        projection_dim=16,
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    images = import_module("transformers.models.siglip.image_processing_pil_siglip").SiglipImageProcessorPil(
        size={"height": 16, "width": 16}
    )
    images.image_seq_length = 4
    processor = library.PaliGemmaProcessor(image_processor=images, tokenizer=words)
    _write(folder, library.PaliGemmaForConditionalGeneration(config), processor)


def write_qwen2_audio(folder: Path) -> None:
    """A model that reads audio of up to one second at 16,000 samples per second, with 25 tokens each."""
    library = import_module("transformers")
    words = tokenizer("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
    audio_encoder = {"d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 24}
    config = library.Qwen2AudioConfig(
        audio_config=library.Qwen2AudioEncoderConfig(num_mel_bins=8, max_source_positions=50, **audio_encoder),
        text_config=library.Qwen2Config(vocab_size=len(words), **TEXT),
        audio_token_index=words.convert_tokens_to_ids("<|AUDIO|>"),
    )
    processor = library.Qwen2AudioProcessor(
        feature_extractor=library.WhisperFeatureExtractor(feature_size=8, chunk_length=1),
        tokenizer=words,
        chat_template=TEMPLATE.replace("PLACEHOLDER", "<|audio_bos|><|AUDIO|><|audio_eos|>"),
    )
    _write(folder, library.Qwen2AudioForConditionalGeneration(config), processor, width=0.6)


def _qwen2_vision_processors(library: Any) -> dict[str, Any]:
    images = import_module("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl").Qwen2VLImageProcessorPil
    videos = library.Qwen2VLVideoProcessor  # needs torchvision
    return {
        "image_processor": images(patch_size=4, size=PIXELS),
        "video_processor": videos(patch_size=4, size=PIXELS),
    }


def write_qwen2_vl(folder: Path) -> None:
    """A model that reads images of any shape and encodes positions by row and column."""
    library = import_module("transformers")
    words = tokenizer("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    number = words.convert_tokens_to_ids
    vision = {"depth": 2, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "patch_size": 4, "mlp_ratio": 2}
    config = library.Qwen2VLConfig(
        text_config={**TEXT, "vocab_size": len(words), "rope_parameters": ROPE},
        vision_config=vision,
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
    )
    template = TEMPLATE.replace("PLACEHOLDER", "<|vision_start|><|image_pad|><|vision_end|>")
    processor = library.Qwen2VLProcessor(tokenizer=words, chat_template=template, **_qwen2_vision_processors(library))
    _write(folder, library.Qwen2VLForConditionalGeneration(config), processor)


def write_qwen2_omni(folder: Path) -> None:
    """A model that reads images and audio. The folder is that of the whole model, without the part that speaks."""
    library = import_module("transformers")
    words = tokenizer(**OMNI)
    numbers = {name.removesuffix("_token"): words.convert_tokens_to_ids(token) for name, token in OMNI.items()}
    vision = {"depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "patch_size": 4}
    audio_encoder = {"d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 24}
    config = library.Qwen2_5OmniThinkerConfig(
        text_config={**TEXT, "vocab_size": len(words), "rope_parameters": ROPE},
        vision_config={**vision, "out_hidden_size": 16, "fullatt_block_indexes": [0], "window_size": 16},
        audio_config={**audio_encoder, "num_mel_bins": 8, "max_source_positions": 50, "output_dim": 16, "n_window": 50},
        **{f"{kind}_token_index": numbers[kind] for kind in ("image", "audio", "video")},
        vision_start_token_id=numbers["vision_bos"],
        vision_end_token_id=numbers["vision_eos"],
        audio_start_token_id=numbers["audio_bos"],
        audio_end_token_id=numbers["audio_eos"],
    )
    image, audio = "<|vision_bos|><|IMAGE|><|vision_eos|>", "<|audio_bos|><|AUDIO|><|audio_eos|>"
    processor = library.Qwen2_5OmniProcessor(
        feature_extractor=library.WhisperFeatureExtractor(feature_size=8, chunk_length=1),
        tokenizer=words,
        chat_template=TEMPLATE.replace(
            "PLACEHOLDER", "{% if part['type'] == 'image' %}IMAGE_PART{% else %}AUDIO_PART{% endif %}"
        )
        .replace("IMAGE_PART", image)
        .replace("AUDIO_PART", audio),
        **_qwen2_vision_processors(library),
    )
    _write(folder, library.Qwen2_5OmniThinkerForConditionalGeneration(config), processor)
    whole = library.Qwen2_5OmniConfig(thinker_config=config.to_dict(), enable_audio_output=False)
    whole.save_pretrained(folder)
    weights = import_module("safetensors.torch")
    tensors = weights.load_file(folder / "model.safetensors")
    named = {f"thinker.{name}": tensor for name, tensor in tensors.items()}
    weights.save_file(named, folder / "model.safetensors", metadata={"format": "pt"})
