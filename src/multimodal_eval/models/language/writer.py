"""Write texts with a llama model, several at a time.

Texts join and leave between two steps: a new one takes a free row of the cache, and one that has ended gives its row
back. A text is the same in any company, because the rows do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.language.llama import LlamaConfig, can_run
from multimodal_eval.models.language.llama_cache import HEAD_MULTIPLE, CachedLlama
from multimodal_eval.models.language.sampling import Sampling, log_probability, next_token
from multimodal_eval.models.source import CONFIG, Model
from multimodal_eval.models.tokenizer_file import open_tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["LlamaWriter", "Order", "Written", "can_write"]


def can_write(model: Model) -> bool:
    """Whether the model is a plain llama whose heads have a supported width, according to its files."""
    return can_run(model) and model.read(CONFIG, LlamaConfig).head_width % HEAD_MULTIPLE == 0


@dataclass(frozen=True)
class Order:
    """A text to be written: the prompt's tokens, how many follow at most, and how they are chosen."""

    prompt: Sequence[int]
    max_tokens: int
    sampling: Sampling = field(default_factory=Sampling)
    stop: Sequence[str] = ()  # the text ends before the first of these
    logprobs: bool = False


@dataclass(frozen=True)
class Written:
    """A finished text. `tokens` are all that were written, `logprobs` those of the text, without an end or a stop."""

    text: str
    finish: Literal["stop", "length"]
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...] | None = None


@dataclass
class _Text:
    """A text that is being written."""

    order: Order
    random: np.random.Generator
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class LlamaWriter:
    """Writes at most `rows` texts at a time. `threads` changes the speed and no result."""

    def __init__(self, model: Model, rows: int = 16, threads: int = 1) -> None:
        config = model.read(CONFIG, LlamaConfig)
        ends = config.eos_token_id
        self.ends = frozenset([ends] if isinstance(ends, int) else ends or [])
        self.tokenizer = open_tokenizer(model)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        added = self.tokenizer.get_added_tokens_decoder().values()
        self.special_tokens: tuple[str, ...] = tuple(sorted(token.content for token in added if token.special))
        self._llama = CachedLlama(model, rows, threads)
        self.rows, self.longest = rows, self._llama.longest
        self._texts: list[_Text] = []  # place = row of the cache

    @property
    def busy(self) -> int:
        """The number of texts that are being written."""
        return len(self._texts)

    def tokens(self, text: str) -> list[int]:
        """The tokens of a rendered prompt; special tokens are recognised."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def add(self, order: Order) -> Written | None:
        """Start a text. Returns it if it ends with its first token. Requires a free row."""
        if not order.prompt or len(order.prompt) + order.max_tokens > self.longest:
            raise ModelError(
                f"a prompt must have at least one token, and with the {order.max_tokens} tokens to write at most "
                f"{self.longest}. Got {len(order.prompt)} tokens instead."
            )
        if self.busy >= self.rows:
            raise ValueError("every row is busy")
        text = _Text(order, order.sampling.generator())
        self._llama.reserve(len(order.prompt) + order.max_tokens)
        logits = self._llama.read(self.busy, order.prompt)
        written = self._continued(text, logits)
        if written is None:
            self._texts.append(text)
        return written

    def step(self) -> list[tuple[Order, Written]]:
        """Write one more token of every text. Returns the texts that have ended."""
        if not self._texts:
            return []
        logits = self._llama.step([text.tokens[-1] for text in self._texts])
        results = [self._continued(text, row) for text, row in zip(self._texts, logits, strict=True)]
        ended = [
            (text.order, written) for text, written in zip(self._texts, results, strict=True) if written is not None
        ]
        self._keep([place for place, written in enumerate(results) if written is None])
        return ended

    def drop(self, orders: Sequence[Order]) -> None:
        """Stop writing these texts."""
        dropped = {id(order) for order in orders}
        self._keep([place for place, text in enumerate(self._texts) if id(text.order) not in dropped])

    def write(self, orders: Sequence[Order]) -> list[Written]:
        """All texts, in order."""
        finished: dict[int, Written] = {}
        places = {id(order): place for place, order in enumerate(orders)}
        if len(places) < len(orders):
            raise ValueError("an order may occur only once")
        waiting = list(reversed(orders))
        while waiting or self._texts:
            while waiting and self.busy < self.rows:
                order = waiting.pop()
                written = self.add(order)
                if written is not None:
                    finished[places[id(order)]] = written
            finished |= {places[id(order)]: written for order, written in self.step()}
        return [finished[place] for place in range(len(orders))]

    def _keep(self, places: Sequence[int]) -> None:
        """Keep only the texts in these places, in ascending order, and close the gaps."""
        for target, origin in enumerate(places):
            self._llama.move(origin, target)
        self._texts = [self._texts[place] for place in places]

    def _continued(self, text: _Text, logits: Floats) -> Written | None:
        """Append the next token. Returns the text if it ends."""
        order = text.order
        token = next_token(logits, order.sampling, text.random)
        text.tokens.append(token)
        if order.logprobs:
            text.logprobs.append(log_probability(logits, token))
        if token in self.ends:
            return self._finished(text, self._decoded(text.tokens[:-1]), "stop", len(text.tokens) - 1)
        if order.stop:
            content = self._decoded(text.tokens)
            cut = min((place for word in order.stop if (place := content.find(word)) >= 0), default=-1)
            if cut >= 0:
                return self._finished(text, content[:cut], "stop", self._tokens_until(text.tokens, cut))
        if len(text.tokens) == order.max_tokens:
            return self._finished(text, self._decoded(text.tokens), "length", len(text.tokens))
        return None

    def _tokens_until(self, tokens: Sequence[int], cut: int) -> int:
        """How many tokens the first `cut` characters of a text take."""
        return next(count for count in range(len(tokens) + 1) if len(self._decoded(tokens[:count])) >= cut)

    def _finished(self, text: _Text, content: str, finish: Literal["stop", "length"], kept: int) -> Written:
        logprobs = tuple(text.logprobs[:kept]) if text.order.logprobs else None
        return Written(content, finish, tuple(text.tokens), logprobs)

    def _decoded(self, tokens: Sequence[int]) -> str:
        decoded: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return decoded
