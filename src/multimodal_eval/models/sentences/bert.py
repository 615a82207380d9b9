"""Sentence-BERT models run by onnxruntime: the default encoder, all-MiniLM-L6-v2.

Equal to sentence-transformers within 1e-6. Texts are batched by their exact length, without padding, so that a text has
the same vector to the last bit alone and among others. `int8` quantises weights and activations while running
(dynamic quantisation): faster, less exact, and its scales couple the texts of a batch.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.batching import equal_lengths, side_by_side
from multimodal_eval.models.formats.onnx_graph import open_session
from multimodal_eval.models.sentences import bert_graph as bert
from multimodal_eval.models.source import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST = 256  # tokens that sentence-transformers reads with this family, where the model does not say otherwise
TOKENS_AT_ONCE = 512
MEAN = "pooling_mode_mean_tokens"


def can_run(model: Model) -> bool:
    """Whether the model is a BERT with mean pooling, as far as its files tell."""
    if model.config.get("model_type") != "bert" or model.config.get("hidden_act") != "gelu":
        return False
    if not all((model.folder / name).is_file() for name in ("model.safetensors", "tokenizer.json")):
        return False
    return _is_plain(model.folder / "modules.json") and _takes_the_mean(model)


def _is_plain(listed: Path) -> bool:
    """Whether nothing but pooling and normalising follows the transformer."""
    try:
        kinds = [str(entry["type"]).rpartition(".")[2] for entry in json.loads(listed.read_text("utf-8"))]
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise ModelError(f"{listed} cannot be read: {fault}") from None
    return kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])


def _takes_the_mean(model: Model) -> bool:
    if not (model.folder / "1_Pooling" / "config.json").is_file():
        return True
    modes = {
        key for key, on in model.json("1_Pooling/config.json").items() if key.startswith("pooling_mode_") and on is True
    }
    return modes == {"pooling_mode_mean_tokens"}


def check(model: Model) -> None:
    """Whether the model is here; of a directory also whether its files fit together. Weights are not read."""
    model.check()
    if model.resource is None:
        _tokenizer(model)
        _graph(model, int8=False)


def _tokenizer(model: Model) -> Any:
    from tokenizers import Tokenizer

    path = model.file("tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as fault:  # noqa: BLE001 - the library raises nothing narrower
        raise ModelError(f"{path} is no tokenizer: {fault}") from None
    tokenizer.no_padding()
    tokenizer.enable_truncation(_longest(model))
    return tokenizer


def _graph(model: Model, *, int8: bool) -> bytes:
    try:
        return bert.sentence_bert(model.weights, model.config, int8=int8)
    except KeyError as lacking:
        raise ModelError(f"the model {model.name!r} lacks the setting {lacking} in its config.json") from None


def label_of(model: Model, *, int8: bool) -> str:
    """Name, revision, and the number format where it is not float32."""
    return f"{model.label}{'+int8' if int8 else ''}"


class SentenceBert:
    """A BERT with mean pooling and L2 normalisation."""

    def __init__(self, model: Model, languages: frozenset[str], *, int8: bool = False) -> None:
        self.label, self.languages = label_of(model, int8=int8), languages
        self.tokenizer, self.longest = _tokenizer(model), _longest(model)
        graph = _graph(model, int8=int8)
        self.width = int(model.config["hidden_size"])
        self.session = open_session(graph, model.weights.path.parent, 1)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text."""
        import numpy as np

        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(ids), self.width), np.float32)

        def run(job: tuple[list[int], list[Sequence[int]]]) -> None:
            positions, rows = job
            vectors[positions] = self.session.run(None, {"ids": np.array(rows, np.int64)})[0][: len(positions)]

        side_by_side(run, equal_lengths(ids, tokens=TOKENS_AT_ONCE))
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts have more tokens than are read. A token has at least one letter: short texts need no look."""
        return [_letters(text) > self.longest - 2 and bool(self.tokenizer.encode(text).overflowing) for text in texts]


def _letters(text: str) -> int:
    """How many there are when each is taken apart, as the tokenizer does with accents and Hangul."""
    return len(text) if text.isascii() else len(unicodedata.normalize("NFD", text))


def _longest(model: Model) -> int:
    settings = model.folder / "sentence_bert_config.json"
    said: Any = model.json(settings.name).get("max_seq_length") if settings.is_file() else None
    most = model.config.get("max_position_embeddings")
    if not isinstance(most, int):
        raise ModelError(f"the model {model.name!r} lacks the setting 'max_position_embeddings' in its config.json")
    return min(int(said or LONGEST), most)
