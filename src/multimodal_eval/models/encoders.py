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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from multimodal_eval.models.lookup import ModelKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.clip.lazy_images import LazyImage

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
