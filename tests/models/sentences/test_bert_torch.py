"""A BERT in torch, here on the CPU: the same vectors as in onnxruntime and transformers."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from multimodal_eval.core.errors import InputError, ModelError
from multimodal_eval.models.encoders import open_sentence_encoder, open_token_encoder, sentence_encoder_label
from multimodal_eval.models.sentences import on_torch
from multimodal_eval.models.sentences.by_name import find, find_tokens
from tests.models.sentences import tiny_bert

TEXTS = ["the dog runs", "a cat", "", "dog", "the dog runs on a cat " * 20, "an unknown word: ŵ 7", "a dog", "x"]


@pytest.fixture
def tiny(tmp_path):
    return tiny_bert.write(tmp_path / "tiny")


def test_the_label_names_torch_and_the_number_format(tiny):
    base = sentence_encoder_label(str(tiny))
    assert sentence_encoder_label(f"torch:{tiny}") == f"{base}+torch"
    assert sentence_encoder_label(f"torch:{tiny}+bf16") == f"{base}+torch-bf16"
    with pytest.raises(ModelError, match=r"cannot be run as bf16 in onnxruntime\. Write torch:.*tiny\+bf16"):
        sentence_encoder_label(f"{tiny}+bf16")
    with pytest.raises(ModelError, match=r"cannot be run as int8 in torch\. Write .*tiny\+int8"):
        sentence_encoder_label(f"torch:{tiny}+int8")


def test_word_vectors_have_no_number_format():
    for name in ("navec-ru+int8", "navec-ru+bf16", "torch:navec-ru"):
        with pytest.raises(ModelError, match="word vectors"):
            sentence_encoder_label(name)


@pytest.mark.torch
class TestInTorch:
    def test_vectors_equal_those_of_onnxruntime(self, tiny):
        expected = open_sentence_encoder(str(tiny)).encode(TEXTS)
        encoder = open_sentence_encoder(f"torch:{tiny}")
        np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
        assert encoder.encode([]).shape[0] == 0
        assert encoder.are_cut(TEXTS) == open_sentence_encoder(str(tiny)).are_cut(TEXTS)
        assert encoder.are_cut(TEXTS).index(True) == 4

    def test_vectors_equal_those_of_transformers(self, tiny):
        """Mean pooling and normalisation of BertModel, one text at a time."""
        import torch
        from transformers import AutoTokenizer, BertModel

        model = BertModel.from_pretrained(tiny, add_pooling_layer=False).eval()
        tokenizer = AutoTokenizer.from_pretrained(tiny)
        vectors = open_sentence_encoder(f"torch:{tiny}").encode(TEXTS)
        for text, vector in zip(TEXTS, vectors, strict=True):
            ids = tokenizer(text, truncation=True, max_length=64, return_tensors="pt")
            with torch.no_grad():
                mean = model(**ids).last_hidden_state[0].mean(dim=0).numpy()
            np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)

    def test_neither_order_nor_batch_matters(self, tiny, monkeypatch):
        monkeypatch.setenv("MMEVAL_CACHE", "off")
        monkeypatch.setattr(on_torch, "LETTERS_PER_PIECE", 300)
        monkeypatch.setitem(on_torch.TOKENS_PER_BATCH, "cpu", 40)
        texts = [" ".join(random.Random(n).choices(tiny_bert.WORDS, k=n % 45)) for n in range(60)]
        encoder = find(f"torch:{tiny}").open()
        together = encoder.encode(texts)
        alone = np.concatenate([encoder.encode([text]) for text in texts])
        np.testing.assert_allclose(together, alone, atol=1e-6)
        assert len({row.tobytes() for row in together.round(4)}) == len(set(texts))

    def test_bf16_is_close(self, tiny):
        exact = open_sentence_encoder(f"torch:{tiny}").encode(TEXTS)
        close = open_sentence_encoder(f"torch:{tiny}+bf16").encode(TEXTS)
        assert (exact * close).sum(axis=1).min() > 0.999
        assert np.abs(exact - close).max() > 1e-5

    @pytest.mark.parametrize("layer", [0, 2, 3])
    @pytest.mark.parametrize("kind", ["", "+bf16"])
    def test_tokens_equal_those_of_onnxruntime(self, tiny, layer, kind):
        expected = open_token_encoder(str(tiny)).encode(TEXTS, layer)
        encoder = open_token_encoder(f"torch:{tiny}{kind}")
        assert encoder.label.endswith("+torch-bf16" if kind else "+torch")
        assert (encoder.layers, encoder.special) == (3, frozenset({2, 3}))
        assert encoder.token_ids(TEXTS) == [list(text.ids) for text in expected]
        for text, right in zip(encoder.encode(TEXTS, layer), expected, strict=True):
            assert (list(text.ids), text.is_cut) == (list(right.ids), right.is_cut)
            np.testing.assert_allclose(text.vectors, right.vectors, atol=0.05 if kind else 2e-6)

    def test_out_of_memory_halves_the_batch(self, tiny, monkeypatch):
        import torch

        monkeypatch.setenv("MMEVAL_CACHE", "off")
        encoder = find(f"torch:{tiny}").open()
        expected = encoder.encode(TEXTS)
        network, sizes = encoder.inner.bert, []

        limit = 2

        def small(packing, layers):
            sizes.append(sum(bucket.rows for bucket in packing.buckets))
            if sizes[-1] > limit:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return type(network).states(network, packing, layers)

        monkeypatch.setattr(network, "states", small)
        np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
        assert sizes == [8, 4, 2, 2, 4, 2, 2]
        limit = 0
        with pytest.raises(InputError, match="does not fit into the memory"):
            encoder.encode(["a dog"])

    def test_another_encoder_runs_in_sentence_transformers(self, tiny, monkeypatch):
        """With the vector of [CLS] instead of the mean, onnxruntime and our network are not used."""
        folder = tiny_bert.write(tiny.parent / "cls")
        parts = [("Transformer", ""), ("Pooling", "1_Pooling")]
        modules = [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (kind, path) in enumerate(parts)
        ]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64}))
        (folder / "1_Pooling").mkdir()
        pooling = {"word_embedding_dimension": 24, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        monkeypatch.setenv("MMEVAL_CACHE", "off")
        encoder = find(str(folder)).open()
        assert type(encoder.inner).__name__ == "TorchSentences"
        expected = open_token_encoder(str(tiny)).encode(TEXTS, 3)
        np.testing.assert_allclose(encoder.encode(TEXTS), np.stack([t.vectors[0] for t in expected]), atol=1e-5)
        close = find(f"{folder}+bf16").open()
        assert close.label == f"{encoder.label}-bf16"
        assert (close.encode(TEXTS) * encoder.encode(TEXTS)).sum(axis=1).min() > 0.999
        tokens = find_tokens(f"torch:{folder}").open().encode(TEXTS, 3)
        for text, right in zip(tokens, expected, strict=True):
            np.testing.assert_allclose(text.vectors, right.vectors, atol=1e-5)

    def test_a_device_that_is_not_there_is_named_before_a_run(self, tiny, monkeypatch):
        from multimodal_eval.core.errors import UnavailableError
        from multimodal_eval.models.encoders import check_sentence_encoder

        monkeypatch.setenv("MMEVAL_DEVICE", "cuda:7")
        with pytest.raises(UnavailableError, match="MMEVAL_DEVICE is cuda:7"):
            check_sentence_encoder(f"torch:{tiny}")


def test_the_folder_is_a_plain_bert(tiny):
    assert json.loads((tiny / "config.json").read_text())["model_type"] == "bert"
    assert open_sentence_encoder(str(tiny)).encode(["a dog"]).shape == (1, 24)
