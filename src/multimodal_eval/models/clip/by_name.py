"""Find image-text encoders by name: CLIP and SigLIP, run by onnxruntime or by torch (the extra `[torch]`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from multimodal_eval.models import torch_device
from multimodal_eval.models.cache import VectorCache
from multimodal_eval.models.clip.lazy_images import LazyImage, cached_content
from multimodal_eval.models.clip.preprocessing import Decoding
from multimodal_eval.models.encoders import ImageTextEncoder, ModelEntry, model_faults
from multimodal_eval.models.source import find_model, parse_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


def find(name: str) -> ModelEntry[ImageTextEncoder]:
    """Look up an encoder without loading it. `torch:NAME`, also with `+bf16` or `+nvjpeg`, and `NAME+int8` run it in
    another way.
    """
    parsed = parse_name(name, sees_images=True)
    model = find_model(parsed.base)
    parsed.refuse_format(runs_in_torch=parsed.in_torch)
    if parsed.in_torch:
        from multimodal_eval.models.clip import on_torch as clip_torch

        format_, nvjpeg = parsed.torch_format, parsed.decoded_on_gpu
        return ModelEntry(
            torch_device.label_of(model, format_, nvjpeg=nvjpeg),
            partial(clip_torch.check, model, nvjpeg=nvjpeg),
            lambda: CachedImageTextEncoder(clip_torch.TorchClip.of(model, format_, nvjpeg=nvjpeg)),
        )
    from multimodal_eval.models.clip import encoder as clip

    int8 = parsed.number_format == "int8"  # not cached: a vector depends on the other images of its batch
    return ModelEntry(
        model.onnx_label(int8=int8),
        partial(clip.check, model, int8=int8),
        lambda: CachedImageTextEncoder(clip.OnnxClip(model, int8=int8), cached=not int8),
    )


class CachedImageTextEncoder:
    """Encodes each image and text once and caches the vectors. A cached image is not opened again."""

    def __init__(self, inner: ImageTextEncoder, *, cached: bool = True) -> None:
        self.inner, self.label = inner, inner.label
        self.cache = VectorCache(inner.label, on=cached)
        self.is_concurrent: bool = getattr(inner, "is_concurrent", False)  # two threads may use it at the same time

    @property
    def decoding(self) -> Decoding | None:
        """How other processes can prepare images for this encoder; None if they cannot."""
        inner: Any = self.inner
        cache = self.cache
        if not hasattr(inner, "hand_over"):
            return None
        return Decoding(inner.hand_over, inner.receive, lambda: cache.readable_path, getattr(inner, "pin", None))

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One row per text."""
        contents = [b"text:" + text.encode("utf-8", "surrogatepass") for text in texts]
        return self.cache.vectors(contents, lambda missing: self._texts([texts[i] for i in missing]))

    def encode_images(self, images: Sequence[LazyImage]) -> Vectors:
        """One row per image. An image that cannot be opened gets NaN, and its `fault` is set."""
        contents = [cached_content(image.key) for image in images]
        vectors = self.cache.vectors(contents, lambda missing: self._images([images[i] for i in missing]))
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
