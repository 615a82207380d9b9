"""Score the answers of several conversations at once, on a GPU.

Conversations whose images or audio have the same shape are stacked and padded at the end, where a causal model does not
look back from. The first batch of a model is compared with its first conversation alone. A model whose result differs
is not batched. Results stay on the GPU until all are computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from multimodal_eval.models.batching import by_tokens
from multimodal_eval.models.torch_device import halving

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.language.conversation_torch import TorchConversationLM

    Floats = NDArray[np.float32]
    Inputs = dict[str, Any]  # the output of a processor: tensors and other inputs by name

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
