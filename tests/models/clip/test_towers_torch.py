"""The towers in torch alone: what transformers computes from the same files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.clip import on_torch as clip_torch
from multimodal_eval.models.clip.graphs import ClipConfig
from multimodal_eval.models.clip.towers_torch import LibraryTowers, TorchTowers, open_towers
from multimodal_eval.models.source import find_model
from multimodal_eval.models.torch_device import place
from tests.golden.clip.images import TINY_CLIP, TINY_LEGACY, TINY_SIGLIP, golden_image

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
transformers = pytest.importorskip("transformers", reason="the extra [torch] is not installed")
pytestmark = pytest.mark.torch

KINDS = {"clip": "CLIPModel", "siglip": "SiglipModel"}


def library(folder, placed):
    family = ClipConfig.of(find_model(str(folder))).family
    return LibraryTowers(getattr(transformers, KINDS[family]).from_pretrained(str(folder)), placed)


@pytest.mark.parametrize("number_format", ["float32", "bf16"])
@pytest.mark.parametrize("folder", [TINY_CLIP, TINY_LEGACY, TINY_SIGLIP], ids=lambda folder: folder.name)
def test_features_are_those_of_transformers(folder, number_format):
    model, placed = find_model(str(folder)), place("the test", number_format)
    ours, theirs = open_towers(model, placed), library(folder, placed)
    assert isinstance(ours, TorchTowers)
    assert ours.ignores_padding == theirs.ignores_padding == (ours.config.family == "clip")
    torch.manual_seed(0)
    size, longest = ours.config.vision.image_size, ours.config.text.max_position_embeddings
    pixels = torch.randn(5, 3, size, size, dtype=placed.dtype)
    tolerance = 2e-6 if number_format == "float32" else 2e-2
    lengths = (longest, 5, 1) if ours.ignores_padding else (longest,)
    with torch.inference_mode():
        torch.testing.assert_close(
            ours.image_features(pixels), theirs.image_features(pixels), atol=tolerance, rtol=tolerance
        )
        for length in lengths:
            ids = torch.randint(0, 40, (7, length))  # some have several ends or none
            torch.testing.assert_close(
                ours.text_features(ids), theirs.text_features(ids), atol=tolerance, rtol=tolerance
            )


@pytest.mark.parametrize("activation", ["gelu", "quick_gelu", "gelu_pytorch_tanh"])
def test_every_activation(tmp_path, activation):
    """Random weights with another shape: more heads, another patch, other numbers of layers."""
    shape = {"hidden_size": 24, "intermediate_size": 40, "hidden_act": activation}
    config = transformers.CLIPConfig(
        text_config={**shape, "num_attention_heads": 3, "num_hidden_layers": 3, "vocab_size": 60, "eos_token_id": 59},
        vision_config={**shape, "num_attention_heads": 6, "num_hidden_layers": 1, "image_size": 35, "patch_size": 7},
        projection_dim=10,
    )
    torch.manual_seed(1)
    transformers.CLIPModel(config).save_pretrained(tmp_path)
    placed = place("the test")
    ours, theirs = TorchTowers(find_model(str(tmp_path)), placed), library(tmp_path, placed)
    with torch.inference_mode():
        pixels, ids = torch.randn(4, 3, 35, 35), torch.randint(0, 60, (6, 20))
        torch.testing.assert_close(ours.image_features(pixels), theirs.image_features(pixels), atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(ours.text_features(ids), theirs.text_features(ids), atol=2e-6, rtol=1e-5)


def test_weights_in_several_files_are_left_to_transformers(tmp_path):
    folder = tmp_path / "sharded"
    shutil.copytree(TINY_CLIP, folder)
    (folder / "model.safetensors").unlink()
    transformers.CLIPModel.from_pretrained(str(TINY_CLIP)).save_pretrained(folder, max_shard_size="20kB")
    assert (folder / "model.safetensors.index.json").is_file()
    encoder = clip_torch.TorchClip.of(find_model(str(folder)))
    assert isinstance(encoder.towers, LibraryTowers)
    exact = clip_torch.TorchClip.of(find_model(str(TINY_CLIP)))
    assert isinstance(exact.towers, TorchTowers)
    texts = ["a", "ab c", "b"]
    np.testing.assert_allclose(encoder.encode_texts(texts), exact.encode_texts(texts), atol=2e-6)


def test_a_missing_tensor_and_a_wrong_size_are_errors_of_the_model(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "broken"
    shutil.copytree(TINY_CLIP, folder)
    weights = load_file(folder / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, folder / "model.safetensors")
    towers = open_towers(find_model(str(folder)), place("the test"))
    size = towers.config.vision.image_size
    with torch.inference_mode(), pytest.raises(ModelError, match=r"no tensor 'visual_projection\.weight'"):
        towers.image_features(torch.zeros(1, 3, size, size))
    with pytest.raises(ModelError, match="Got 9 x 9 instead"):
        towers.image_features(torch.zeros(1, 3, 9, 9))
    headless = tmp_path / "headless"
    shutil.copytree(TINY_SIGLIP, headless)
    config = json.loads((headless / "config.json").read_text())
    config["vision_config"]["vision_use_head"] = False
    (headless / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="no pooling head"):
        open_towers(find_model(str(headless)), place("the test"))


def test_transformers_is_not_imported(tmp_path):
    """Its import takes longer than that of torch."""
    golden_image(1, (40, 30)).save(tmp_path / "1.png")
    code = f"""
import sys
from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics_registry import evaluate_sample, resolve
metric = configured(resolve("clip_score"), {{"model": {f"torch:{TINY_CLIP}"!r}}})
from multimodal_eval.core.sample import Sample
print(metric(Sample(id="1", image={str(tmp_path / "1.png")!r}, generated_answer="a cat")) > 0)
print([name for name in ("torch", "transformers") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["True", "['torch']"]
