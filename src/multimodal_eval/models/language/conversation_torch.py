"""Models of transformers that read images or audio as well as text, in torch, on CPU or CUDA. Needs `[torch]`.

The model's chat template turns a conversation into a prompt. Without a template it is rendered as plain text with the
processor's placeholders. The answer is tokenized separately and appended to the prompt, so that the boundary is exact.
On the CPU conversations are scored one at a time, without padding, so that a result does not depend on the others. On a
GPU they are scored in batches, and results are fetched at the end. Numbers are float32, or bfloat16 as `NAME+bf16`.
"""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from multimodal_eval.core.conversation import Audio, Part, PartType, Turn
from multimodal_eval.core.errors import InputError, ModelError, Problem, shorten
from multimodal_eval.core.optional import require
from multimodal_eval.models import torch_device
from multimodal_eval.models.batching import by_tokens
from multimodal_eval.models.foreign_folder import check_folder, transformers_for
from multimodal_eval.models.language.conversations import as_plain_text, text_label
from multimodal_eval.models.source import Model
from multimodal_eval.models.torch_device import Format, halving, place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Inputs = dict[str, Any]


# Score the answers of several conversations at once, on a GPU.
#
# Conversations whose images or audio have the same shape are stacked and padded at the end, where a causal model does
# not look back from. The first batch of a model is compared with its first conversation alone. A model whose result
# differs is not batched. Results stay on the GPU until all are computed.

PER_TOKEN = ("attention_mask", "token_type_ids", "mm_token_type_ids", "cross_attention_mask")
READ_AT_ONCE = 128  # conversations that are prepared together
TOKENS_PER_BATCH = 1 << 13
CLOSE = {"float32": 1e-3, "bf16": 0.3}  # how much a log-probability may change in a batch


class Asked(NamedTuple):
    """A prompt, and the tokens of the answer whose probability is asked for."""

    prompt: Inputs
    ids: list[int]

    @property
    def length(self) -> int:
        """The number of tokens that the model reads. The last one need not be read."""
        return int(self.prompt["input_ids"].shape[1]) + len(self.ids) - 1

    @property
    def kind(self) -> tuple[object, ...] | None:
        """Conversations of the same kind can be stacked. None: this one cannot."""
        kinds: list[tuple[object, ...]] = []
        for name, value in sorted(self.prompt.items()):
            if not hasattr(value, "shape"):
                return None
            rest = value.shape[2:] if name == "input_ids" or name in PER_TOKEN else value.shape[1:]
            kinds.append((name, value.dtype, tuple(rest)))
        return tuple(kinds)


class Batches:
    """Scores batches with a model, and alone what cannot be batched."""

    def __init__(self, model: TorchConversationLM) -> None:
        self.model, self.torch = model, model.placed.torch
        self.can_batch: bool | None = None  # compared with the first batch

    def scored(self, conversations: Iterable[Asked]) -> list[Floats]:
        """The log-probabilities of the tokens of each answer."""
        import numpy as np

        order: list[int] = []
        pieces: list[Any] = []
        counts: list[int] = []
        waiting = iter(enumerate(conversations))
        while group := list(islice(waiting, READ_AT_ONCE)):
            counts += [len(asked.ids) for _, asked in group]
            ready = [pair for pair in group if pair[1].ids]
            if ready and self.model.is_causal is None:
                self.model.score_alone(ready[0][1])
            for batch in self._batches(ready):
                halving(self.torch, lambda rows: self._run(rows, order, pieces), batch)
        values = self.torch.cat(pieces).cpu().numpy() if pieces else np.empty(0, np.float32)
        scores: list[Floats] = [np.empty(0, np.float32)] * len(counts)
        ends = np.cumsum([counts[position] for position in order])
        for position, row in zip(order, np.split(values, ends[:-1]) if order else (), strict=True):
            scores[position] = row
        return scores

    def _batches(self, group: Sequence[tuple[int, Asked]]) -> Iterator[list[tuple[int, Asked]]]:
        kinds: defaultdict[tuple[object, ...] | None, list[tuple[int, Asked]]] = defaultdict(list)
        for pair in group:
            kinds[pair[1].kind].append(pair)
        for kind, pairs in kinds.items():
            lengths = [asked.length for _, asked in pairs]
            tokens = TOKENS_PER_BATCH if kind is not None else 0
            for places in by_tokens(lengths, tokens=tokens, padded=True):
                yield [pairs[place] for place in places]

    def _run(self, batch: Sequence[tuple[int, Asked]], order: list[int], pieces: list[Any]) -> None:
        rows = [asked for _, asked in batch]
        if len(rows) > 1 and self.can_batch is None:
            together, alone = self._read(rows)[0], self._read(rows[:1])[0]
            limit = CLOSE[self.model.placed.number_format]
            self.can_batch = bool((together - alone).abs().max() <= limit)
        groups = [rows] if self.can_batch else [[row] for row in rows]
        computed = [scores for group in groups for scores in self._read(group)]
        pieces.extend(computed)
        order.extend(position for position, _ in batch)

    def _read(self, rows: Sequence[Asked]) -> list[Any]:
        """The log-probabilities of each answer, on the device."""
        import numpy as np

        model = self.model
        counts = [len(asked.ids) for asked in rows]
        with model.placed.inference():
            inputs = self._stacked([model.appended(asked.prompt, asked.ids[:-1]) for asked in rows])
            length = int(inputs["input_ids"].shape[1])
            firsts = [asked.length - len(asked.ids) for asked in rows]  # the last token of the prompt
            keep = {"logits_to_keep": length - min(firsts)} if model.keeps else {}
            logits = model.model(**inputs, **keep, use_cache=False).logits
            cut = length - logits.shape[1]
            wanted = model.placed.upload(np.concatenate([asked.ids for asked in rows]))[:, None].split(counts)
            return [
                row[first - cut : first - cut + len(ids)].float().log_softmax(-1).gather(1, ids)[:, 0]
                for row, first, ids in zip(logits, firsts, wanted, strict=True)
            ]

    def _stacked(self, rows: list[Inputs]) -> Inputs:
        """The inputs of several conversations as those of one batch."""
        if len(rows) == 1:
            return rows[0]
        longest = max(row["input_ids"].shape[1] for row in rows)
        stacked = {}
        for name in rows[0]:
            values = [row[name] for row in rows]
            if name == "input_ids" or name in PER_TOKEN:
                values = [self._padded(value, longest) for value in values]
            stacked[name] = self.torch.cat(values)
        return stacked

    def _padded(self, value: Any, length: int) -> Any:
        missing = (value.shape[0], length - value.shape[1], *value.shape[2:])
        return self.torch.cat([value, value.new_zeros(missing)], dim=1)


PROCESSORS = ("processor_config.json", "preprocessor_config.json")
LONGEST = 1 << 20  # tokens, if the model states no limit
# How much a log-probability may change when more of the answer is read: rounding only, not attention to later tokens.
DRIFT = {"float32": 0.01, "bf16": 0.3}


def has_processor(model: Model) -> bool:
    """Whether the directory has a processor for images or audio."""
    return any((model.folder / name).is_file() for name in PROCESSORS)


def label_of(model: Model, number_format: Format) -> str:
    """Name and revision, that it is torch, and the rendering of conversations."""
    return text_label(torch_device.label_of(model, number_format))


def check(model: Model) -> None:
    """Check that the model, the packages and the device are available."""
    model.check()
    check_folder(model)
    place(f"the model {model.name!r}")
    transformers_for(model, f"the model {model.name!r}")


class TorchConversationLM:
    """A transformers model and its processor. Only code of that library is run; weights are read from safetensors."""

    languages: frozenset[str] = frozenset()

    def __init__(self, model: Model, number_format: Format = "float32") -> None:
        check(model)
        self.placed = place(f"the model {model.name!r}", number_format)
        self.torch, self.device = self.placed.torch, self.placed.device
        self.label = label_of(model, number_format)
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
        self.batches = Batches(self)

    def _opened(self, model: Model) -> tuple[Any, Any]:
        library = transformers_for(model, f"the model {model.name!r}")
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
            opened = opened.eval().to(self.device, self.placed.dtype)
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
        pairs = zip(conversations, answers, strict=True)
        if self.placed.on_gpu:
            return self.batches.scored(self._asked(turns, answer.strip()) for turns, answer in pairs)
        return [self.score_alone(self._asked(turns, answer.strip())) for turns, answer in pairs]

    def _asked(self, turns: Sequence[Turn], answer: str) -> Asked:
        """The prompt, and the tokens of the answer."""
        for written in (answer, *(part.content for turn in turns for part in turn.parts if part.type == "text")):
            self._refuse_special_tokens(written)
        prompt = self._prompt(turns)
        text = answer if self.has_template else f" {answer}"  # a space before a word belongs to the word's token
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        self._refuse_length(prompt["input_ids"].shape[1] + len(ids))
        return Asked(prompt, ids)

    def score_alone(self, asked: Asked) -> Floats:
        """The log-probabilities of one answer. The first one also shows whether the model is causal."""
        import numpy as np

        prompt, ids = asked
        if not ids:
            return np.empty(0, np.float32)
        scores = self._read(prompt, ids, len(ids) - 1)  # the last token need not be read
        if self.is_causal is None:
            drift = np.abs(scores - self._read(prompt, ids, len(ids))).max()
            self.is_causal = bool(drift <= DRIFT[self.placed.number_format])
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
        with self.placed.inference():
            out = self.model(**self.appended(prompt, ids[:shown]), **keep, use_cache=False).logits
            every = out[0, -rows:][:count].float().log_softmax(-1)
            chosen = every.gather(1, torch.tensor(ids, device=self.device)[:, None])[:, 0]
        scores: Floats = chosen.cpu().numpy()
        return scores

    def appended(self, prompt: Inputs, ids: list[int]) -> Inputs:
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
        return value.to(self.placed.dtype) if value.is_floating_point() else value

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

        extractor = _audio_processor(self.processor)
        rate = int(extractor.sampling_rate)
        samples = audio.samples
        if audio.rate != rate:
            shared = gcd(rate, audio.rate)
            signal: Any = require("scipy.signal", extra="torch", purpose="audio at another sampling rate")
            samples = signal.resample_poly(samples, rate // shared, audio.rate // shared).astype(np.float32)
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
