"""Pictures as a vision model wants them: equal to transformers and to Pillow."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval.core.errors import ImageError, ModelError
from multimodal_eval.models.clip.preprocessing import ClipPictures, Preprocessing, SiglipPictures, matrices
from tests.golden.clip.pictures import picture, pixels
from tests.golden.load import golden

GOLDEN = golden("clip.json.gz")


@pytest.mark.parametrize("case", GOLDEN["pixels"], ids=lambda case: f"{case['family']}-{case['picture']}")
def test_preprocessing_is_that_of_transformers(case):
    number, *size = case["picture"]
    defaults = ClipPictures if case["family"] == "clip" else SiglipPictures
    found = Preprocessing.of(case["settings"], defaults)(picture(number, size))
    assert list(found.shape) == case["shape"]
    np.testing.assert_array_equal(found.reshape(-1)[case["places"]], np.float32(case["values"]))
    assert found.astype(np.float64).sum() == pytest.approx(case["sum"], abs=1e-6)


@given(width=st.integers(1, 90), height=st.integers(1, 90), edge=st.integers(1, 40), resample=st.sampled_from([2, 3]))
def test_resizing_by_matrices_is_pillows(width, height, edge, resample):
    """What the GPU does, here in float64: equal but for ties that rounding decides."""
    settings = {"size": {"shortest_edge": edge}, "crop_size": edge + 1, "resample": resample, "do_normalize": False}
    preprocess = Preprocessing.of({**settings, "do_rescale": False}, ClipPictures)
    image = pixels(width, (width, height))
    columns, rows = matrices(preprocess, height, width)
    x = image.transpose(2, 0, 1).astype(np.float64)
    for one in (lambda x: x @ rows.T.astype(np.float64), lambda x: columns.astype(np.float64) @ x):
        x = np.clip(np.floor(one(x) + 0.5), 0, 255)
    difference = np.abs(x - preprocess(Image.fromarray(image)))
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.01


@pytest.mark.parametrize(("size", "family"), [((1, 15_000), "clip"), ((15_000, 1), "clip"), ((1, 300_000), "siglip")])
def test_a_line_that_would_fill_the_memory_is_refused(size, family):
    """224 x 3,360,000 pixels of 4 bytes, a few hundred bytes as a PNG file; SigLIP's rows alone are 224 x 300,000."""
    preprocess = Preprocessing.of({}, ClipPictures if family == "clip" else SiglipPictures)
    with pytest.raises(ImageError, match=f"a picture of {size[0]} x {size[1]} is too long and thin"):
        preprocess(Image.new("1", size))
    assert preprocess(Image.new("1", (10, 7000))).shape == (3, 224, 224)


def test_matrices_hold_only_what_the_crop_keeps():
    """All weights of 400 x 40,000 pixels are 22,400 x 40,000 numbers."""
    tracemalloc.start()
    columns, rows = matrices(Preprocessing.of({}, ClipPictures), 40_000, 400)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (columns.shape, rows.shape) == ((224, 40_000), (224, 400))
    assert most < 50_000_000


def test_a_size_that_says_nothing_is_refused():
    with pytest.raises(ModelError, match="shortest_edge"):
        Preprocessing.of({"size": {"longest_edge": 3}}, ClipPictures)
    with pytest.raises(ModelError, match="resample"):
        Preprocessing.of({"resample": 1}, ClipPictures)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"image_mean": None}, "'image_mean' is needed"),
        ({"rescale_factor": None}, "'rescale_factor' is needed"),
        ({"image_std": "half"}, r"`\$\.image_std`"),
        ({"size": {"height": None, "width": 3}}, "`height` and `width`"),
        ([], "Expected `object`"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, said):
    with pytest.raises(ModelError, match=said):
        Preprocessing.of(settings, ClipPictures)


def test_a_step_that_is_switched_off_needs_no_settings():
    off = {"do_normalize": False, "image_mean": None, "image_std": None, "do_rescale": None, "rescale_factor": None}
    preprocess = Preprocessing.of(off, ClipPictures)
    assert (preprocess.mean, preprocess.std, preprocess.scale) == (None, None, None)
