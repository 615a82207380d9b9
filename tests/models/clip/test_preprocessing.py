"""Image preprocessing: equal to transformers and to Pillow."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval.core.errors import ImageError, ModelError
from multimodal_eval.models.clip.preprocessing import ClipImageSettings, Preprocessing, SiglipImageSettings, matrices
from tests.golden.clip.images import golden_image, pixels
from tests.golden.load import golden

GOLDEN = golden("clip.json.gz")


@pytest.mark.parametrize("case", GOLDEN["pixels"], ids=lambda case: f"{case['family']}-{case['picture']}")
def test_preprocessing_equals_that_of_transformers(case):
    number, *size = case["picture"]
    defaults = ClipImageSettings if case["family"] == "clip" else SiglipImageSettings
    array = Preprocessing.of(case["settings"], defaults)(golden_image(number, size))
    assert list(array.shape) == case["shape"]
    np.testing.assert_array_equal(array.reshape(-1)[case["places"]], np.float32(case["values"]))
    assert array.astype(np.float64).sum() == pytest.approx(case["sum"], abs=1e-6)


@given(width=st.integers(1, 90), height=st.integers(1, 90), edge=st.integers(1, 40), resample=st.sampled_from([2, 3]))
def test_resizing_by_matrices_equals_pillow(width, height, edge, resample):
    """The computation of the GPU, here in float64: equal except for ties in rounding."""
    settings = {"size": {"shortest_edge": edge}, "crop_size": edge + 1, "resample": resample, "do_normalize": False}
    preprocess = Preprocessing.of({**settings, "do_rescale": False}, ClipImageSettings)
    image = pixels(width, (width, height))
    columns, rows = matrices(preprocess, height, width)
    x = image.transpose(2, 0, 1).astype(np.float64)
    for resize in (lambda x: x @ rows.T.astype(np.float64), lambda x: columns.astype(np.float64) @ x):
        x = np.clip(np.floor(resize(x) + 0.5), 0, 255)
    difference = np.abs(x - preprocess(Image.fromarray(image)))
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.01


@pytest.mark.parametrize(("size", "family"), [((1, 15_000), "clip"), ((15_000, 1), "clip"), ((1, 300_000), "siglip")])
def test_an_image_that_would_exceed_the_memory_is_refused(size, family):
    """224 x 3,360,000 pixels of 4 bytes, but a few hundred bytes as a PNG file. SigLIP's rows are 224 x 300,000."""
    preprocess = Preprocessing.of({}, ClipImageSettings if family == "clip" else SiglipImageSettings)
    with pytest.raises(ImageError, match=f"an image of {size[0]} x {size[1]} is too long and thin"):
        preprocess(Image.new("1", size))
    assert preprocess(Image.new("1", (10, 7000))).shape == (3, 224, 224)


def test_matrices_are_limited_to_the_crop():
    """The full matrix for 400 x 40,000 pixels would be 22,400 x 40,000."""
    tracemalloc.start()
    columns, rows = matrices(Preprocessing.of({}, ClipImageSettings), 40_000, 400)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (columns.shape, rows.shape) == ((224, 40_000), (224, 400))
    assert peak < 50_000_000


def test_an_unknown_size_or_resampling_is_refused():
    with pytest.raises(ModelError, match="shortest_edge"):
        Preprocessing.of({"size": {"longest_edge": 3}}, ClipImageSettings)
    with pytest.raises(ModelError, match="resample"):
        Preprocessing.of({"resample": 1}, ClipImageSettings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_mean": None}, "'image_mean' is required"),
        ({"rescale_factor": None}, "'rescale_factor' is required"),
        ({"image_std": "half"}, r"`\$\.image_std`"),
        ({"size": {"height": None, "width": 3}}, "`height` and `width`"),
        ([], "Expected `object`"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(ModelError, match=message):
        Preprocessing.of(settings, ClipImageSettings)


def test_a_step_that_is_switched_off_needs_no_settings():
    off = {"do_normalize": False, "image_mean": None, "image_std": None, "do_rescale": None, "rescale_factor": None}
    preprocess = Preprocessing.of(off, ClipImageSettings)
    assert (preprocess.mean, preprocess.std, preprocess.scale) == (None, None, None)
