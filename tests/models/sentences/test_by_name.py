"""Sentence encoders compared with sentence-transformers."""

from __future__ import annotations

import base64
import json
import random
import shutil

import numpy as np
import pytest

from multimodal_eval.core.errors import ModelError, UnavailableError
from multimodal_eval.models import encoders
from multimodal_eval.models.encoders import check_sentence_encoder, open_sentence_encoder, sentence_encoder_label
from multimodal_eval.models.sentences.by_name import find
from multimodal_eval.models.source import find_model
from tests.golden.load import golden

pytestmark = pytest.mark.weights
MINILM = "all-minilm-l6-v2"


def recorded():
    vectors = golden("sentences.json.gz")["vectors"]
    return {text: np.frombuffer(base64.b64decode(packed), "<f4") for text, packed in vectors.items()}


def test_vectors_equal_those_of_sentence_transformers(weights):
    expected = recorded()
    vectors = open_sentence_encoder(MINILM).encode(list(expected))
    assert np.abs(vectors - np.stack(list(expected.values()))).max() < 1e-5


def test_a_vector_does_not_depend_on_its_batch(weights, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    encoder = find(MINILM).open()
    texts = [*recorded(), "a cat", "a dog", "the cat sat"]
    together = encoder.encode(texts)
    assert all(np.array_equal(encoder.encode([text])[0], row) for text, row in zip(texts, together, strict=True))
    order = list(range(len(texts)))
    random.Random(4).shuffle(order)
    assert np.array_equal(encoder.encode([texts[i] for i in order] * 2)[: len(texts)], together[order])


def test_vectors_are_cached_on_disk(weights, monkeypatch):
    text = "a text that no other test encodes"
    encoders.SENTENCE_ENCODERS.forget()
    fresh = open_sentence_encoder(MINILM).encode([text])
    encoders.SENTENCE_ENCODERS.forget()
    encoder = open_sentence_encoder(MINILM)
    monkeypatch.setattr(encoder.inner, "encode", None)  # a call of the model would now fail
    assert np.array_equal(encoder.encode([text, text]), np.repeat(fresh, 2, axis=0))


def test_texts_beyond_the_limit_are_reported(weights):
    texts = ["a dog", "dog " * 254, "dog " * 255, "d" * 300]
    assert open_sentence_encoder(MINILM).are_cut(texts) == [False, False, True, False]


def test_int8_is_close_and_in_the_label(weights):
    texts = [text for text in recorded() if text][:12]
    exact, rough = open_sentence_encoder(MINILM), open_sentence_encoder(f"{MINILM}+int8")
    assert rough.label == f"{exact.label}+int8"
    assert (exact.encode(texts) * rough.encode(texts)).sum(axis=1).min() > 0.95


def test_a_directory_can_be_an_encoder(weights, tmp_path):
    folder = tmp_path / "my-encoder"
    shutil.copytree(find_model(MINILM).folder, folder)
    encoder = open_sentence_encoder(str(folder))
    assert encoder.label.startswith("my-encoder@")
    assert encoder.languages == frozenset()
    assert np.array_equal(encoder.encode(["a dog"]), open_sentence_encoder(MINILM).encode(["a dog"]))
    (folder / "config.json").write_text((folder / "config.json").read_text().replace("1e-12", "1e-11"))
    assert sentence_encoder_label(str(folder)) != encoder.label


def test_a_truncated_weight_file_is_refused(weights, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(find_model(MINILM).folder, folder)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:50_000_000])
    with pytest.raises(ModelError, match="cut off"):
        open_sentence_encoder(str(folder))


def test_the_error_for_a_missing_model_says_how_to_get_it():
    assert sentence_encoder_label(MINILM) == "all-minilm-l6-v2@b49ed49c"
    with pytest.raises(UnavailableError, match="mmeval fetch all-minilm-l6-v2"):
        check_sentence_encoder(MINILM)
    with pytest.raises(UnavailableError, match="mmeval fetch all-minilm-l6-v2"):
        open_sentence_encoder(MINILM)
    with pytest.raises(UnavailableError, match="no model is named 'nothing'"):
        check_sentence_encoder("nothing")


def test_pickled_weights_are_refused(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04N.")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin may run code"):
        check_sentence_encoder(str(tmp_path))


def copied(tmp_path, name="mine"):
    folder = tmp_path / name
    shutil.copytree(find_model(MINILM).folder, folder)
    return folder


@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_number_of_cores_changes_no_bit(weights, monkeypatch, count):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    texts = [*recorded()] + [f"a text with the number {n} in it" for n in range(40)]
    expected = open_sentence_encoder(MINILM).inner.encode(texts)
    monkeypatch.setattr("multimodal_eval.core.machine.cores", lambda: count)
    encoder = find(MINILM).open()
    assert np.array_equal(encoder.encode(texts), expected)
    assert np.array_equal(encoder.encode(texts[7:8])[0], expected[7])


def test_linked_files_are_opened(weights, tmp_path):
    for file in find_model(MINILM).folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    assert np.array_equal(
        open_sentence_encoder(str(tmp_path)).encode(["a dog"]), open_sentence_encoder(MINILM).encode(["a dog"])
    )


def test_nan_never_becomes_a_score(weights, tmp_path):
    folder = copied(tmp_path)
    tensor = find_model(str(folder)).weights["encoder.layer.3.output.dense.weight"]
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(tensor.offset)
        file.write(np.array([np.nan], "<f4").tobytes())
    with pytest.raises(ModelError, match="vectors with NaN or infinity"):
        open_sentence_encoder(str(folder)).encode(["a dog"])


def test_fetched_weights_that_have_changed_are_refused(weights, tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    shutil.copytree(weights / "resources" / "all-minilm-l6-v2-b49ed49c", find_model(MINILM).folder)
    open_sentence_encoder(MINILM)
    with find_model(MINILM).file("model.safetensors").open("r+b") as file:
        file.seek(50_000_000)
        file.write(b"changed!")
    with pytest.raises(ModelError, match="has changed since it was fetched"):
        find(MINILM).open()


def test_the_digest_of_a_directory_covers_every_relevant_file(weights, tmp_path):
    folder = copied(tmp_path)
    before = find_model(str(folder)).revision
    for name, relevant in (("vocab.txt", True), ("model.onnx_data", True), ("README.md", False), ("LICENSE", False)):
        (folder / name).write_text("something else")
        assert (find_model(str(folder)).revision != before) is relevant
        before = find_model(str(folder)).revision


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tokenizer.json", "{}", "is not a tokenizer"),
        ("config.json", '{"model_type": "bert", "hidden_act": "gelu"}', "lacks the setting"),
        ("model.safetensors", "", "not a safetensors file"),
        ("modules.json", "{", "cannot be read"),
    ],
)
def test_inconsistent_files_of_a_directory_are_reported_before_a_run(weights, tmp_path, file, content, message):
    folder = copied(tmp_path)
    (folder / file).write_text(content)
    with pytest.raises(ModelError, match=message):
        check_sentence_encoder(str(folder))


def test_a_model_without_plain_mean_pooling_runs_in_torch(weights, tmp_path):
    folder = copied(tmp_path)
    (folder / "1_Pooling").mkdir()
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text('{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false}')
    assert not sentence_encoder_label(str(folder)).endswith("+torch")
    pooling.write_text('{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}')
    assert sentence_encoder_label(str(folder)).endswith("+torch")
    pooling.unlink()
    kinds = [{"type": f"sentence_transformers.models.{kind}"} for kind in ("Transformer", "Pooling", "Dense")]
    (folder / "modules.json").write_text(json.dumps(kinds))
    assert sentence_encoder_label(str(folder)).endswith("+torch")


@pytest.mark.parametrize("danger", ["module", "pickle"])
def test_code_in_a_directory_is_not_run(weights, tmp_path, danger):
    folder = copied(tmp_path)
    if danger == "module":
        (folder / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "evil_module.Evil"}]')
        (folder / "evil_module.py").write_text("raise SystemExit")
    else:
        (folder / "2_Dense").mkdir()
        (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"\x80\x04N.")
    with pytest.raises(ModelError, match="code"):
        check_sentence_encoder(f"torch:{folder}")


def test_another_resource_is_not_an_encoder():
    with pytest.raises(ModelError, match=r"not a sentence encoder\. Known: all-minilm-l6-v2, navec-ru"):
        sentence_encoder_label("smollm2-135m")


def test_int8_is_not_cached(weights):
    encoder = find(f"{MINILM}+int8").open()
    encoder.encode(["a dog"])
    assert not encoder.cache.path.exists()


def test_a_used_metric_can_be_pickled(weights):
    import pickle

    from multimodal_eval import Sample
    from multimodal_eval.evaluation.metrics.semantic_similarity import compute_semantic_similarity

    sample = Sample(id="1", generated_answer="a dog", references=["a cat"])
    value = compute_semantic_similarity(sample)
    assert pickle.loads(pickle.dumps(compute_semantic_similarity))(sample) == value
