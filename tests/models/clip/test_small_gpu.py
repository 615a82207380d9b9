"""A GPU whose memory is not enough: batches are halved, and an image that does not fit alone is an error of its sample.

The towers raise what torch raises on a GPU; everything else runs as it is, on the CPU.
"""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from multimodal_eval.core.errors import ImageError
from multimodal_eval.core.metric import configured
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.image_reader import images_of
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.models.clip import by_name
from multimodal_eval.models.clip import on_torch as clip_torch
from multimodal_eval.models.clip.lazy_images import LazyImage
from multimodal_eval.models.source import find_model
from tests.golden.clip.images import TINY_CLIP, golden_image
from tests.models.clip.decoder_of_jpeg import ByPillow, jpeg_file

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
pytest.importorskip("transformers", reason="the extra [torch] is not installed")
pytestmark = pytest.mark.torch

SIZES = [(40, 30) if number % 3 else (31, 47) for number in range(25)]


class SmallMemory:
    """Features of at most `most` images at once, and of no image that has one colour only."""

    def __init__(self, features, most):
        self.features, self.most = features, most
        self.tried, self.computed = [], 0

    def __call__(self, batch):
        self.tried.append(len(batch))
        if len(batch) > self.most or (batch.flatten(2).std(dim=2) == 0).all(dim=1).any():
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.\nGPU 0 has …")
        self.computed += len(batch)
        return self.features(batch)


@pytest.fixture
def encoder():
    return clip_torch.TorchClip.of(find_model(str(TINY_CLIP)))


def shrink(encoder, most):
    encoder.image_features = SmallMemory(encoder.image_features, most)
    return encoder.image_features


def lazy_images():
    return [LazyImage(bytes([n]), lambda n=n, size=size: golden_image(n, size)) for n, size in enumerate(SIZES)]


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_batches_of_images_are_halved(encoder, most):
    expected = encoder.encode_images(lazy_images())
    memory = shrink(encoder, most)
    images = lazy_images()
    vectors = encoder.encode_images(images)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert memory.computed == len(images)  # each once
    assert max(memory.tried) > most  # it was tried together first
    assert not any(image.fault for image in images)
    assert len({row.tobytes() for row in vectors.round(3)}) == len(images)


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_batches_of_decoded_files_are_halved_and_one_that_does_not_fit_gets_a_fault(encoder, most):
    parts = encoder.towers, encoder.preprocess, encoder.texts, encoder.placed, encoder.label
    encoder = clip_torch.TorchClip(*parts, ByPillow())
    white = io.BytesIO()
    Image.new("RGB", (40, 30), "white").save(white, "JPEG")
    contents = [*map(jpeg_file, range(12)), white.getvalue()]
    with images_of(contents) as images:
        expected = encoder.encode_images(images)
    memory = shrink(encoder, most)
    with images_of(contents) as images:
        vectors = encoder.encode_images(images)
        assert [bool(image.fault) for image in images] == [False] * 12 + [True]
    np.testing.assert_allclose(vectors[:12], expected[:12], atol=1e-6)
    assert np.isnan(vectors[12]).all()
    assert memory.computed == 12


def test_an_image_that_does_not_fit_alone_gets_a_fault_and_the_others_their_vectors(encoder):
    expected = encoder.encode_images(lazy_images())
    memory = shrink(encoder, 4)
    images = lazy_images()
    images[4] = LazyImage(b"white", lambda: Image.new("RGB", (40, 30), "white"))

    def broken():
        raise ImageError("cut off")

    images[11] = LazyImage(b"broken", broken)
    vectors = encoder.encode_images(images)
    assert images[4].fault == (
        "a single input does not fit into the memory of the GPU: CUDA out of memory. Tried to allocate 20.00 MiB."
    )
    assert images[11].fault == "cut off"
    assert np.isnan(vectors[[4, 11]]).all()
    others = [n for n in range(len(images)) if n not in (4, 11)]
    np.testing.assert_allclose(vectors[others], expected[others], atol=1e-6)
    assert memory.computed == len(others)
    assert all(images[n].fault is None for n in others)


def test_no_image_fits(encoder):
    shrink(encoder, 0)
    images = lazy_images()
    assert np.isnan(encoder.encode_images(images)).all()
    assert all("does not fit" in image.fault for image in images)


def test_one_sample_is_an_error_and_the_others_are_scored(encoder, tmp_path, monkeypatch):
    """Through the metric, which shares the encoder, its cache and its reader of images."""
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    samples = []
    for number, size in enumerate(SIZES[:8]):
        image = Image.new("RGB", size, "white") if number == 5 else golden_image(number, size)
        image.save(tmp_path / f"{number}.png")
        samples.append(Sample(id=str(number), image=str(tmp_path / f"{number}.png"), generated_answer=f"cat {number}"))
    metric = configured(resolve("clip_score"), {"model": f"torch:{TINY_CLIP}"})
    monkeypatch.setattr(clip_torch.TorchClip, "of", lambda *_, **__: encoder)
    entry = by_name.find(f"torch:{TINY_CLIP}")
    monkeypatch.setattr("multimodal_eval.evaluation.metrics.clipscore.open_image_text_encoder", lambda _: entry.open())
    expected = score_batch(metric, metric.open(None), samples)
    assert all(score.status == "ok" for score in expected)
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "empty"))  # without cached vectors
    memory = shrink(encoder, 3)
    scores = score_batch(metric, metric.open(None), samples)
    assert [score.status for score in scores] == ["ok"] * 5 + ["error"] + ["ok"] * 2
    assert "does not fit into the memory of the GPU: CUDA out of memory" in scores[5].reason
    for score, exact in zip(scores, expected, strict=True):
        assert score.value is None or score.value == pytest.approx(exact.value, abs=1e-6)
    assert memory.computed == 7  # nothing is computed twice because of the one sample


def test_images_that_arrive_while_the_gpu_is_full_stay_on_the_host(encoder, monkeypatch):
    def full(_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    handed = np.stack([encoder.hand_over(golden_image(number, (40, 30))) for number in (1, 2)])
    placed = encoder.placed
    encoder.placed = replace(placed, device=SimpleNamespace(type="cuda"))
    monkeypatch.setattr(encoder, "_uploaded", full)
    received = encoder.receive(handed)
    handed[:] = 0  # the memory is used again
    encoder.placed = placed
    images = [LazyImage(bytes([n]), golden_image, received=tensor) for n, tensor in enumerate(received)]
    expected = [LazyImage(bytes([n]), lambda n=n: golden_image(n, (40, 30))) for n in (1, 2)]
    np.testing.assert_allclose(encoder.encode_images(images), encoder.encode_images(expected), atol=1e-6)
