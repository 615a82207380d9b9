"""Protocols of the encoders that metrics use, and functions that open an encoder by name.

| protocol           | returns                                               | default                      |
|--------------------|-------------------------------------------------------|------------------------------|
| `SentenceEncoder`  | one unit vector per text                              | all-minilm-l6-v2             |
| `TokenEncoder`     | one unit vector per token of a text                   | all-minilm-l6-v2             |
| `ImageTextEncoder` | unit vectors of images and texts in the same space    | openai/clip-vit-base-patch32 |

An encoder is opened once per process and shared. A name is one from `mmeval ls resources`, a directory, or a model of
the Hugging Face hub (ORG/NAME) that was fetched or is in the hub's cache.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from multimodal_eval.core.errors import ModelError, MultimodalEvalError
from multimodal_eval.resources.store import home

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.clip.lazy_images import LazyImage


# Look up models by name without loading them, and open each once per process.

_LONGEST_REASON = 300  # characters

T = TypeVar("T")


@contextmanager
def model_faults(name: str) -> Iterator[None]:
    """Turn whatever a broken model file causes, in this package or in a library, into a ModelError.

    The libraries raise exceptions of many kinds, and code written in Rust raises its panics as a BaseException.
    """
    try:
        yield
    except (MultimodalEvalError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as fault:
        reason = (str(fault).splitlines() or [""])[0][:_LONGEST_REASON]
        raise ModelError(
            f"the model {name!r} cannot be used: its files are broken or do not fit together "
            f"({type(fault).__name__}: {reason})"
        ) from fault


@dataclass(frozen=True)
class ModelEntry(Generic[T]):
    """A model's label, a check that raises if it is not on this machine, and a function that opens it."""

    label: str
    check: Callable[[], None]
    open: Callable[[], T]


class ModelKind(Generic[T]):
    """One kind of model. At most `max_open` models stay open.

    `finder` is the import path of a function `name -> ModelEntry`, which is imported on first use.
    """

    def __init__(self, finder: str, max_open: int) -> None:
        self._finder = finder
        self._opened = lru_cache(maxsize=max_open)(lambda name, _home: self._load(name))

    def find(self, name: str) -> ModelEntry[T]:
        """Look up a model without loading it."""
        finder = pkgutil.resolve_name(self._finder)
        with model_faults(name):
            entry: ModelEntry[T] = finder(name)
        return entry

    def label(self, name: str) -> str:
        """The model's label. Loads nothing; a model of the catalogue need not be on this machine."""
        return self.find(name).label

    def check(self, name: str) -> None:
        """Raise an `UnavailableError` that says how to get the model if it is not on this machine. Loads nothing."""
        entry = self.find(name)
        with model_faults(name):
            entry.check()

    def open(self, name: str) -> T:
        """The model with that name, shared by all callers."""
        return self._opened(name, str(home()))

    def _load(self, name: str) -> T:
        entry = self.find(name)
        with model_faults(name):
            return entry.open()

    def forget(self) -> None:
        """Close the open models, so that the next `open` loads them again."""
        self._opened.cache_clear()


DEFAULT_SENTENCE_ENCODER = "all-minilm-l6-v2"
# The main branch has only pickles; this pull request has the weights as safetensors.
DEFAULT_IMAGE_TEXT_ENCODER = "openai/clip-vit-base-patch32@refs/pr/15"


class SentenceEncoder(Protocol):
    """Encodes texts as vectors."""

    label: str  # name, revision, and every setting that changes a result
    languages: frozenset[str]  # the languages it supports

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, L2-normalised; zeros for a text without a word that the encoder knows."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the encoder reads."""


SENTENCE_ENCODERS = ModelKind[SentenceEncoder]("multimodal_eval.models.sentences.by_name:find", max_open=4)
sentence_encoder_label, check_sentence_encoder = SENTENCE_ENCODERS.label, SENTENCE_ENCODERS.check
open_sentence_encoder = SENTENCE_ENCODERS.open


@dataclass(frozen=True, slots=True)
class TextTokens:
    """The tokens of one text, with the special tokens that a model adds at its ends."""

    ids: Sequence[int]
    vectors: NDArray[np.float32]  # one row per token, L2-normalised
    is_cut: bool = False  # the text is longer than the encoder reads


class TokenEncoder(Protocol):
    """Encodes the tokens of texts as vectors."""

    label: str  # name, revision, and every setting that changes a result
    languages: frozenset[str]  # the languages it supports
    layers: int  # the last layer; 0 is the layer of the embeddings
    special: frozenset[int]  # the tokens at the ends of a text, such as [CLS] and [SEP]
    skips_unknown: bool  # whether words that it does not know are left out

    def token_ids(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The tokens of each text, without their vectors."""

    def encode(self, texts: Sequence[str], layer: int) -> list[TextTokens]:
        """The tokens of each text with their vectors after some layers."""


TOKEN_ENCODERS = ModelKind[TokenEncoder]("multimodal_eval.models.sentences.by_name:find_tokens", max_open=2)
open_token_encoder = TOKEN_ENCODERS.open


class ImageTextEncoder(Protocol):
    """Encodes images and texts as comparable vectors."""

    label: str  # name, revision, and every setting that changes a result

    def encode_images(self, images: Sequence[LazyImage]) -> NDArray[np.float32]:
        """One row per image, L2-normalised. An image that cannot be opened gets NaN, and its `fault` is set."""

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, L2-normalised."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the encoder reads."""


IMAGE_TEXT_ENCODERS = ModelKind[ImageTextEncoder]("multimodal_eval.models.clip.by_name:find", max_open=2)
image_text_encoder_label, check_image_text_encoder = IMAGE_TEXT_ENCODERS.label, IMAGE_TEXT_ENCODERS.check
open_image_text_encoder = IMAGE_TEXT_ENCODERS.open
