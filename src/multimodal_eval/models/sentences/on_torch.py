"""Any sentence-transformers model in torch, on CPU or CUDA. Needs the extra `[torch]`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import ModelError
from multimodal_eval.core.optional import require
from multimodal_eval.models.sentences.bert import MAX_TOKENS
from multimodal_eval.models.source import Model
from multimodal_eval.resources.formats import UNSAFE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 64


def label_of(model: Model) -> str:
    """Name and revision; `+torch` because the last digits differ."""
    return f"{model.label}+torch"


def check(model: Model) -> None:
    """Check that the model and the packages are available, and that no file of the model may run code."""
    model.check()
    _refuse_code(model)
    require("sentence_transformers", extra="torch", purpose=f"the encoder {model.name!r}")


def _refuse_code(model: Model) -> None:
    """Some releases of the library import modules from the folder and open pickles, regardless of their settings."""
    for path in sorted(model.folder.rglob("*")):
        if path.suffix in UNSAFE and not any(path.parent.glob("*.safetensors")):
            raise ModelError(f"{path} may run code when it is opened: convert it to safetensors")
    modules = model.folder / "modules.json"
    try:
        kinds = [str(entry["type"]) for entry in json.loads(modules.read_text("utf-8"))] if modules.is_file() else []
    except (ValueError, KeyError, TypeError) as fault:
        raise ModelError(f"{modules} cannot be read: {fault}") from None
    for kind in kinds:
        if not kind.startswith("sentence_transformers."):
            raise ModelError(f"{modules} names {kind!r}, which is not part of sentence-transformers and is not run")


class TorchSentences:
    """A sentence-transformers model. Only code of that library is run, none that comes with the model."""

    def __init__(self, model: Model, languages: frozenset[str] = frozenset()) -> None:
        library = require("sentence_transformers", extra="torch", purpose=f"the encoder {model.name!r}")
        _refuse_code(model)
        model.verify()
        self.label, self.languages = label_of(model), languages
        self.model = library.SentenceTransformer(
            str(model.folder), trust_remote_code=False, local_files_only=True, model_kwargs={"use_safetensors": True}
        )
        if model.resource is not None:  # its files do not state the limit
            self.model.max_seq_length = MAX_TOKENS

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per text."""
        vectors: NDArray[np.float32] = self.model.encode(
            list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""
        limit = self.model.max_seq_length
        if limit is None:
            return [False] * len(texts)
        return [len(text) > limit - 2 and len(self.model.tokenizer(text)["input_ids"]) > limit for text in texts]
