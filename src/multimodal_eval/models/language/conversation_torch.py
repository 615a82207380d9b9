"""Models of transformers that read images or audio as well as text, in torch, on CPU or CUDA. Needs `[torch]`.

The model's chat template turns a conversation into a prompt. Without a template it is rendered as plain text with the
processor's placeholders. The answer is tokenized separately and appended to the prompt, so that the boundary is exact.
Conversations are scored one at a time, without padding, so that a result does not depend on the others. On the CPU
everything is float32. On CUDA a model runs in the number format of its configuration, and the label says so.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.conversation import Audio, Part, PartType, Turn
from multimodal_eval.core.errors import InputError, ModelError, Problem, shorten
from multimodal_eval.core.optional import require
from multimodal_eval.models.language.conversation_text import RENDERING, as_plain_text
from multimodal_eval.models.source import CONFIG, Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Inputs = dict[str, Any]  # the output of a processor: tensors and other inputs by name

PROCESSORS = ("processor_config.json", "preprocessor_config.json")
PER_TOKEN = ("attention_mask", "token_type_ids", "mm_token_type_ids", "cross_attention_mask")
LONGEST = 1 << 20  # tokens, if the model states no limit
# How much a log-probability may change when more of the answer is read: rounding only, not attention to later tokens.
DRIFT = {"float32": 0.01, "bfloat16": 0.3, "float16": 0.1}


class _NumberFormat(msgspec.Struct, frozen=True):
    """The number format in config.json; `torch_dtype` is the older name."""

    dtype: str | None = None
    torch_dtype: str | None = None

    @property
    def chosen(self) -> str | None:
        """The number format, if there is one."""
        return self.dtype or self.torch_dtype


class _NumberFormats(_NumberFormat, frozen=True):
    """The number format of a model with several parts: for all parts, or for its language model."""

    text_config: _NumberFormat | None = None


def has_processor(model: Model) -> bool:
    """Whether the directory has a processor for images or audio."""
    return any((model.folder / name).is_file() for name in PROCESSORS)


def number_format(model: Model) -> str:
    """float32 on the CPU; on CUDA the format of the configuration."""
    torch = require("torch", extra="torch", purpose=f"the model {model.name!r}")
    config = model.read(CONFIG, _NumberFormats)
    configured = config.chosen or (config.text_config or _NumberFormat()).chosen or "float32"
    return configured if torch.cuda.is_available() and configured in DRIFT else "float32"


def label_of(model: Model) -> str:
    """Name and revision, the number format if it is not float32, and the rendering of conversations."""
    format_ = number_format(model)
    return f"{model.label}+torch{'' if format_ == 'float32' else '-' + format_}+{RENDERING}"


def check(model: Model) -> None:
    """Check that the model and the packages are available."""
    model.check()
    for package in ("torch", "transformers"):
        require(package, extra="torch", purpose=f"the model {model.name!r}")


class TorchConversationLM:
    """A transformers model and its processor. Only code of that library is run; weights are read from safetensors."""

    languages: frozenset[str] = frozenset()

    def __init__(self, model: Model) -> None:
        check(model)
        self.torch = require("torch", extra="torch", purpose=f"the model {model.name!r}")
        self.label, self.format = label_of(model), number_format(model)
        self.device = "cuda" if self.torch.cuda.is_available() else "cpu"
        self.processor, self.model = self._opened(model)
        self.tokenizer = self.processor.tokenizer
        self.placeholders = _placeholders(self.processor)
        self.reads: frozenset[PartType] = frozenset({"text", *self.placeholders})
        self.has_template = bool(getattr(self.processor, "chat_template", None))
        self.special = _special_tokens(self.tokenizer)
        text = self.model.config.get_text_config()
        self.longest = int(getattr(text, "max_position_embeddings", None) or LONGEST)
        self.keeps = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        self.is_causal: bool | None = None  # checked with the first answer

    def _opened(self, model: Model) -> tuple[Any, Any]:
        library = require("transformers", extra="torch", purpose=f"the model {model.name!r}")
        kind = getattr(library, "AutoModelForMultimodalLM", None) or library.AutoModelForImageTextToText
        model.verify()
        folder, safe = str(model.folder), {"trust_remote_code": False, "local_files_only": True}
        try:
            processor = library.AutoProcessor.from_pretrained(folder, **safe)
            if getattr(processor, "image_processor", None) is not None:
                # The Pillow backend is available everywhere, so results are the same on all machines.
                processor.image_processor = library.AutoImageProcessor.from_pretrained(folder, backend="pil", **safe)
            config = library.AutoConfig.from_pretrained(folder, **safe)
            config = getattr(config, "thinker_config", config)  # the part that writes text, if the model also speaks
            opened, loading = kind.from_pretrained(
                folder, config=config, use_safetensors=True, output_loading_info=True, **safe
            )
            opened = opened.eval().to(self.device, getattr(self.torch, self.format))
        except (OSError, ValueError, ImportError, AttributeError, KeyError) as fault:
            raise ModelError(
                f"transformers cannot open {model.folder} as a model that reads images or audio and writes text: "
                f"{type(fault).__name__}: {fault} (many such models need the package torchvision)"
            ) from None
        if loading["missing_keys"]:  # transformers initialises them at random
            raise ModelError(
                f"{model.folder} lacks weights of its model: {', '.join(sorted(loading['missing_keys'])[:3])}"
            )
        if getattr(opened.config, "is_encoder_decoder", False) or not hasattr(processor, "tokenizer"):
            raise ModelError(f"{model.folder} is not a causal language model: {type(opened).__name__}")
        return processor, opened

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """The natural logarithms for the tokens of each answer, given the turns before it."""
        return [self._score(turns, answer.strip()) for turns, answer in zip(conversations, answers, strict=True)]

    def _score(self, turns: Sequence[Turn], answer: str) -> Floats:
        import numpy as np

        for written in (answer, *(part.content for turn in turns for part in turn.parts if part.type == "text")):
            self._refuse_special_tokens(written)
        prompt = self._prompt(turns)
        text = answer if self.has_template else f" {answer}"  # a space before a word belongs to the word's token
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        if not ids:
            return np.empty(0, np.float32)
        self._refuse_length(prompt["input_ids"].shape[1] + len(ids))
        scores = self._read(prompt, ids, len(ids) - 1)  # the last token need not be read
        if self.is_causal is None:
            drift = np.abs(scores - self._read(prompt, ids, len(ids))).max()
            self.is_causal = bool(drift <= DRIFT[self.format])
        if not self.is_causal:
            raise ModelError(
                f"{self.label} is not a causal language model: the probability of a token depends on later tokens"
            )
        return scores

    def _read(self, prompt: Inputs, ids: list[int], shown: int) -> Floats:
        """The log-probabilities of all `ids` after the prompt, when the first `shown` of them are read."""
        torch, count = self.torch, len(ids)
        rows = shown + 1  # from the prompt's last token on
        keep = {"logits_to_keep": rows} if self.keeps else {}
        with torch.inference_mode():
            out = self.model(**self._appended(prompt, ids[:shown]), **keep, use_cache=False).logits
            every = out[0, -rows:][:count].float().log_softmax(-1)
            chosen = every.gather(1, torch.tensor(ids, device=self.device)[:, None])[:, 0]
        scores: Floats = chosen.cpu().numpy()
        return scores

    def _appended(self, prompt: Inputs, ids: list[int]) -> Inputs:
        """The prompt with tokens appended. Per-token inputs repeat their last value."""
        torch = self.torch
        inputs = {name: self._on_device(value) for name, value in prompt.items() if name != "labels"}
        more = torch.tensor([ids], dtype=torch.long, device=self.device)
        inputs["input_ids"] = torch.cat([inputs["input_ids"], more], dim=1)
        for name in PER_TOKEN:
            if name in inputs and ids:
                inputs[name] = torch.cat([inputs[name], *[inputs[name][:, -1:]] * len(ids)], dim=1)
        return inputs

    def _on_device(self, value: Any) -> Any:
        if not self.torch.is_tensor(value):
            return value
        value = value.to(self.device)
        return value.to(getattr(self.torch, self.format)) if value.is_floating_point() else value

    def _prompt(self, turns: Sequence[Turn]) -> Inputs:
        """The processor's output for the turns, followed by the start of the answer's turn."""
        try:
            if self.has_template:
                messages = [
                    {"role": turn.role, "content": [self._block(p) for p in turn.parts if p.type in self.reads]}
                    for turn in turns
                ]
                return dict(
                    self.processor.apply_chat_template(
                        messages, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
                    )
                )
            media: dict[str, list[Any]] = {"image": [], "audio": []}
            for part in (part for turn in turns for part in turn.parts if part.type in self.placeholders):
                if not self.placeholders[part.type]:
                    raise ValueError(f"it has neither a chat template nor a placeholder for {part.type!r} parts")
                media[part.type].append(self._block(part)[part.type])
            inputs = {key: media[kind] for kind, key in (("image", "images"), ("audio", "audio")) if media[kind]}
            text = as_plain_text(turns, self.placeholders)
            return dict(self.processor(text=[text], return_tensors="pt", **inputs))
        except Exception as fault:  # templates and processors may raise anything
            raise ModelError(
                f"the processor of {self.label} cannot read a conversation: {type(fault).__name__}: {fault}"
            ) from fault

    def _block(self, part: Part) -> dict[str, object]:
        content = self._resampled(part.content) if part.type == "audio" else part.content
        return {"type": part.type, part.type: content}

    def _resampled(self, audio: Audio) -> Floats:
        """The audio at the sampling rate of the model."""
        import numpy as np
        from scipy.signal import resample_poly

        extractor = _audio_processor(self.processor)
        rate = int(extractor.sampling_rate)
        samples = audio.samples
        if audio.rate != rate:
            shared = gcd(rate, audio.rate)
            samples = resample_poly(samples, rate // shared, audio.rate // shared).astype(np.float32)
        limit = getattr(extractor, "n_samples", None)
        if limit is not None and len(samples) > limit:
            warnings.warn(
                f"the audio lasts {len(samples) / rate:.1f} s, and {self.label} reads pieces of {limit / rate:.0f} s: "
                "it may ignore the rest",
                stacklevel=2,
            )
        return samples

    def _refuse_special_tokens(self, text: str) -> None:
        special = next((token for token in self.special if token in text), None)
        if special is not None:
            raise InputError(
                [
                    Problem(
                        code="SPECIAL_TOKEN",
                        message=f"{shorten(text)} contains {special!r}, which is a special token of {self.label}.",
                        hint="Remove it from the questions or the answers.",
                    )
                ]
            )

    def _refuse_length(self, tokens: int) -> None:
        if tokens > self.longest:
            message = f"a conversation has {tokens:,} tokens, but {self.label} reads at most {self.longest:,}."
            raise InputError([Problem(code="TOO_LONG", message=message)])


def _audio_processor(processor: Any) -> Any:
    return getattr(processor, "audio_processor", None) or getattr(processor, "feature_extractor", None)


def _placeholders(processor: Any) -> dict[PartType, str]:
    """The placeholders for images and audio in a text, for the types that the processor reads."""
    placeholders: dict[PartType, str] = {}
    if getattr(processor, "image_processor", None) is not None:
        placeholders["image"] = str(getattr(processor, "image_token", ""))
    if hasattr(_audio_processor(processor), "sampling_rate"):
        placeholders["audio"] = str(getattr(processor, "audio_token", ""))
    return placeholders


def _special_tokens(tokenizer: Any) -> list[str]:
    added = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
    return sorted({*added, *tokenizer.all_special_tokens})
