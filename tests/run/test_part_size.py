"""The number of samples per part: it decides how much work a crash can lose, and how well a GPU is used."""

from __future__ import annotations

import pytest

from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics_registry import resolve
from tests.golden.clip.images import TINY_CLIP
from tests.models.sentences import tiny_bert
from tests.parts import part_size_with


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return tiny_bert.write(tmp_path_factory.mktemp("models") / "tiny")


def size_with(*metrics):
    return part_size_with([configured(resolve(name), options) for name, options in metrics])


def test_models_have_small_parts_and_encoders_in_torch_larger_ones(bert):
    clip, clip_in_torch = (("clip_score", {"model": f"{prefix}{TINY_CLIP}"}) for prefix in ("", "torch:"))
    sentences, in_torch = (("semantic_similarity", {"encoder": f"{prefix}{bert}"}) for prefix in ("", "torch:"))
    plain = ("cider", {})
    assert size_with(plain) == 10_000
    assert size_with(clip, plain) == size_with(sentences) == 256
    assert size_with(clip_in_torch, plain) == 512
    assert size_with(("clipscore", {"model": f"torch:{TINY_CLIP}+bf16"})) == 512
    assert size_with(in_torch) == 1024
    assert size_with(clip_in_torch, in_torch) == 512  # the smallest of all
    assert size_with(clip, in_torch) == 256
