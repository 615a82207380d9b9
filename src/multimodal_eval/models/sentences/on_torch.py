"""Any sentence-transformers model in torch, on CPU or CUDA. Needs the extra `[torch]`.

A BERT with mean pooling is run by `bert_torch.py` instead, which is faster.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ModelError
from multimodal_eval.core.optional import require
from multimodal_eval.models.batching import by_tokens
from multimodal_eval.models.foreign_folder import check_settings
from multimodal_eval.models.sentences.bert import MAX_TOKENS
from multimodal_eval.models.source import Model
from multimodal_eval.models.torch_device import Format, halving, label_of, place
from multimodal_eval.resources.formats import UNSAFE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LETTERS_PER_BATCH = {"cuda": 1 << 18, "cpu": 1 << 13}  # about four times as many as tokens
_TINY = 1e-12  # as in torch's `normalize`


def check(model: Model) -> None:
    """Check that the model and the packages are available, and that no file of the model may run code."""
    model.check()
    refuse_code(model)
    require("sentence_transformers", extra="torch", purpose=f"the encoder {model.name!r}")
    place(f"the encoder {model.name!r}")


def refuse_code(model: Model) -> None:
    """Some releases of the library import modules from the folder and open pickles, regardless of their settings."""
    if model.resource is None:
        check_settings(model, ["", *(path.name for path in model.folder.iterdir() if path.is_dir())])  # of its modules
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

    def __init__(
        self, model: Model, languages: frozenset[str] = frozenset(), number_format: Format = "float32"
    ) -> None:
        library = require("sentence_transformers", extra="torch", purpose=f"the encoder {model.name!r}")
        refuse_code(model)
        model.verify()
        self.label, self.languages = label_of(model, number_format), languages
        self.placed = place(f"the encoder {model.name!r}", number_format)
        self.model = library.SentenceTransformer(
            str(model.folder),
            device=str(self.placed.device),
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True, "torch_dtype": self.placed.dtype},
        ).to(self.placed.dtype)
        if model.resource is not None:  # its files do not state the limit
            self.model.max_seq_length = MAX_TOKENS

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per text."""
        import numpy as np

        order: list[int] = []
        pieces: list[Any] = []

        def run(batch: Sequence[int]) -> None:
            with self.placed.inference():
                vectors = self.model.encode(
                    [texts[position] for position in batch],
                    batch_size=len(batch),
                    convert_to_tensor=True,
                    show_progress_bar=False,
                ).float()
                pieces.append(vectors / vectors.norm(dim=1, keepdim=True).clamp_min(_TINY))
            order.extend(batch)

        lengths = [len(text) + 1 for text in texts]
        for batch in by_tokens(lengths, tokens=LETTERS_PER_BATCH[self.placed.device.type], padded=True):
            halving(self.placed.torch, run, batch)
        if not pieces:
            return np.empty((0, 0), np.float32)
        computed = self.placed.torch.cat(pieces).cpu().numpy()
        vectors: NDArray[np.float32] = np.empty_like(computed)
        vectors[order] = computed
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""
        limit = self.model.max_seq_length
        if limit is None:
            return [False] * len(texts)
        return [len(text) > limit - 2 and len(self.model.tokenizer(text)["input_ids"]) > limit for text in texts]
