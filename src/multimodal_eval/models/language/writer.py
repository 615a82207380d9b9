"""Write texts with a llama model, several at a time.

Texts join and leave between two steps: a new one takes a free row of the cache, and one that has ended gives its row
back. A text is the same in any company, because the rows do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.formats.onnx_graph import CONTRIB, Graph, open_session
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.language.llama import LONGEST, LlamaConfig, can_run, layers, logits, rotation_tables
from multimodal_eval.models.runtime import open_tokenizer
from multimodal_eval.models.source import CONFIG, Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Logits = NDArray[np.floating]
    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]

__all__ = [
    "HEAD_MULTIPLE",
    "CachedLlama",
    "LlamaWriter",
    "Order",
    "Sampling",
    "Written",
    "can_write",
    "log_probability",
    "next_token",
]


# Choose the next token from its logits: the most likely one, or a random one with a seed.


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. A temperature of 0 takes the most likely one; of equal ones, that with the lowest id."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0  # each text gets its own

    def generator(self) -> np.random.Generator:
        """The random numbers of a text: one per token."""
        import numpy as np

        return np.random.default_rng(self.seed)


def next_token(logits: Logits, sampling: Sampling, random: np.random.Generator) -> int:
    """The next token.

    The distribution is softmax(logits / temperature), restricted to the smallest set of most likely tokens whose
    probabilities sum to at least `top_p`.
    """
    import numpy as np

    if sampling.temperature == 0:
        return int(np.argmax(logits))
    scaled = logits.astype(np.float64) / sampling.temperature
    weights = np.exp(scaled - scaled.max())
    if sampling.top_p >= 1:
        return _drawn(np.cumsum(weights), random.random())
    order = np.argsort(-weights, kind="stable")
    sums = np.cumsum(weights[order])
    kept = int(np.searchsorted(sums, sampling.top_p * sums[-1])) + 1
    return int(order[_drawn(sums[:kept], random.random())])


def _drawn(sums: NDArray[np.float64], draw: float) -> int:
    """The first place whose cumulative weight exceeds the draw from [0, 1)."""
    import numpy as np

    return min(int(np.searchsorted(sums, draw * sums[-1], side="right")), len(sums) - 1)


def log_probability(logits: Logits, token: int) -> float:
    """The natural logarithm of the token's probability under softmax(logits), whatever the temperature is."""
    import numpy as np

    exact = logits.astype(np.float64)
    top = exact.max()
    return float(exact[token] - top - np.log(np.exp(exact - top).sum()))


# A llama model with a cache of keys and values: every token of a text is read once.
#
# The cache is one buffer per layer for the keys and one for the values, with a row per text. onnxruntime writes into
# the buffers in place. A text is read at once, into its row; then every step appends one token to several rows. Rows
# have different lengths: the attention of a row reads the cached tokens of that row only. The logits of a row are the
# same to the last bit for any other rows and any number of threads; a single row is computed as two, because
# onnxruntime uses a different kernel for a single row. Within rounding, they equal those of reading the whole text
# again.

HEAD_MULTIPLE = 16  # onnxruntime's attention with a cache needs heads of such a width

MIN_ROWS = 2
_FIRST_CAPACITY = 256  # tokens per row


class CachedLlama:
    """Computes the logits of the next token. A row is a text whose keys and values are cached."""

    def __init__(self, model: Model, rows: int, threads: int = 1) -> None:
        config = model.read(CONFIG, LlamaConfig)
        self.rows, self.config = max(rows, MIN_ROWS), config
        self.longest = min(config.max_position_embeddings, LONGEST)
        folder = model.weights.path.parent  # links are resolved
        self._body = open_session(_body(model.weights, config, self.longest), folder, threads, spin=False)
        self._head = open_session(_head(model.weights, config), folder, threads, spin=False)
        self._buffers: list[Floats] = []
        self._capacity = 0
        self.lengths = [0] * self.rows  # cached tokens per row
        self.reserve(_FIRST_CAPACITY)

    def reserve(self, tokens: int) -> None:
        """Make room for rows of this length."""
        import numpy as np

        if tokens <= self._capacity:
            return
        capacity = min(max(tokens, 2 * self._capacity), self.longest)
        heads = self.config.num_key_value_heads or self.config.num_attention_heads
        shape = (self.rows, heads, capacity, self.config.head_width)
        grown = [np.zeros(shape, np.float32) for _ in range(2 * self.config.num_hidden_layers)]
        for old, new in zip(self._buffers, grown, strict=False):
            new[:, :, : self._capacity] = old
        self._buffers, self._capacity = grown, capacity

    def read(self, row: int, ids: Sequence[int]) -> Floats:
        """Read a text of at least one token into a row. Returns the logits after its last token."""
        import numpy as np

        self.reserve(len(ids))
        states = self._run(slice(row, row + 1), np.array([ids], np.int64), [len(ids)])
        self.lengths[row] = len(ids)
        after: Floats = self._logits(states[-1:])[0]
        return after

    def step(self, ids: Sequence[int]) -> Floats:
        """Append one token to each of the first rows. Returns the logits after each."""
        import numpy as np

        count = len(ids)
        self.reserve(max(self.lengths[:count]) + 1)
        computed = max(count, MIN_ROWS)
        if computed > count:  # a copy of the first row, whose buffers are free
            self._copy(0, count)
        lengths = [length + 1 for length in self.lengths[:computed]]
        fed = np.array([*ids, *[ids[0]] * (computed - count)], np.int64)[:, None]
        states = self._run(slice(0, computed), fed, lengths)
        self.lengths[:count] = lengths[:count]
        return self._logits(states)[:count]

    def move(self, origin: int, target: int) -> None:
        """Move a row to a place that is free."""
        if origin != target:
            self._copy(origin, target)

    def _copy(self, origin: int, target: int) -> None:
        length = self.lengths[origin]
        for buffer in self._buffers:
            buffer[target, :, :length] = buffer[origin, :, :length]
        self.lengths[target] = length

    def _run(self, rows: slice, ids: Integers, lengths: Sequence[int]) -> Floats:
        """The states of the ids, which become the last tokens of the rows. `lengths` are the new lengths."""
        import numpy as np

        binding = self._body.io_binding()
        inputs: dict[str, NDArray[Any]] = {
            "ids": ids,
            "last": np.array(lengths, np.int32) - np.int32(1),
            "longest": np.array(max(lengths), np.int32),
        }
        for name, value in inputs.items():
            binding.bind_cpu_input(name, value)
        for number, buffer in enumerate(self._buffers):
            part = buffer[rows]  # contiguous
            binding.bind_input(f"past{number}", "cpu", 0, np.float32, part.shape, part.ctypes.data)
            binding.bind_output(f"present{number}", "cpu", 0, np.float32, part.shape, part.ctypes.data)
        binding.bind_output("states", "cpu")
        self._body.run_with_iobinding(binding)
        states: Floats = binding.get_outputs()[-1].numpy()
        return states

    def _logits(self, states: Floats) -> Floats:
        import numpy as np

        rows = states if len(states) >= MIN_ROWS else np.repeat(states, MIN_ROWS, 0)
        computed: Floats = self._head.run(None, {"states": rows})[0]
        return computed[: len(states)]


def _body(weights: SafetensorsFile, config: LlamaConfig, longest: int) -> bytes:
    """The states of new tokens, given the cached keys and values of those before them.

    Inputs: `ids` (rows, length), `last` (rows), the position of each row's last token, `longest`, the length of the
    longest row, and `past0` … (rows, key heads, capacity, head), keys and values alternately. Outputs: `present0` …,
    which share the memory of the inputs, and `states` (rows * length, width).
    """
    graph = Graph(weights)
    heads, head = config.num_attention_heads, config.head_width
    key_heads = config.num_key_value_heads or heads
    folded = graph.op("Concat", graph.op("Shape", "ids"), graph.integers(-1), axis=0)
    tables = [graph.constant(table) for table in rotation_tables(head, config.rotation_base, longest)]
    presents: dict[str, str] = {}

    def attention(layer: int, q: str, k: str, v: str) -> str:
        pasts = f"past{2 * layer}", f"past{2 * layer + 1}"
        inputs = (q, k, v, *pasts, "last", "longest", *tables)
        mixed, *cached = graph.ops(
            "GroupQueryAttention", 3, *inputs, domain=CONTRIB, num_heads=heads, kv_num_heads=key_heads, do_rotary=1
        )
        presents.update({f"present{2 * layer + place}": name for place, name in enumerate(cached)})
        return mixed

    states = layers(graph, config, folded, attention)
    cache: list[int | str] = ["rows", key_heads, "capacity", head]
    inputs: dict[str, tuple[str, list[int | str]]] = {
        "ids": ("INT64", ["rows", "length"]),
        "last": ("INT32", ["rows"]),
        "longest": ("INT32", []),
        **{f"past{number}": ("FLOAT", cache) for number in range(2 * config.num_hidden_layers)},
    }
    return graph.model(inputs, {**presents, "states": states})


def _head(weights: SafetensorsFile, config: LlamaConfig) -> bytes:
    """Input: `states` (rows, width). Output: `logits` (rows, vocabulary)."""
    graph = Graph(weights)
    return graph.model({"states": ("FLOAT", ["rows", config.hidden_size])}, {"logits": logits(graph, config)})


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
