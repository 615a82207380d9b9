"""The files of a spaCy pipeline, as the native parser takes them.

They are read with msgspec and NumPy alone. spaCy is not needed, and nothing of the files is executed. Only the layout
of spaCy's small pipelines (3.x) is supported; another one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval._native import DependencyParser
from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.text.parsing.word_features import FIXED_KEYS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

ROOT = "ROOT"
_LIFTED = "||"  # "dobj||xcomp": the word belongs to the nearest xcomp below its head


@dataclass(frozen=True, slots=True)
class OpenedParser:
    """The native parser, with the names of its tags and labels by number."""

    native: DependencyParser
    tags: tuple[str, ...]
    labels: tuple[str, ...]


class _Layer(msgspec.Struct):
    index: int
    name: str


class _Network(msgspec.Struct):
    """A network as thinc stores it: layers with their arrays and attributes."""

    nodes: list[_Layer]
    attrs: list[dict[str, bytes]]
    params: list[dict[str, Any]]

    def arrays(self, name: str, *keys: str) -> list[tuple[Floats, ...]]:
        """The named arrays of all layers with this name, in the order of the file."""
        return [
            tuple(_array(self.params[layer.index][key]) for key in keys) for layer in self.nodes if layer.name == name
        ]

    def attribute(self, name: str, key: str) -> list[int]:
        """An attribute of all layers with this name."""
        return [
            msgspec.msgpack.decode(self.attrs[layer.index][key], type=int) for layer in self.nodes if layer.name == name
        ]


def read_parser(folder: Path) -> OpenedParser:
    """The parser in a folder with the files of `mmeval fetch en-core-web-sm`."""
    try:
        return _read_parser(folder)
    except (msgspec.MsgspecError, json.JSONDecodeError, KeyError, IndexError, ValueError, TypeError) as fault:
        raise UnavailableError(f"the parser in {folder} cannot be read: {fault}") from None


def _read_parser(folder: Path) -> OpenedParser:
    vectors, tags, steps = (
        msgspec.msgpack.decode((folder / f"{name}.model").read_bytes(), type=_Network)
        for name in ("tok2vec", "tagger", "parser")
    )
    tables = [
        (rows, seed)
        for (rows,), seed in zip(vectors.arrays("hashembed", "E"), vectors.attribute("hashembed", "seed"), strict=True)
    ]
    (mix, *convolutions) = [
        (weights, bias, gain, shift)
        for (weights, bias), (gain, shift) in zip(
            vectors.arrays("maxout", "W", "b"), vectors.arrays("layernorm", "G", "b"), strict=True
        )
    ]
    ((tag_weights, tag_bias),) = tags.arrays("softmax", "W", "b")
    ((feature_weights, feature_bias, absent),) = steps.arrays("precomputable_affine", "W", "b", "pad")
    by_width = {weights.shape[1]: (weights, bias) for weights, bias in steps.arrays("linear", "W", "b")}
    names = _step_names(folder / "parser.moves")
    labels = tuple(dict.fromkeys([ROOT, *(part for _, label in names for part in label.split(_LIFTED))]))
    numbers = {label: number for number, label in enumerate(labels)}
    native = DependencyParser(
        tables=tables,
        mix=mix,
        convolutions=convolutions,
        tagger=(tag_weights, tag_bias),
        narrow=by_width[mix[0].shape[0]],
        features=(feature_weights, feature_bias, absent),
        scores=by_width[feature_weights.shape[1]],
        steps=[_step(move, label, numbers) for move, label in names],
        root_label=numbers[ROOT],
        norms=_norms(folder / "lookups.bin"),
        fixed_keys=FIXED_KEYS,
    )
    return OpenedParser(native, tuple(json.loads((folder / "tagger.cfg").read_bytes())["labels"]), labels)


def _step_names(moves: Path) -> list[tuple[int, str]]:
    """The steps in the order of the network's outputs: by move, then by descending frequency of the label."""
    stored = msgspec.msgpack.decode(moves.read_bytes(), type=dict[str, Any])
    counts: Mapping[str, Mapping[str, int]] = json.loads(stored["moves"])
    return [
        (int(move), label)
        for move in sorted(counts, key=int)
        for label, _ in sorted(counts[move].items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
    ]


def _step(move: int, label: str, numbers: Mapping[str, int]) -> tuple[int, int, int]:
    plain, _, lifted = label.partition(_LIFTED)
    return move, numbers[plain], numbers[lifted] if lifted else -1


def _norms(path: Path) -> dict[int, str]:
    tables = msgspec.msgpack.decode(path.read_bytes(), type=dict[str, dict[int, str]])
    return tables.get("lexeme_norm", {})


def _array(stored: Mapping[Any, Any]) -> Floats:
    """An array as srsly stores it: shape, type and bytes."""
    import numpy as np

    entry = {key.decode() if isinstance(key, bytes) else key: value for key, value in stored.items()}
    shape: Sequence[int] = entry["shape"]
    kind = entry["type"]
    if (kind.decode() if isinstance(kind, bytes) else kind) != "<f4":
        raise ValueError(f"an array must consist of 32-bit numbers. Got {kind!r} instead.")
    return np.ascontiguousarray(np.frombuffer(entry["data"], dtype="<f4").reshape(tuple(shape)), dtype=np.float32)
