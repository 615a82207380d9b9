"""CLIP and SigLIP without torch: equal to transformers on random weights."""

from __future__ import annotations

import json
import shutil
from functools import partial

import numpy as np
import pytest

from multimodal_eval.core.errors import ImageError, ModelError, UnavailableError
from multimodal_eval.models.clip import encoder as encoder_module
from multimodal_eval.models.clip import graphs as clip_graphs
from multimodal_eval.models.clip.encoder import ClipTexts, OnnxClip
from multimodal_eval.models.clip.lazy_images import LazyImage
from multimodal_eval.models.encoders import check_image_text_encoder, image_text_encoder_label, open_image_text_encoder
from multimodal_eval.models.formats.onnx_graph import open_session
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.source import find_model
from tests.golden.clip.images import TINY_CLIP, TINY_LEGACY, TINY_SIGLIP, golden_image
from tests.golden.load import golden

GOLDEN = golden("clip.json.gz")


def golden_images():
    return [
        LazyImage(bytes([number]), lambda number=number, size=size: golden_image(number, size))
        for number, size in enumerate(GOLDEN["sizes"])
    ]


@pytest.fixture(params=[TINY_CLIP, TINY_LEGACY, TINY_SIGLIP], ids=lambda folder: folder.name)
def folder(request):
    return request.param


def test_equal_to_transformers(folder):
    """float32 with quick GELU, bfloat16 with GELU and the legacy end token, SigLIP with its pooling head."""
    encoder = OnnxClip(find_model(str(folder)))
    expected = GOLDEN[folder.name]
    np.testing.assert_allclose(encoder.encode_images(golden_images()), expected["images"], atol=2e-6)
    np.testing.assert_allclose(encoder.encode_texts(GOLDEN["texts"]), expected["texts"], atol=2e-6)


def test_half_precision_weights_are_read(tmp_path):
    """The same model up to the precision of float16."""
    shutil.copytree(TINY_CLIP, tmp_path / "half")
    weights = SafetensorsFile(TINY_CLIP / "model.safetensors")
    header, content = {}, b""
    for name, tensor in weights.tensors.items():
        raw = weights.read(name).astype("<f2").tobytes()
        offsets = [len(content), len(content) + len(raw)]
        header[name] = {"dtype": "F16", "shape": tensor.shape, "data_offsets": offsets}
        content += raw
    front = json.dumps(header).encode()
    (tmp_path / "half/model.safetensors").write_bytes(len(front).to_bytes(8, "little") + front + content)
    vectors = OnnxClip(find_model(str(tmp_path / "half"))).encode_images(golden_images())
    np.testing.assert_allclose(vectors, GOLDEN["tiny-clip"]["images"], atol=5e-3)


@pytest.mark.parametrize("prepack", [True, False], ids=["prepacked", "mapped"])
def test_a_vector_does_not_depend_on_its_batch(folder, prepack, monkeypatch):
    """onnxruntime multiplies a single row with another kernel if the weights are not prepacked."""
    monkeypatch.setattr(encoder_module, "open_session", partial(open_session, prepack=prepack))
    encoder = OnnxClip(find_model(str(folder)))
    together = encoder.encode_images(golden_images())
    alone = [encoder.encode_images([image])[0] for image in golden_images()]
    np.testing.assert_array_equal(together, alone)
    texts = GOLDEN["texts"]
    np.testing.assert_array_equal(encoder.encode_texts(texts), [encoder.encode_texts([text])[0] for text in texts])


def test_texts_beyond_the_limit_are_reported(folder):
    encoder = OnnxClip(find_model(str(folder)))
    longest = {"tiny-siglip": 15}.get(folder.name, 18)  # 16 and 20 tokens, minus the special tokens
    assert encoder.are_cut(["a" * longest, "a" * (longest + 1), ""]) == [False, True, False]


def test_the_limit_counts_bytes_and_not_letters(tmp_path):
    """CLIP's tokens consist of bytes, and a letter may have several."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    shutil.copytree(TINY_CLIP, tmp_path / "bytes")
    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(letters, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(tmp_path / "bytes/tokenizer.json"))
    texts = ClipTexts(find_model(str(tmp_path / "bytes")))
    assert texts.are_cut(["я" * 10, "я" * 11]) == [False, True]


def test_image_and_text_settings_in_one_file(tmp_path):
    shutil.copytree(TINY_CLIP, tmp_path / "five")
    settings = json.loads((tmp_path / "five/preprocessor_config.json").read_text())
    (tmp_path / "five/preprocessor_config.json").unlink()
    (tmp_path / "five/processor_config.json").write_text(json.dumps({"image_processor": settings}))
    vectors = OnnxClip(find_model(str(tmp_path / "five"))).encode_images(golden_images())
    np.testing.assert_allclose(vectors, GOLDEN["tiny-clip"]["images"], atol=2e-6)


def exported(target):
    """The towers as ONNX files that contain the weights, with the names of usual exports."""
    import onnx

    model = find_model(str(TINY_CLIP))
    shutil.copytree(TINY_CLIP, target, ignore=shutil.ignore_patterns("*.safetensors"))
    (target / "onnx").mkdir()
    for tower, make, renamed in (
        ("text", clip_graphs.text_graph, {"ids": "input_ids", "embeddings": "text_embeds"}),
        ("vision", clip_graphs.vision_graph, {"pixels": "pixel_values", "embeddings": "image_embeds"}),
    ):
        graph = onnx.load_model_from_string(make(model.weights, clip_graphs.ClipConfig.of(model)))
        onnx.load_external_data_for_model(graph, str(TINY_CLIP))
        for node in graph.graph.node:
            for names in (node.input, node.output):
                names[:] = [renamed.get(name, name) for name in names]
        for entry in [*graph.graph.input, *graph.graph.output]:
            entry.name = renamed.get(entry.name, entry.name)
        onnx.save_model(graph, str(target / "onnx" / f"{tower}_model.onnx"))
    return target


def test_exported_onnx_files_can_be_run(tmp_path):
    encoder = OnnxClip(find_model(str(exported(tmp_path / "exported"))))
    np.testing.assert_allclose(encoder.encode_images(golden_images()), GOLDEN["tiny-clip"]["images"], atol=2e-6)
    np.testing.assert_allclose(encoder.encode_texts(GOLDEN["texts"]), GOLDEN["tiny-clip"]["texts"], atol=2e-6)


def test_a_broken_onnx_file_is_refused(tmp_path):
    folder = exported(tmp_path / "exported")
    (folder / "onnx/text_model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="onnxruntime cannot open"):
        OnnxClip(find_model(str(folder)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "no file tokenizer.json"),
        (lambda folder: (folder / "preprocessor_config.json").unlink(), "no file preprocessor_config.json"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "blip"}'), "Got 'blip' instead"),
        (
            lambda folder: (folder / "config.json").write_text(
                '{"model_type": "clip", "text_config": {"hidden_act": "relu"}}'
            ),
            "activation 'relu'",
        ),
        (
            lambda folder: (folder / "config.json").write_text(
                '{"model_type": "clip", "vision_config": {"hidden_size": "wide"}}'
            ),
            r"config\.json: Expected `int`, got `str` - at `\$\.hidden_size`",
        ),
        (
            lambda folder: (
                (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors"),
                (folder / "model.safetensors.index.json").write_text("{}"),
            ),
            "several files",
        ),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "Convert it"),
        (
            lambda folder: (folder / "preprocessor_config.json").write_text(
                '{"size": {"shortest_edge": 24}, "crop_size": {"height": 24, "width": 24}}'
            ),
            r"takes images of 32 x 32, but its preprocessing produces \(24, 24\)",
        ),
    ],
)
def test_a_model_that_cannot_run_is_refused_before_loading(tmp_path, change, message):
    shutil.copytree(TINY_CLIP, tmp_path / "broken")
    change(tmp_path / "broken")
    with pytest.raises(UnavailableError, match=message):
        check_image_text_encoder(str(tmp_path / "broken"))


def test_a_missing_tensor_is_named(tmp_path):
    shutil.copytree(TINY_CLIP, tmp_path / "deeper")
    config = json.loads((TINY_CLIP / "config.json").read_text())
    config["vision_config"]["num_hidden_layers"] = 3
    (tmp_path / "deeper/config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"layers\.2"):
        OnnxClip(find_model(str(tmp_path / "deeper")))


def test_a_cached_image_is_not_opened_again(monkeypatch):
    encoder = open_image_text_encoder(str(TINY_CLIP))
    first = encoder.encode_images(golden_images())

    def refuse():
        raise AssertionError("opened again")

    again = [LazyImage(image.key, refuse) for image in golden_images()]
    np.testing.assert_array_equal(encoder.encode_images([*again, again[0]]), [*first, first[0]])
    assert encoder.label == image_text_encoder_label(str(TINY_CLIP)) == f"tiny-clip@{encoder.label[-8:]}"


def test_a_broken_image_affects_no_other_and_is_not_cached():
    def broken():
        raise ImageError("cut off")

    encoder = open_image_text_encoder(str(TINY_CLIP))
    good = golden_images()[0]
    images = [LazyImage(b"x", broken), good, LazyImage(b"x", broken)]
    vectors = encoder.encode_images(images)
    assert [image.fault for image in images] == ["cut off", None, "cut off"]
    assert np.isnan(vectors[[0, 2]]).all()
    np.testing.assert_allclose(vectors[1], GOLDEN["tiny-clip"]["images"][0], atol=2e-6)
    repaired = LazyImage(b"x", lambda: golden_image(0, (40, 30)))
    assert not np.isnan(encoder.encode_images([repaired])).any()
    assert repaired.fault is None


def test_only_broken_images():
    def broken():
        raise ImageError("cut off")

    vectors = open_image_text_encoder(str(TINY_CLIP)).encode_images([LazyImage(b"y", broken)])
    assert np.isnan(vectors).all()


def test_a_broken_image_among_cached_ones():
    def broken():
        raise ImageError("cut off")

    encoder = open_image_text_encoder(str(TINY_CLIP))
    known = encoder.encode_images(golden_images())
    images = [*golden_images(), LazyImage(b"z", broken)]
    vectors = encoder.encode_images(images)
    np.testing.assert_array_equal(vectors[:-1], known)
    assert np.isnan(vectors[-1]).all()
    assert [image.fault for image in images] == [None] * len(known) + ["cut off"]
