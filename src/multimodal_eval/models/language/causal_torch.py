"""Any causal language model of transformers in torch, on CPU or CUDA. Needs the extra `[torch]`.

A plain llama is run without padding. For other models windows are sorted by length and padded at
the end, where a causal model does not look back from, so no mask is needed. The head, whose output has one number per
entry of the vocabulary, runs on scored tokens only, some at a time. Results are fetched from the GPU at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.models.batching import Packing, Rows, by_tokens
from multimodal_eval.models.foreign_folder import check_folder, transformers_for
from multimodal_eval.models.language import llama
from multimodal_eval.models.language.causal import Tokens
from multimodal_eval.models.language.llama import LlamaConfig, rotation_tables
from multimodal_eval.models.runtime import FILE
from multimodal_eval.models.source import CONFIG, Model
from multimodal_eval.models.torch_device import Format, Placement, halving, label_of, place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]


# A llama in torch, without padding: for a GPU, where the models of transformers lose time in small operations.
#
# The tokens of all windows of a batch are one long list. Every product has as many rows as there are tokens, and only
# attention goes by windows. Used for the models that `llama.py` runs in onnxruntime.

_EMBEDDINGS = "model.embed_tokens.weight"


class TorchLlama:
    """The network. Weights are read from safetensors."""

    def __init__(self, model: Model, placed: Placement, longest: int) -> None:
        self.placed, self.torch = placed, placed.torch
        self.config = config = model.read(CONFIG, LlamaConfig)
        self.heads, self.head = config.num_attention_heads, config.head_width
        self.key_heads = config.num_key_value_heads or self.heads
        self._read = model.weights.read
        self.words = self._tensor(_EMBEDDINGS)
        self.output = self.words if config.tie_word_embeddings else self._tensor("lm_head.weight")
        self.layers = [self._layer(f"model.layers.{number}") for number in range(config.num_hidden_layers)]
        self.last_norm = self._tensor("model.norm.weight")
        tables = rotation_tables(self.head, config.rotation_base, longest)
        self.cosines, self.sines = (placed.weights(table) for table in tables)

    def _tensor(self, *names: str) -> Any:
        """Tensors of the file, one below the other, on the device."""
        return self.placed.weights(*(self._read(name) for name in names))

    def _layer(self, layer: str) -> tuple[Any, ...]:
        return (
            self._tensor(f"{layer}.input_layernorm.weight"),
            self._tensor(*(f"{layer}.self_attn.{part}_proj.weight" for part in "qkv")),
            self._tensor(f"{layer}.self_attn.o_proj.weight"),
            self._tensor(f"{layer}.post_attention_layernorm.weight"),
            self._tensor(*(f"{layer}.mlp.{part}_proj.weight" for part in ("gate", "up"))),
            self._tensor(f"{layer}.mlp.down_proj.weight"),
        )

    def states(self, packing: Packing) -> Any:
        """The vectors of all tokens."""
        function, epsilon = self.torch.nn.functional, self.config.rms_norm_eps
        x = function.embedding(packing.ids, self.words)
        cosines, sines = (function.embedding(packing.places, table)[:, None] for table in (self.cosines, self.sines))
        for norm, packed, mixed, inner_norm, gate_up, down in self.layers:
            rows = function.linear(function.rms_norm(x, x.shape[-1:], norm, epsilon), packed)
            parts = [self._attend(part) for part, _ in packing.parts(self._rotated(rows, cosines, sines))]
            x = function.linear(packing.joined(self.torch, parts), mixed).add_(x)
            wide = function.linear(function.rms_norm(x, x.shape[-1:], inner_norm, epsilon), gate_up)
            gate, up = wide.chunk(2, dim=1)
            x = function.linear(function.silu(gate).mul_(up), down).add_(x)
        return function.rms_norm(x, x.shape[-1:], self.last_norm, epsilon)

    def logits(self, states: Any) -> Any:
        """The logits of the next token after each state."""
        return self.torch.nn.functional.linear(states, self.output)

    def _rotated(self, rows: Any, cosines: Any, sines: Any) -> Any:
        """Queries and keys, rotated by their places, and values, side by side."""
        by_head = rows.view(len(rows), -1, self.head)
        left, right = by_head[:, : self.heads + self.key_heads].chunk(2, dim=2)
        turned = self.torch.cat([left * cosines - right * sines, right * cosines + left * sines], dim=2)
        by_head[:, : self.heads + self.key_heads] = turned
        return rows

    def _attend(self, rows: Any) -> Any:
        """Each token attends to itself and the earlier ones, so padding at the end needs no mask."""
        windows, length, _ = rows.shape
        by_head = rows.view(windows, length, -1, self.head).transpose(1, 2)
        q, k, v = by_head.split([self.heads, self.key_heads, self.key_heads], dim=1)
        if self.heads != self.key_heads:
            k, v = (each.repeat_interleave(self.heads // self.key_heads, dim=1) for each in (k, v))
        mixed = self.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(windows, length, -1)


TOKENS_PER_BATCH = {"cuda": 1 << 15, "cpu": 1 << 11}
LOGITS_AT_ONCE = {"cuda": 1 << 28, "cpu": 1 << 24}
LONGEST = 1 << 20  # tokens, if the model states no limit
_PROBE = (1, 5, 2, 7, 3)  # ids that every vocabulary has


def check(model: Model) -> None:
    """Check that the model, the packages and the device are available."""
    model.check()
    check_folder(model)
    place(f"the language model {model.name!r}")
    transformers_for(model, f"the language model {model.name!r}")


class _Network(Protocol):
    """Computes states, and logits from states."""

    bos: int | None
    longest: int
    padded: bool  # whether all rows of a batch take as much time as the longest
    vocabulary: int

    def states(self, rows: Sequence[Sequence[int]]) -> tuple[Any, list[int]]:
        """The states of all tokens as one list, and where those of each row start."""

    def logits(self, states: Any) -> Any:
        """The logits of the next token after each state."""


class TorchCausalLM:
    """A causal language model. Only code of this package or of transformers is run, and weights are safetensors."""

    def __init__(
        self, model: Model, languages: frozenset[str] = frozenset(), number_format: Format = "float32"
    ) -> None:
        model.verify()
        self.placed = place(f"the language model {model.name!r}", number_format)
        self.torch, self.label, self.languages = self.placed.torch, label_of(model, number_format), languages
        self.network: _Network = (_Llama if llama.can_run(model) else _Library)(model, self.placed)
        self.bos, self.longest = self.network.bos, self.network.longest
        self.tokens: Callable[[Sequence[str]], list[list[int]]] = _tokens(model)

    def score(self, rows: Sequence[Sequence[int]], firsts: Sequence[int]) -> list[Floats]:
        """For each row, the log-probabilities of the ids from `first` (at least 1) on, given all earlier ids."""
        import numpy as np

        order: list[int] = []
        pieces: list[Any] = []

        def run(batch: Sequence[int]) -> None:
            with self.placed.inference():
                computed = list(self._batch([rows[position] for position in batch], [firsts[p] for p in batch]))
            pieces.extend(computed)
            order.extend(batch)

        tokens = TOKENS_PER_BATCH[self.placed.device.type]
        for batch in by_tokens([len(row) for row in rows], tokens=tokens, padded=self.network.padded):
            halving(self.torch, run, batch)
        scores: list[Floats] = [np.empty(0, np.float32)] * len(rows)
        if pieces:
            ends = np.cumsum([len(rows[position]) - firsts[position] for position in order])
            values = np.split(self.torch.cat(pieces).cpu().numpy(), ends[:-1])
            for position, row in zip(order, values, strict=True):
                scores[position] = row
        return scores

    def _batch(self, rows: Sequence[Sequence[int]], firsts: Sequence[int]) -> Iterator[Any]:
        """`score` for some rows, the results one after the other."""
        import numpy as np

        states, starts = self.network.states(rows)
        spans = zip(starts, firsts, rows, strict=True)
        before = np.concatenate([np.arange(start + first - 1, start + len(row) - 1) for start, first, row in spans])
        after = chain.from_iterable(row[first:] for row, first in zip(rows, firsts, strict=True))
        places, ids = self.placed.upload(before), self.placed.upload(np.fromiter(after, np.int64, len(before)))
        step = max(1, LOGITS_AT_ONCE[self.placed.device.type] // self.network.vocabulary)
        for begin in range(0, len(before), step):
            part = slice(begin, begin + step)
            logits = self.network.logits(states[places[part]]).float()
            yield -self.torch.nn.functional.cross_entropy(logits, ids[part], reduction="none")


class _Llama:
    """A plain llama, in code of this package."""

    padded = False

    def __init__(self, model: Model, placed: Placement) -> None:
        config = model.read("config.json", llama.LlamaConfig)
        self.placed, self.bos, self.longest = placed, config.bos_token_id, config.max_position_embeddings
        self.network = TorchLlama(model, placed, self.longest)
        self.logits, self.vocabulary = self.network.logits, len(self.network.output)

    def states(self, rows: Sequence[Sequence[int]]) -> tuple[Any, list[int]]:
        """The states of all tokens as one list, and where those of each row start."""
        import numpy as np

        packed = Rows.of(rows)
        starts = np.cumsum(packed.lengths) - packed.lengths
        return self.network.states(Packing.of(packed, self.placed)), starts.tolist()


class _Library:
    """Any causal language model of transformers."""

    padded = True

    def __init__(self, model: Model, placed: Placement) -> None:
        library = transformers_for(model, f"the language model {model.name!r}")
        opened = library.AutoModelForCausalLM.from_pretrained(
            str(model.folder), use_safetensors=True, trust_remote_code=False, local_files_only=True
        )
        self.placed, self.model = placed, opened.eval().to(placed.device, placed.dtype)
        config = self.model.config
        self.bos: int | None = config.bos_token_id
        self.longest = int(getattr(config, "max_position_embeddings", None) or LONGEST)
        self.vocabulary = int(config.get_text_config().vocab_size)
        self.body, self.logits = self._parts()

    def _parts(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        """What computes states, and logits from states. A few models scale or cap logits: they compute both at once."""
        body, head, torch = self.model.base_model, self.model.get_output_embeddings(), self.placed.torch
        if head is not None and body is not self.model:
            probe = torch.tensor([_PROBE], device=self.placed.device)
            with self.placed.inference():
                logits = self.model(probe, use_cache=False).logits
                states = body(probe, use_cache=False).last_hidden_state
                if torch.equal(head(states).to(logits.dtype), logits):
                    return lambda ids: body(ids, use_cache=False).last_hidden_state, head
        return lambda ids: self.model(ids, use_cache=False).logits, lambda logits: logits

    def states(self, rows: Sequence[Sequence[int]]) -> tuple[Any, list[int]]:
        """The states of all tokens as one list, and where those of each row start."""
        import numpy as np

        width = max(map(len, rows))
        ids = np.zeros((len(rows), width), np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
        return self.body(self.placed.upload(ids)).flatten(0, 1), list(range(0, ids.size, width))


def _tokens(model: Model) -> Callable[[Sequence[str]], list[list[int]]]:
    """The tokenizer of the model: tokenizer.json directly, or a class of the library."""
    if (model.folder / FILE).is_file():
        return Tokens(model)
    library = transformers_for(model, f"the language model {model.name!r}")
    encode = library.AutoTokenizer.from_pretrained(str(model.folder), trust_remote_code=False, local_files_only=True)

    def tokens(texts: Sequence[str]) -> list[list[int]]:
        return [encode(text, add_special_tokens=False, split_special_tokens=True)["input_ids"] for text in texts]

    return tokens
