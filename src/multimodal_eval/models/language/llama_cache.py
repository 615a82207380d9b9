"""A llama model with a cache of keys and values: every token of a text is read once.

The cache is one buffer per layer for the keys and one for the values, with a row per text. onnxruntime writes into the
buffers in place. A text is read at once, into its row; then every step appends one token to several rows. Rows have
different lengths: the attention of a row reads the cached tokens of that row only. The logits of a row are the same to
the last bit for any other rows and any number of threads; a single row is computed as two, because onnxruntime uses a
different kernel for a single row. Within rounding, they equal those of reading the whole text again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.models.formats.onnx_graph import CONTRIB, Graph, open_session
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.language.llama import LONGEST, LlamaConfig, layers, logits, rotation_tables
from multimodal_eval.models.source import CONFIG, Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]

__all__ = ["HEAD_MULTIPLE", "CachedLlama"]

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
