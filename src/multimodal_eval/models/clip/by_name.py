"""Find image-text encoders by name: CLIP and SigLIP, run by onnxruntime or by torch (the extra `[torch]`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from multimodal_eval.models.cache import VectorCache
from multimodal_eval.models.clip.lazy_images import LazyImage
from multimodal_eval.models.encoders import ImageTextEncoder
from multimodal_eval.models.lookup import ModelEntry, model_faults
from multimodal_eval.models.source import TORCH, find_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


def find(name: str) -> ModelEntry[ImageTextEncoder]:
    """Look up an encoder without loading it. `torch:NAME` runs it in torch, on a GPU if there is one."""
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
    """Encodes each image and text once and caches the vectors. A cached image is not opened again."""

    def __init__(self, inner: ImageTextEncoder) -> None:
        self.inner, self.label = inner, inner.label
        self.cache = VectorCache(inner.label)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One row per text."""
        contents = [b"text:" + text.encode("utf-8", "surrogatepass") for text in texts]
        return self.cache.vectors(contents, lambda missing: self._texts([texts[i] for i in missing]))

    def encode_images(self, images: Sequence[LazyImage]) -> Vectors:
        """One row per image. An image that cannot be opened gets NaN, and its `fault` is set."""
        import numpy as np

        contents = [b"image:" + image.key for image in images]
        rows = self.cache.rows(contents, lambda missing: self._images([images[i] for i in missing]))
        vectors = np.full((len(rows), max(map(len, rows), default=0)), np.nan, np.float32)
        for position, row in enumerate(rows):  # if no image can be opened, the rows of NaN have no known width
            vectors[position, : len(row)] = row
        faults = {image.key: image.fault for image in images if image.fault}
        for image in images:  # only the first of several equal images was opened
            image.fault = faults.get(image.key)
        return vectors

    def _texts(self, texts: list[str]) -> Vectors:
        with model_faults(self.label):
            return self.inner.encode_texts(texts)

    def _images(self, images: list[LazyImage]) -> Vectors:
        with model_faults(self.label):
            return self.inner.encode_images(images)

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the encoder reads."""
        with model_faults(self.label):
            return self.inner.are_cut(texts)
