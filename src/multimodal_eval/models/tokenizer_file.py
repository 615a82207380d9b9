"""Open a model's tokenizer.json with the tokenizers library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.runtime import tokenizers

if TYPE_CHECKING:
    from multimodal_eval.models.source import Model

FILE = "tokenizer.json"


def open_tokenizer(model: Model) -> Any:
    """The tokenizer of a model. A broken file is a ModelError: the library raises exceptions of every kind."""
    library = tokenizers()
    path = model.file(FILE)
    try:
        return library.Tokenizer.from_file(str(path))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as fault:  # noqa: BLE001 - the library raises nothing narrower, and a panic is not an Exception
        raise ModelError(f"{path} is not a tokenizer: {fault}") from None
