"""Models of transformers that read pictures or sounds besides text, through torch, on CPU or CUDA: the extra `[torch]`.

A conversation becomes a prompt by the model's own chat template, or is written plainly with the processor's marks where
it has none. The answer's tokens are made apart and stand behind the prompt's, so that the boundary is exact. One
conversation goes at a time: no padding, and the same numbers whatever else is asked. On the CPU everything is float32;
on CUDA a model runs in the number format of its configuration, and the label says so.
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
from multimodal_eval.models.language.conversation_text import RENDERING, written_plainly
from multimodal_eval.models.source import CONFIG, Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Inputs = dict[str, Any]  # what a processor makes: tensors by name, and what else the model takes

PROCESSORS = ("processor_config.json", "preprocessor_config.json")
PER_TOKEN = ("attention_mask", "token_type_ids", "mm_token_type_ids", "cross_attention_mask")
LONGEST = 1 << 20  # tokens, of a model that does not say how many it reads
# How much a logarithm may change when the answer goes on: last digits in the place of another attention.
DRIFT = {"float32": 0.01, "bfloat16": 0.3, "float16": 0.1}


class _NumberFormat(msgspec.Struct, frozen=True):
    """The number format in config.json; `torch_dtype` is the older name."""

    dtype: str | None = None
    torch_dtype: str | None = None

    @property
    def chosen(self) -> str | None:
        """What it says, if anything."""
        return self.dtype or self.torch_dtype


class _NumberFormats(_NumberFormat, frozen=True):
    """A model of several parts says it for all, or for its language model."""

    text_config: _NumberFormat | None = None


def has_processor(model: Model) -> bool:
    """Whether the directory holds a processor of pictures or sounds."""
    return any((model.folder / name).is_file() for name in PROCESSORS)


def number_format(model: Model) -> str:
    """float32 on the CPU; on CUDA what the configuration says."""
    torch = require("torch", extra="torch", purpose=f"the model {model.name!r}")
    config = model.read(CONFIG, _NumberFormats)
    said = config.chosen or (config.text_config or _NumberFormat()).chosen or "float32"
    return said if torch.cuda.is_available() and said in DRIFT else "float32"


def label_of(model: Model) -> str:
    """Name and revision, the number format where it is not float32, and how a conversation is written."""
    format_ = number_format(model)
    return f"{model.label}+torch{'' if format_ == 'float32' else '-' + format_}+{RENDERING}"


def check(model: Model) -> None:
    """Whether the model and the packages are here."""
    model.check()
    for package in ("torch", "transformers"):
        require(package, extra="torch", purpose=f"the model {model.name!r}")


class TorchConversationLM:
    """A transformers model and its processor. Their code comes from that library alone, weights from safetensors."""

    languages: frozenset[str] = frozenset()

    def __init__(self, model: Model) -> None:
        check(model)
        self.torch = require("torch", extra="torch", purpose=f"the model {model.name!r}")
        self.label, self.format = label_of(model), number_format(model)
        self.device = "cuda" if self.torch.cuda.is_available() else "cpu"
        self.processor, self.model = self._opened(model)
        self.tokenizer = self.processor.tokenizer
        self.marks = _marks(self.processor)
        self.reads: frozenset[PartType] = frozenset({"text", *self.marks})
        self.has_template = bool(getattr(self.processor, "chat_template", None))
        self.special = _special_tokens(self.tokenizer)
        text = self.model.config.get_text_config()
        self.longest = int(getattr(text, "max_position_embeddings", None) or LONGEST)
        self.keeps = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        self.is_causal: bool | None = None  # seen at the first answer

    def _opened(self, model: Model) -> tuple[Any, Any]:
        library = require("transformers", extra="torch", purpose=f"the model {model.name!r}")
        kind = getattr(library, "AutoModelForMultimodalLM", None) or library.AutoModelForImageTextToText
        folder, safe = str(model.folder), {"trust_remote_code": False, "local_files_only": True}
        try:
            processor = library.AutoProcessor.from_pretrained(folder, **safe)
            if getattr(processor, "image_processor", None) is not None:
                # Pillow's way to prepare pictures is there on every machine: the numbers are the same on all.
                processor.image_processor = library.AutoImageProcessor.from_pretrained(folder, backend="pil", **safe)
            config = library.AutoConfig.from_pretrained(folder, **safe)
            config = getattr(config, "thinker_config", config)  # of one that also speaks, the part that writes
            opened, told = kind.from_pretrained(
                folder, config=config, use_safetensors=True, output_loading_info=True, **safe
            )
            opened = opened.eval().to(self.device, getattr(self.torch, self.format))
        except (OSError, ValueError, ImportError, AttributeError, KeyError) as fault:
            raise ModelError(
                f"transformers does not open {model.folder} as a model that reads pictures or sounds and writes text: "
                f"{type(fault).__name__}: {fault} (many such models need the package torchvision)"
            ) from None
        if told["missing_keys"]:  # transformers fills them with random numbers
            raise ModelError(
                f"{model.folder} lacks weights of its model: {', '.join(sorted(told['missing_keys'])[:3])}"
            )
        if getattr(opened.config, "is_encoder_decoder", False) or not hasattr(processor, "tokenizer"):
            raise ModelError(f"{model.folder} is no causal language model: {type(opened).__name__}")
        return processor, opened

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """A natural logarithm for each token of each answer, given the turns before it."""
        return [self._score(turns, answer.strip()) for turns, answer in zip(conversations, answers, strict=True)]

    def _score(self, turns: Sequence[Turn], answer: str) -> Floats:
        import numpy as np

        for said in (answer, *(part.content for turn in turns for part in turn.parts if part.type == "text")):
            self._refuse_special_tokens(said)
        prompt = self._prompt(turns)
        text = answer if self.has_template else f" {answer}"  # a space before a word belongs to the word's token
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        if not ids:
            return np.empty(0, np.float32)
        self._refuse_length(prompt["input_ids"].shape[1] + len(ids))
        scores = self._read(prompt, ids, len(ids) - 1)  # of the last token nothing follows
        if self.is_causal is None:
            drift = np.abs(scores - self._read(prompt, ids, len(ids))).max()
            self.is_causal = bool(drift <= DRIFT[self.format])
        if not self.is_causal:
            raise ModelError(
                f"{self.label} is no causal language model: the probability of a token changes with what follows it"
            )
        return scores

    def _read(self, prompt: Inputs, ids: list[int], shown: int) -> Floats:
        """The log-probabilities of all `ids` behind the prompt when the first `shown` of them are read."""
        torch, count = self.torch, len(ids)
        rows = shown + 1  # from the prompt's last token on
        keep = {"logits_to_keep": rows} if self.keeps else {}
        with torch.inference_mode():
            out = self.model(**self._followed(prompt, ids[:shown]), **keep, use_cache=False).logits
            every = out[0, -rows:][:count].float().log_softmax(-1)
            chosen = every.gather(1, torch.tensor(ids, device=self.device)[:, None])[:, 0]
        scores: Floats = chosen.cpu().numpy()
        return scores

    def _followed(self, prompt: Inputs, ids: list[int]) -> Inputs:
        """The prompt with tokens behind it; what is said of each token goes on as for the last."""
        torch = self.torch
        grown = {name: self._there(value) for name, value in prompt.items() if name != "labels"}
        more = torch.tensor([ids], dtype=torch.long, device=self.device)
        grown["input_ids"] = torch.cat([grown["input_ids"], more], dim=1)
        for name in PER_TOKEN:
            if name in grown and ids:
                grown[name] = torch.cat([grown[name], *[grown[name][:, -1:]] * len(ids)], dim=1)
        return grown

    def _there(self, value: Any) -> Any:
        if not self.torch.is_tensor(value):
            return value
        value = value.to(self.device)
        return value.to(getattr(self.torch, self.format)) if value.is_floating_point() else value

    def _prompt(self, turns: Sequence[Turn]) -> Inputs:
        """What the processor makes of the turns, with the beginning of the answer's turn at the end."""
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
            for part in (part for turn in turns for part in turn.parts if part.type in self.marks):
                if not self.marks[part.type]:
                    raise ValueError(f"neither a chat template nor a mark that stands for the part {part.type!r}")
                media[part.type].append(self._block(part)[part.type])
            given = {key: media[kind] for kind, key in (("image", "images"), ("audio", "audio")) if media[kind]}
            text = written_plainly(turns, self.marks)
            return dict(self.processor(text=[text], return_tensors="pt", **given))
        except Exception as fault:  # templates and processors raise anything
            raise ModelError(
                f"the processor of {self.label} cannot read a conversation: {type(fault).__name__}: {fault}"
            ) from fault

    def _block(self, part: Part) -> dict[str, object]:
        content = self._resampled(part.content) if part.type == "audio" else part.content
        return {"type": part.type, part.type: content}

    def _resampled(self, audio: Audio) -> Floats:
        """The sound at the rate that the model hears."""
        import numpy as np
        from scipy.signal import resample_poly

        extractor = _ear(self.processor)
        rate = int(extractor.sampling_rate)
        samples = audio.samples
        if audio.rate != rate:
            shared = gcd(rate, audio.rate)
            samples = resample_poly(samples, rate // shared, audio.rate // shared).astype(np.float32)
        most = getattr(extractor, "n_samples", None)
        if most is not None and len(samples) > most:
            warnings.warn(
                f"a sound lasts {len(samples) / rate:.1f} s, and {self.label} hears pieces of {most / rate:.0f} s: "
                "it may not hear the rest",
                stacklevel=2,
            )
        return samples

    def _refuse_special_tokens(self, text: str) -> None:
        found = next((token for token in self.special if token in text), None)
        if found is not None:
            raise InputError(
                [
                    Problem(
                        code="SPECIAL_TOKEN",
                        message=f"{shorten(text)} holds {found!r}, which {self.label} takes for a mark of its own.",
                        hint="Take it out of the questions or the answers.",
                    )
                ]
            )

    def _refuse_length(self, tokens: int) -> None:
        if tokens > self.longest:
            message = f"a conversation of {tokens:,} tokens, and {self.label} reads at most {self.longest:,}."
            raise InputError([Problem(code="TOO_LONG", message=message)])


def _ear(processor: Any) -> Any:
    return getattr(processor, "audio_processor", None) or getattr(processor, "feature_extractor", None)


def _marks(processor: Any) -> dict[PartType, str]:
    """What stands for a picture and for a sound in a text, of those that the processor takes."""
    found: dict[PartType, str] = {}
    if getattr(processor, "image_processor", None) is not None:
        found["image"] = str(getattr(processor, "image_token", ""))
    if hasattr(_ear(processor), "sampling_rate"):
        found["audio"] = str(getattr(processor, "audio_token", ""))
    return found


def _special_tokens(tokenizer: Any) -> list[str]:
    added = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
    return sorted({*added, *tokenizer.all_special_tokens})
