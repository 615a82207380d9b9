"""Sentence-BERT models run by onnxruntime: the default encoder, all-MiniLM-L6-v2.

Equal to sentence-transformers within 1e-6. Texts are batched by their exact length, without padding, so that a text has
the same vector to the last bit alone and among others. `int8` quantises weights and activations while running
(dynamic quantisation): faster, less exact, and its scales couple the texts of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.models import bert
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.onnx_graph import open_session
from multimodal_eval.models.source import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST = 256  # tokens that sentence-transformers reads with this family, where the model does not say otherwise
TOKENS_AT_ONCE = 512


def can_run(model: Model) -> bool:
    """Whether the model is a BERT with mean pooling, as far as its files tell."""
    if model.config.get("model_type") != "bert" or model.config.get("hidden_act") != "gelu":
        return False
    if not (model.folder / "model.safetensors").is_file() or not (model.folder / "tokenizer.json").is_file():
        return False
    pooling = model.folder / "1_Pooling" / "config.json"
    return not pooling.is_file() or bool(model.json("1_Pooling/config.json").get("pooling_mode_mean_tokens"))


def label_of(model: Model, *, int8: bool) -> str:
    """Name, revision, and the number format where it is not float32."""
    return f"{model.label}{'+int8' if int8 else ''}"


class SentenceBert:
    """A BERT with mean pooling and L2 normalisation."""

    def __init__(self, model: Model, languages: frozenset[str], *, int8: bool = False) -> None:
        from tokenizers import Tokenizer

        self.label, self.languages = label_of(model, int8=int8), languages
        self.tokenizer = Tokenizer.from_file(str(model.file("tokenizer.json")))
        self.tokenizer.no_padding()
        self.longest = _longest(model)
        self.tokenizer.enable_truncation(self.longest)
        self.width = int(model.config["hidden_size"])
        self.session = open_session(
            bert.sentence_bert(model.weights, model.config, int8=int8), model.weights.path.parent
        )

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text."""
        import numpy as np

        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(ids), self.width), np.float32)
        for positions, rows in equal_lengths(ids, tokens=TOKENS_AT_ONCE):
            out = self.session.run(None, {"ids": np.array(rows, np.int64)})[0]
            vectors[positions] = out[: len(positions)]
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts have more tokens than are read. A token has at least one letter: short texts need no look."""
        return [len(text) > self.longest - 2 and bool(self.tokenizer.encode(text).overflowing) for text in texts]


def _longest(model: Model) -> int:
    settings = model.folder / "sentence_bert_config.json"
    said: Any = model.json(settings.name).get("max_seq_length") if settings.is_file() else None
    return min(int(said or LONGEST), int(model.config["max_position_embeddings"]))
