"""Write answers with any generative model of transformers, on CPU or CUDA: texts, images and audio. Needs `[torch]`.

A folder with a processor is opened as a multimodal model, any other one as a causal language model. The chat template
of the model turns a conversation into a prompt; without one it is rendered as plain text. Conversations are written in
batches, padded on the left. Only code of transformers is run, and weights are read from safetensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.conversation import Part, PartType, Turn
from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.foreign_folder import transformers_for
from multimodal_eval.models.language.conversation_torch import TorchConversationLM, has_processor
from multimodal_eval.models.language.conversations import as_plain_text
from multimodal_eval.models.language.writer import Sampling, Written
from multimodal_eval.models.source import Model
from multimodal_eval.models.torch_device import Format, halving

if TYPE_CHECKING:
    from multimodal_eval.models.language.conversation_torch import Inputs

__all__ = ["Conversation", "TorchWriter", "Writing", "label_of"]


def label_of(model: Model, number_format: Format) -> str:
    """Name and revision, and the number format if it is not float32."""
    return model.label if number_format == "float32" else f"{model.label}+{number_format}"


@dataclass(frozen=True)
class Conversation:
    """What is said before the answer; images are Pillow images, audio is `Audio`."""

    turns: tuple[Turn, ...]
    system: str | None = None


@dataclass(frozen=True)
class Writing:
    """How long an answer may be, how its tokens are chosen, and what ends it."""

    max_tokens: int
    sampling: Sampling
    stop: tuple[str, ...] = ()
    logprobs: bool = False


class _TextProcessor:
    """A tokenizer in the place of a processor: the content of a message is text."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.chat_template = tokenizer, tokenizer.chat_template

    def __call__(self, *, text: list[str], **options: Any) -> Any:
        return self.tokenizer(text, add_special_tokens=True, **options)

    def apply_chat_template(
        self, conversations: list[list[dict[str, Any]]], *, processor_kwargs: dict[str, Any], **options: Any
    ) -> Any:
        """The conversations as the template of the tokenizer renders them."""
        texts = [
            [{**message, "content": "\n".join(part["text"] for part in message["content"])} for message in messages]
            for messages in conversations
        ]
        return self.tokenizer.apply_chat_template(texts, **processor_kwargs, **options)


class TorchWriter(TorchConversationLM):
    """A model and its processor or tokenizer."""

    def __init__(self, model: Model, number_format: Format = "float32") -> None:
        super().__init__(model, number_format)
        self.label = label_of(model, number_format)
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        ends = self.model.generation_config.eos_token_id
        if ends is None:
            ends = self.tokenizer.eos_token_id
        self.ends = frozenset([] if ends is None else [ends] if isinstance(ends, int) else ends)

    def _opened(self, model: Model) -> tuple[Any, Any]:
        if has_processor(model):
            return super()._opened(model)
        library = transformers_for(model, f"the model {model.name!r}")
        model.verify()
        folder, safe = str(model.folder), {"trust_remote_code": False, "local_files_only": True}
        try:
            tokenizer = library.AutoTokenizer.from_pretrained(folder, **safe)
            opened = library.AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, **safe)
        except (OSError, ValueError, ImportError, AttributeError, KeyError) as fault:
            raise ModelError(
                f"transformers cannot open {model.folder} as a model that writes text: {type(fault).__name__}: {fault}"
            ) from None
        return _TextProcessor(tokenizer), opened.eval().to(self.device, self.placed.dtype)

    def special_token(self, conversation: Conversation) -> str | None:
        """The first special token in a text, which a model would take for more than text."""
        texts = [part.content for turn in conversation.turns for part in turn.parts if part.type == "text"]
        texts += [conversation.system or ""]
        return next((token for token in self.special for text in texts if token in text), None)

    def unread(self, conversation: Conversation) -> PartType | None:
        """The first type of media that the model does not read."""
        types = (part.type for turn in conversation.turns for part in turn.parts)
        return next((type_ for type_ in types if type_ not in self.reads), None)

    def length(self, conversation: Conversation) -> int:
        """The number of prompt tokens."""
        return int(self._inputs([conversation])["input_ids"].shape[1])

    def write(self, conversations: Sequence[Conversation], writing: Writing) -> list[tuple[int, Written]]:
        """The number of prompt tokens and the answer of each conversation. Random choices are those of the batch."""
        answers: list[tuple[int, Written]] = []
        halving(self.torch, lambda batch: answers.extend(self._write(batch, writing)), conversations)
        return answers

    def _write(self, conversations: Sequence[Conversation], writing: Writing) -> list[tuple[int, Written]]:
        torch, tokenizer = self.torch, self.tokenizer
        inputs = {name: self._on_device(value) for name, value in self._inputs(conversations).items()}
        inputs.pop("labels", None)
        length = inputs["input_ids"].shape[1]
        if length + writing.max_tokens > self.longest:
            got = f"Got {length} and {writing.max_tokens} to write instead."
            raise ModelError(f"{self.label} reads at most {self.longest} tokens. {got}")
        sampling, is_random = writing.sampling, writing.sampling.temperature > 0
        if is_random:
            torch.manual_seed(sampling.seed % 2**63)
        options: dict[str, Any] = {
            "max_new_tokens": writing.max_tokens,
            "do_sample": is_random,
            "temperature": sampling.temperature if is_random else None,
            "top_p": sampling.top_p if is_random else None,
            "top_k": 0 if is_random else None,
            "pad_token_id": tokenizer.pad_token_id,
            "return_dict_in_generate": True,
            "output_logits": writing.logprobs,
        }
        if writing.stop:
            options["stopping_criteria"] = [self._stopping(length, writing.stop)]
        with self.placed.inference():
            made = self.model.generate(**inputs, **options)
        read = inputs["attention_mask"].sum(dim=1).tolist()
        rows = made.sequences[:, length:]
        scores = self._scores(made.logits, rows) if writing.logprobs else [None] * len(rows)
        answers = [self._written(row, score, writing) for row, score in zip(rows.tolist(), scores, strict=True)]
        return list(zip(read, answers, strict=True))

    def _stopping(self, length: int, words: Sequence[str]) -> Callable[..., Any]:
        """Whether each row contains a stop after its prompt. The library's own criterion fails with some tokenizers."""

        def has_ended(ids: Any, _: Any, **__: Any) -> Any:
            texts = [self._decoded(row) for row in ids[:, length:].tolist()]
            return self.torch.tensor([any(word in text for word in words) for text in texts], device=ids.device)

        return has_ended

    def _scores(self, logits: Sequence[Any], rows: Any) -> list[list[float]]:
        steps = [step.float().log_softmax(-1) for step in logits]
        chosen = [step.gather(1, rows[:, place, None])[:, 0] for place, step in enumerate(steps)]
        scores: list[list[float]] = self.torch.stack(chosen, dim=1).cpu().tolist()
        return scores

    def _written(self, ids: list[int], scores: list[float] | None, writing: Writing) -> Written:
        """The answer in a row of tokens, which is padded after its end."""
        end = next((place for place, token in enumerate(ids) if token in self.ends), None)
        kept = ids if end is None else ids[:end]
        text = self._decoded(kept)
        cut = min((place for word in writing.stop if (place := text.find(word)) >= 0), default=None)
        if cut is not None:
            count = next(count for count in range(len(kept) + 1) if len(self._decoded(kept[:count])) >= cut)
            text, kept = text[:cut], kept[:count]
        is_over = end is not None or cut is not None
        tokens = ids if end is None else ids[: end + 1]
        logprobs = None if scores is None else tuple(scores[: len(kept)])
        return Written(text, "stop" if is_over else "length", tuple(tokens), logprobs)

    def _decoded(self, ids: list[int]) -> str:
        decoded: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return decoded

    def _inputs(self, conversations: Sequence[Conversation]) -> Inputs:
        try:
            if self.has_template:
                messages = [self._messages(conversation) for conversation in conversations]
                options = {"tokenize": True, "return_dict": True, "return_tensors": "pt"}
                rendered = self.processor.apply_chat_template(
                    messages, add_generation_prompt=True, processor_kwargs={"padding": True}, **options
                )
                return dict(rendered)
            return self._plain(conversations)
        except Exception as fault:  # templates and processors may raise anything
            raise ModelError(
                f"the processor of {self.label} cannot read a conversation: {type(fault).__name__}: {fault}"
            ) from fault

    def _messages(self, conversation: Conversation) -> list[dict[str, Any]]:
        messages = [
            {"role": turn.role, "content": [self._block(part) for part in turn.parts]} for turn in conversation.turns
        ]
        system = [{"role": "system", "content": [{"type": "text", "text": conversation.system}]}]
        return [*(system if conversation.system else []), *messages]

    def _plain(self, conversations: Sequence[Conversation]) -> Inputs:
        """Without a template: one line per turn, with placeholders for the media."""
        texts: list[str] = []
        media: dict[str, list[Any]] = {"image": [], "audio": []}
        for conversation in conversations:
            start = f"{conversation.system}\n" if conversation.system else ""
            texts.append(start + as_plain_text(conversation.turns, self.placeholders))
            for part in (part for turn in conversation.turns for part in turn.parts if part.type in media):
                if not self.placeholders.get(part.type):
                    raise ValueError(f"it has neither a chat template nor a placeholder for {part.type!r} parts")
                media[part.type].append(self._block(Part(part.type, part.content))[part.type])
        named = {key: media[kind] for kind, key in (("image", "images"), ("audio", "audio")) if media[kind]}
        return dict(self.processor(text=texts, return_tensors="pt", padding=True, **named))
