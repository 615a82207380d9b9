"""Multimodal models of random weights with a vocabulary of bytes, as transformers writes them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tests.models.tiny_llama import byte_letters

TEMPLATE = (
    "{% for message in messages %}[{{ message['role'] }}]"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}MARK{% endif %}"
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


def tokenizer(*special: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    inner = Tokenizer(models.BPE(vocab=byte_letters(), merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    kind = import_module("transformers").PreTrainedTokenizerFast
    return kind(tokenizer_object=inner, eos_token="<eos>", pad_token="<pad>", additional_special_tokens=list(special))


def _write(folder: Path, model: Any, processor: Any, width: float = 0.3) -> None:
    torch = import_module("torch")
    torch.manual_seed(1)
    for parameter in model.parameters():  # wide enough that every input matters
        torch.nn.init.normal_(parameter, 0, width)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def write_llava(folder: Path, *, template: bool = True, **text: Any) -> None:
    """Reads pictures of 16 x 16 pixels, four tokens each."""
    library = import_module("transformers")
    words = tokenizer("<image>")
    mark = words.convert_tokens_to_ids("<image>")
    eye = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = library.LlavaConfig(
        vision_config=library.CLIPVisionConfig(image_size=16, patch_size=8, **eye),
        text_config=library.LlamaConfig(vocab_size=len(words), **{**TEXT, **text}),
        image_token_id=mark,
        vision_feature_layer=-1,
    )
    pictures = import_module("transformers.models.clip.image_processing_pil_clip").CLIPImageProcessorPil(
        size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}
    )
    processor = library.LlavaProcessor(
        image_processor=pictures,
        tokenizer=words,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE.replace("MARK", "<image>") if template else None,
    )
    _write(folder, library.LlavaForConditionalGeneration(config), processor)


def write_qwen2_audio(folder: Path) -> None:
    """Hears sounds of up to a second at 16,000 samples a second, 25 tokens each."""
    library = import_module("transformers")
    words = tokenizer("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
    ear = {"d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 24}
    config = library.Qwen2AudioConfig(
        audio_config=library.Qwen2AudioEncoderConfig(num_mel_bins=8, max_source_positions=50, **ear),
        text_config=library.Qwen2Config(vocab_size=len(words), **TEXT),
        audio_token_index=words.convert_tokens_to_ids("<|AUDIO|>"),
    )
    processor = library.Qwen2AudioProcessor(
        feature_extractor=library.WhisperFeatureExtractor(feature_size=8, chunk_length=1),
        tokenizer=words,
        chat_template=TEMPLATE.replace("MARK", "<|audio_bos|><|AUDIO|><|audio_eos|>"),
    )
    _write(folder, library.Qwen2AudioForConditionalGeneration(config), processor, width=0.6)
