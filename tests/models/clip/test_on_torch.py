"""CLIP through torch, on the CPU here: the same vectors, with pictures resized as matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval.core.errors import ImageError
from multimodal_eval.models.clip import on_torch as clip_torch
from multimodal_eval.models.clip.pictures import Picture
from multimodal_eval.models.encoders import image_text_encoder_label, open_image_text_encoder
from multimodal_eval.models.source import find_model
from tests.golden.clip.pictures import TINY_CLIP, TINY_LEGACY, TINY_SIGLIP, picture, pixels
from tests.golden.load import golden

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
pytest.importorskip("transformers", reason="the extra [torch] is not installed")

GOLDEN = golden("clip.json.gz")


@pytest.fixture(params=[TINY_CLIP, TINY_LEGACY, TINY_SIGLIP], ids=lambda folder: folder.name)
def folder(request):
    return request.param


def golden_pictures():
    return [
        Picture(bytes([number]), lambda number=number, size=size: picture(number, size))
        for number, size in enumerate(GOLDEN["sizes"])
    ]


def test_its_vectors_are_those_of_transformers(folder):
    """Texts to the last digits; pictures up to single pixels that rounding moved by one step."""
    encoder = clip_torch.TorchClip.of(find_model(str(folder)))
    expected = GOLDEN[folder.name]
    tolerance = 2e-6 if encoder.device.type == "cpu" else 3e-2
    np.testing.assert_allclose(encoder.encode_texts(GOLDEN["texts"]), expected["texts"], atol=tolerance)
    found = encoder.encode_images(golden_pictures())
    assert (found * np.float32(expected["images"])).sum(axis=1).min() > 1 - 1e-4


def test_it_is_asked_for_by_name():
    label = image_text_encoder_label(f"torch:{TINY_CLIP}")
    assert label.startswith("tiny-clip@")
    assert "+torch" in label
    encoder = open_image_text_encoder(f"torch:{TINY_CLIP}")
    assert encoder.label == label
    assert encoder.are_cut(["a" * 19, "a"]) == [True, False]
    assert encoder.encode_texts([]).shape[0] == 0


def test_its_pictures_are_prepared_as_pillow_does(folder):
    encoder = clip_torch.TorchClip.of(find_model(str(folder)))
    for number, size in enumerate([*GOLDEN["sizes"], (64, 48), (100, 333), (32, 32)]):
        batch = torch.from_numpy(pixels(number, size))[None].to(encoder.device)
        found = encoder.prepared(batch)[0].float().cpu().numpy()
        expected = encoder.preprocess(picture(number, size))
        step = 1 / 255 / min(encoder.preprocess.std)
        assert np.abs(found - expected).max() < step * 1.01
        assert (np.abs(found - expected) > step / 2).mean() < 0.005


def test_sizes_and_batches_do_not_mix_pictures_up(monkeypatch):
    """Two sizes in turn, more pictures than a slot holds, more batches than slots."""
    monkeypatch.setattr(clip_torch, "IMAGES_AT_ONCE", 3)
    monkeypatch.setattr(clip_torch, "OPENED_AT_ONCE", 10)
    encoder = clip_torch.TorchClip.of(find_model(str(TINY_CLIP)))
    sizes = [(40, 30) if number % 3 else (31, 47) for number in range(25)]
    arrays = [pixels(number, size) for number, size in enumerate(sizes)]
    together = encoder.encode_arrays(arrays)
    alone = np.concatenate([encoder.encode_arrays([array]) for array in arrays])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert len({row.tobytes() for row in together.round(3)}) == 25

    def broken():
        raise ImageError("cut off")

    pictures = [Picture(bytes([n]), lambda n=n, size=size: picture(n, size)) for n, size in enumerate(sizes)]
    pictures[7] = Picture(b"x", broken)
    found = encoder.encode_images(pictures)
    assert np.isnan(found[7]).all()
    assert pictures[7].fault == "cut off"
    kept = [n for n in range(25) if n != 7]
    np.testing.assert_allclose(found[kept], together[kept], atol=1e-5)


def test_it_refuses_the_line_that_the_other_encoder_refuses():
    encoder = clip_torch.TorchClip.of(find_model(str(TINY_CLIP)))
    line = Picture(b"line", lambda: picture(1, (1, 1)).resize((1, 100_000)))
    assert np.isnan(encoder.encode_images([line])).all()
    assert "too long and thin" in line.fault
