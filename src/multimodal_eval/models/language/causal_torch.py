"""Any causal language model of transformers in torch, on CPU or CUDA. Needs the extra `[torch]`.

A plain llama is run by `llama_torch.py`, without padding. For other models windows are sorted by length and padded at
the end, where a causal model does not look back from, so no mask is needed. The head, whose output has one number per
entry of the vocabulary, runs on scored tokens only, some at a time. Results are fetched from the GPU at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.models.batching import by_tokens
from multimodal_eval.models.foreign_folder import check_folder, transformers_for
from multimodal_eval.models.language import llama
from multimodal_eval.models.language.llama_torch import TorchLlama
from multimodal_eval.models.language.tokens import Tokens
from multimodal_eval.models.packing import Packing, Rows
from multimodal_eval.models.source import Model
from multimodal_eval.models.tokenizer_file import FILE
from multimodal_eval.models.torch_device import Format, Placement, halving, label_of, place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]

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
