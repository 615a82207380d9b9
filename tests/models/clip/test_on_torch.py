"""CLIP in torch, here on the CPU: the same vectors, with images resized by matrix products."""

from __future__ import annotations

import io

import numpy as np
import pytest

from multimodal_eval.core.errors import ImageError, ModelError, UnavailableError
from multimodal_eval.evaluation.image_reader import images_of
from multimodal_eval.models.clip import on_torch as clip_torch
from multimodal_eval.models.clip.lazy_images import LazyImage
from multimodal_eval.models.encoders import image_text_encoder_label, open_image_text_encoder
from multimodal_eval.models.source import find_model
from tests.golden.clip.images import TINY_CLIP, TINY_LEGACY, TINY_SIGLIP, golden_image, pixels
from tests.golden.load import golden
from tests.models.clip.decoder_of_jpeg import REFUSED, UNREADABLE, ByPillow, jpeg_file

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
pytest.importorskip("transformers", reason="the extra [torch] is not installed")
pytestmark = pytest.mark.torch

GOLDEN = golden("clip.json.gz")


@pytest.fixture(params=[TINY_CLIP, TINY_LEGACY, TINY_SIGLIP], ids=lambda folder: folder.name)
def folder(request):
    return request.param


def golden_images():
    return [
        LazyImage(bytes([number]), lambda number=number, size=size: golden_image(number, size))
        for number, size in enumerate(GOLDEN["sizes"])
    ]


def test_vectors_equal_those_of_transformers(folder):
    """Texts to the last digits; images except for single pixels that differ by one rounding step."""
    encoder = clip_torch.TorchClip.of(find_model(str(folder)))
    expected = GOLDEN[folder.name]
    np.testing.assert_allclose(encoder.encode_texts(GOLDEN["texts"]), expected["texts"], atol=2e-6)
    vectors = encoder.encode_images(golden_images())
    assert (vectors * np.float32(expected["images"])).sum(axis=1).min() > 1 - 1e-4


def test_the_prefix_of_the_name_selects_torch():
    label = image_text_encoder_label(f"torch:{TINY_CLIP}")
    assert label.startswith("tiny-clip@")
    assert label.endswith("+torch")  # on every machine
    assert image_text_encoder_label(f"torch:{TINY_CLIP}+bf16") == f"{label}-bf16"
    with pytest.raises(ModelError, match="cannot be run as bf16 in onnxruntime"):
        image_text_encoder_label(f"{TINY_CLIP}+bf16")
    encoder = open_image_text_encoder(f"torch:{TINY_CLIP}")
    assert encoder.label == label
    assert encoder.are_cut(["a" * 19, "a"]) == [True, False]
    assert encoder.encode_texts([]).shape[0] == 0


def test_warming_up_changes_no_vector(folder, monkeypatch):
    """On a GPU this is done when the model is opened."""
    monkeypatch.setattr(clip_torch, "IMAGES_PER_BATCH", 4)
    encoder, warm = (clip_torch.TorchClip.of(find_model(str(folder))) for _ in range(2))
    warm.warm_up()
    for before, after in (
        (encoder.encode_images(golden_images()), warm.encode_images(golden_images())),
        (encoder.encode_texts(GOLDEN["texts"]), warm.encode_texts(GOLDEN["texts"])),
    ):
        np.testing.assert_array_equal(before, after)
    assert len(warm._warming) == 3
    warm._encode_black()  # they raise nothing
    warm._encode_word()


def test_what_fails_while_warming_up_is_left_to_the_real_texts(monkeypatch):
    monkeypatch.setattr(clip_torch, "IMAGES_PER_BATCH", 4)
    encoder = clip_torch.TorchClip.of(find_model(str(TINY_CLIP)))
    expected = encoder.encode_texts(GOLDEN["texts"])

    def fail():
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(encoder, "_encode_word", fail)
    encoder.warm_up()
    np.testing.assert_array_equal(encoder.encode_texts(GOLDEN["texts"]), expected)
    assert all(work.exception() is None for work in encoder._warming)  # which would keep the tensors of its frames


def test_bf16_is_close():
    exact, close = (open_image_text_encoder(f"torch:{TINY_CLIP}{kind}") for kind in ("", "+bf16"))
    vectors = [encoder.encode_texts(GOLDEN["texts"]) for encoder in (exact, close)]
    assert (vectors[0] * vectors[1]).sum(axis=1).min() > 0.999
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-5


def test_images_are_preprocessed_as_in_pillow(folder):
    encoder = clip_torch.TorchClip.of(find_model(str(folder)))
    for number, size in enumerate([*GOLDEN["sizes"], (64, 48), (100, 333), (32, 32)]):
        batch = torch.from_numpy(pixels(number, size))[None].to(encoder.device)
        prepared = encoder.prepared(batch)[0].float().cpu().numpy()
        expected = encoder.preprocess(golden_image(number, size))
        step = 1 / 255 / min(encoder.preprocess.std)
        assert np.abs(prepared - expected).max() < step * 1.01
        assert (np.abs(prepared - expected) > step / 2).mean() < 0.005


def received(encoder, arrays):
    """Images that another process has decoded."""
    return [LazyImage(b"", lambda: None, received=encoder.receive(array[None])[0]) for array in arrays]


def test_sizes_and_batches_do_not_mix_up_images(monkeypatch):
    """Alternating sizes, more images than fit into a batch, more than in a group."""
    monkeypatch.setattr(clip_torch, "IMAGES_PER_BATCH", 3)
    monkeypatch.setattr(clip_torch, "IMAGES_PER_GROUP", 10)
    encoder = clip_torch.TorchClip.of(find_model(str(TINY_CLIP)))
    sizes = [(40, 30) if number % 3 else (31, 47) for number in range(25)]
    arrays = [pixels(number, size) for number, size in enumerate(sizes)]
    together = encoder.encode_images(received(encoder, arrays))
    alone = np.concatenate([encoder.encode_images(received(encoder, [array])) for array in arrays])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert len({row.tobytes() for row in together.round(3)}) == 25

    def broken():
        raise ImageError("cut off")

    images = [LazyImage(bytes([n]), lambda n=n, size=size: golden_image(n, size)) for n, size in enumerate(sizes)]
    images[7] = LazyImage(b"x", broken)
    vectors = encoder.encode_images(images)
    assert np.isnan(vectors[7]).all()
    assert images[7].fault == "cut off"
    intact = [n for n in range(25) if n != 7]
    np.testing.assert_allclose(vectors[intact], together[intact], atol=1e-5)


def test_a_decoder_gets_usual_files_and_pillow_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(clip_torch, "IMAGES_PER_GROUP", 10)
    comments = {3: REFUSED, 4: UNREADABLE}
    contents = [jpeg_file(number, comments.get(number, b"")) for number in range(12)]
    contents[5] = contents[5][:-300]
    contents[7] = b"no image"
    png = io.BytesIO()
    golden_image(9, (40, 30)).save(png, "PNG")
    contents[9] = png.getvalue()
    encoder = clip_torch.TorchClip.of(find_model(str(TINY_CLIP)))
    with images_of(contents) as images:
        expected = encoder.encode_images(images)
        faults = [image.fault for image in images]
    decoder = ByPillow()
    parts = encoder.towers, encoder.preprocess, encoder.texts, encoder.placed, encoder.label
    encoder = clip_torch.TorchClip(*parts, decoder)
    for send in (False, True):  # by threads of this process, and as another process hands them over
        decoder.seen.clear()
        with images_of(contents) as images:
            for image in images if send else []:
                file = image.file(encoder.hand_over.keeps_file) if image.fault is None else None
                image.received = None if file is None else encoder.receive(np.frombuffer(file, np.uint8)[None])[0]
            vectors = encoder.encode_images(images)
            assert [image.fault for image in images] == faults
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
        assert np.isnan(vectors[[5, 7]]).all()
        assert set(decoder.seen) == {content for number, content in enumerate(contents) if number not in (4, 5, 7, 9)}


def test_a_decoder_on_the_gpu_is_in_the_name_and_needs_a_gpu(monkeypatch):
    monkeypatch.setenv("MMEVAL_DEVICE", "cpu")
    label = image_text_encoder_label(f"torch:{TINY_CLIP}")
    assert image_text_encoder_label(f"torch:{TINY_CLIP}+nvjpeg") == f"{label}-nvjpeg"
    assert image_text_encoder_label(f"torch:{TINY_CLIP}+bf16+nvjpeg") == f"{label}-bf16-nvjpeg"
    with pytest.raises(UnavailableError, match="torch uses the CPU here"):
        open_image_text_encoder(f"torch:{TINY_CLIP}+nvjpeg")
    with pytest.raises(UnavailableError):
        image_text_encoder_label(f"{TINY_CLIP}+nvjpeg")


def test_a_too_long_and_thin_image_is_refused():
    encoder = clip_torch.TorchClip.of(find_model(str(TINY_CLIP)))
    line = LazyImage(b"line", lambda: golden_image(1, (1, 1)).resize((1, 100_000)))
    assert np.isnan(encoder.encode_images([line])).all()
    assert "too long and thin" in line.fault
