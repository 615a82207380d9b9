"""Any sentence-transformers model through torch, on CPU or CUDA: the extra `[torch]`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import ModelError
from multimodal_eval.core.optional import require
from multimodal_eval.models.sentences.bert import LONGEST
from multimodal_eval.models.source import Model
from multimodal_eval.resources.formats import UNSAFE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 64


def label_of(model: Model) -> str:
    """Name and revision; the last digits are torch's."""
    return f"{model.label}+torch"


def check(model: Model) -> None:
    """Whether the model and the packages are here, and none of its files could run code."""
    model.check()
    _refuse_code(model)
    require("sentence_transformers", extra="torch", purpose=f"the encoder {model.name!r}")


def _refuse_code(model: Model) -> None:
    """Some releases of the library import modules that lie in the folder, and open pickles, whatever they are told."""
    for path in sorted(model.folder.rglob("*")):
        if path.suffix in UNSAFE and not any(path.parent.glob("*.safetensors")):
            raise ModelError(f"{path} may run code when it is opened: convert it to safetensors")
    listed = model.folder / "modules.json"
    try:
        kinds = [str(entry["type"]) for entry in json.loads(listed.read_text("utf-8"))] if listed.is_file() else []
    except (ValueError, KeyError, TypeError) as fault:
        raise ModelError(f"{listed} cannot be read: {fault}") from None
    for kind in kinds:
        if not kind.startswith("sentence_transformers."):
            raise ModelError(f"{listed} names {kind!r}, which is no part of sentence-transformers: its code is not run")


class TorchSentences:
    """A sentence-transformers model. Its code comes from that library alone: none of the model's own is run."""

    def __init__(self, model: Model, languages: frozenset[str] = frozenset()) -> None:
        library = require("sentence_transformers", extra="torch", purpose=f"the encoder {model.name!r}")
        _refuse_code(model)
        model.verify()
        self.label, self.languages = label_of(model), languages
        self.model = library.SentenceTransformer(
            str(model.folder), trust_remote_code=False, local_files_only=True, model_kwargs={"use_safetensors": True}
        )
        if model.resource is not None:  # its files do not say how much of a text it reads
            self.model.max_seq_length = LONGEST

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text."""
        vectors: NDArray[np.float32] = self.model.encode(
            list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts have more tokens than are read."""
        longest = self.model.max_seq_length
        if longest is None:
            return [False] * len(texts)
        return [len(text) > longest - 2 and len(self.model.tokenizer(text)["input_ids"]) > longest for text in texts]
