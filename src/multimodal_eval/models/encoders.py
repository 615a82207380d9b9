"""What a metric asks of a model: the protocols, and opening a model by its name.

| protocol           | gives                                                 | default              |
|--------------------|-------------------------------------------------------|----------------------|
| `SentenceEncoder`  | a unit vector a text                                  | all-minilm-l6-v2     |
| `ImageTextEncoder` | unit vectors of pictures and texts in one space       | openai/clip-vit-base-patch32 |

An encoder is opened once a process and shared. Names are those of `mmeval ls resources`, a directory, or a model of the
Hugging Face hub (ORG/NAME) that was fetched or lies in its cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from multimodal_eval.models.lookup import ModelKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.clip.pictures import Picture

DEFAULT_SENTENCE_ENCODER = "all-minilm-l6-v2"
# Its main branch holds pickles alone; the weights as safetensors stand in this request.
DEFAULT_IMAGE_TEXT_ENCODER = "openai/clip-vit-base-patch32@refs/pr/15"


class SentenceEncoder(Protocol):
    """Texts to vectors."""

    label: str  # name and revision, and every setting that changes a number
    languages: frozenset[str]  # those it was made for

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row a text, L2-normalised; zeros for a text that holds nothing the encoder knows."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which of the texts are longer than what the encoder reads of them."""


SENTENCE_ENCODERS = ModelKind[SentenceEncoder]("multimodal_eval.models.sentences.by_name:find", kept=4)
sentence_encoder_label, check_sentence_encoder = SENTENCE_ENCODERS.label, SENTENCE_ENCODERS.check
open_sentence_encoder = SENTENCE_ENCODERS.open


class ImageTextEncoder(Protocol):
    """Pictures and texts to vectors that can be compared."""

    label: str  # name and revision, and every setting that changes a number

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """One row a picture, L2-normalised; NaN, and the picture's `fault`, where it could not be opened."""

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row a text, L2-normalised."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which of the texts are longer than what the encoder reads of them."""


IMAGE_TEXT_ENCODERS = ModelKind[ImageTextEncoder]("multimodal_eval.models.clip.by_name:find", kept=2)
image_text_encoder_label, check_image_text_encoder = IMAGE_TEXT_ENCODERS.label, IMAGE_TEXT_ENCODERS.check
open_image_text_encoder = IMAGE_TEXT_ENCODERS.open
