"""Image-text encoders by name: CLIP and SigLIP run by onnxruntime, or on a GPU through the extra `[torch]`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from multimodal_eval.models.cache import VectorCache
from multimodal_eval.models.clip.pictures import Picture
from multimodal_eval.models.encoders import ImageTextEncoder
from multimodal_eval.models.lookup import ModelEntry
from multimodal_eval.models.source import TORCH, find_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


def find(name: str) -> ModelEntry[ImageTextEncoder]:
    """Look an encoder up without loading it. `torch:NAME` asks for torch, which takes a GPU where there is one."""
    if name.startswith(TORCH):
        from multimodal_eval.models.clip import on_torch as clip_torch

        model = find_model(name.removeprefix(TORCH))
        return ModelEntry(
            clip_torch.label_of(model), model.check, lambda: CachedImageTextEncoder(clip_torch.TorchClip.of(model))
        )
    from multimodal_eval.models.clip import encoder as clip

    model = find_model(name)
    return ModelEntry(model.label, partial(clip.check, model), lambda: CachedImageTextEncoder(clip.OnnxClip(model)))


class CachedImageTextEncoder:
    """Repeated pictures and texts are encoded once; a picture that was ever encoded is not even opened again."""

    def __init__(self, inner: ImageTextEncoder) -> None:
        self.inner, self.label = inner, inner.label
        self.cache = VectorCache(inner.label)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One row a text."""
        contents = [b"text:" + text.encode("utf-8", "surrogatepass") for text in texts]
        return self.cache.vectors(contents, lambda missing: self.inner.encode_texts([texts[i] for i in missing]))

    def encode_images(self, pictures: Sequence[Picture]) -> Vectors:
        """One row a picture; NaN, and the picture's `fault`, where it could not be opened."""
        import numpy as np

        contents = [b"image:" + picture.key for picture in pictures]
        rows = self.cache.rows(contents, lambda missing: self.inner.encode_images([pictures[i] for i in missing]))
        vectors = np.full((len(rows), max(map(len, rows), default=0)), np.nan, np.float32)
        for place, row in enumerate(rows):  # where no picture could be opened, the rows of NaN have no known width
            vectors[place, : len(row)] = row
        faults = {picture.key: picture.fault for picture in pictures if picture.fault}
        for picture in pictures:  # only the first of equal pictures was opened
            picture.fault = faults.get(picture.key)
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts are longer than what the encoder reads."""
        return self.inner.are_cut(texts)
