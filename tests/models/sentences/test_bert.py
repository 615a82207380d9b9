"""Sentence-BERT in onnxruntime, with random weights: equal to the formulas, and independent of the batch."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from math import erf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.models.formats.onnx_graph import open_session
from multimodal_eval.models.sentences import bert, tokens
from multimodal_eval.models.sentences.bert import SentenceBert, graph_inputs
from multimodal_eval.models.sentences.tokens import BertTokens
from multimodal_eval.models.source import find_model
from tests.models.sentences import tiny_bert

TEXTS = [
    "",
    "a",
    "dog",
    "a dog",
    "a cat",
    "the cat runs",
    "a dog runs on the cat",
    "a cat runs on the dog",
    "abc " * 30,
]
texts = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return find_model(str(tiny_bert.write(tmp_path_factory.mktemp("models") / "tiny")))


@pytest.fixture(scope="module", params=[True, False], ids=["prepacked", "mapped"])
def prepack(request):
    """onnxruntime multiplies a single row with another kernel only if the weights are not prepacked."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (bert, tokens):
            patched.setattr(module, "open_session", partial(open_session, prepack=request.param))
        yield request.param


@pytest.fixture(scope="module")
def encoder(model, prepack):
    return SentenceBert(model, frozenset())


@pytest.fixture(scope="module")
def token_encoder(model, prepack):
    return BertTokens(model, frozenset())


def normalised(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * scale + shift


def naive_states(ids, weights, layers):
    """Devlin et al. (2019) in float64: the states of the tokens of one text."""

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        return normalised(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def heads(x):
        return x.reshape(len(ids), 4, -1).transpose(1, 0, 2)

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        q, k, v = (heads(linear(x, f"{layer}.attention.self.{part}")) for part in ("query", "key", "value"))
        shares = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]))
        mixed = (shares / shares.sum(-1, keepdims=True)) @ v
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(x + linear(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
        inner = linear(x, f"{layer}.intermediate.dense")
        inner = inner * (1 + np.vectorize(erf)(inner / np.sqrt(2))) / 2
        x = norm(x + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return x


def naive_weights():
    return {name: tensor.astype(np.float64) for name, tensor in tiny_bert.tensors(len(tiny_bert.vocabulary())).items()}


def test_vectors_equal_the_formulas(encoder):
    means = [naive_states(ids, naive_weights(), 3).mean(0) for ids in encoder.texts.ids(TEXTS)]
    expected = [mean / np.linalg.norm(mean) for mean in means]
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=2e-6)


@pytest.mark.parametrize("layer", [0, 1, 3])
def test_vectors_of_tokens_equal_the_formulas(token_encoder, layer):
    for row in token_encoder.encode(TEXTS, layer):
        states = naive_states(row.ids, naive_weights(), layer)
        np.testing.assert_allclose(row.vectors, states / np.linalg.norm(states, axis=1, keepdims=True), atol=2e-6)


@given(texts, st.integers(1, 80))
def test_no_bit_of_a_vector_depends_on_the_batch(encoder, token_encoder, batch, size):
    alone = {text: encoder.encode([text])[0] for text in batch}
    alone_tokens = {text: token_encoder.encode([text], 2)[0].vectors for text in batch}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bert, "TOKENS_PER_BATCH", size)
        together = encoder.encode(batch)
    for text, vector, row in zip(batch, together, token_encoder.encode(batch, 2), strict=True):
        np.testing.assert_array_equal(vector, alone[text])
        np.testing.assert_array_equal(row.vectors, alone_tokens[text])


def test_a_text_of_one_token_does_not_depend_on_its_batch(tmp_path, prepack):
    """Without [CLS] and [SEP]: a matrix of one row would be multiplied by another kernel."""
    folder = tiny_bert.write(tmp_path / "bare")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": None}))
    encoder = SentenceBert(find_model(str(folder)), frozenset())
    assert encoder.texts.ids(["dog"]) == [[tiny_bert.vocabulary()["dog"]]]
    together = encoder.encode(["dog", "cat", "dog", "a", "the"])
    np.testing.assert_array_equal(encoder.encode(["dog"])[0], together[0])
    np.testing.assert_array_equal(encoder.encode(["dog", "dog"]), together[[0, 2]])
    np.testing.assert_array_equal(encoder.encode(["the"])[0], together[4])


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=5), min_size=1, max_size=9))
def test_the_inputs_hold_each_pair_of_piece_and_place_once(rows):
    rows = sorted(rows, key=len)
    inputs = graph_inputs(rows)
    pairs = list(zip(inputs["pieces"], inputs["places"], strict=True))
    assert len(set(pairs)) == len(pairs)
    tokens = [(piece, place) for row in rows for place, piece in enumerate(row)]
    assert [pairs[number] for number in inputs["tokens"]] == tokens
    first, end, count, length = inputs["groups"].T
    assert dict(zip(length, count, strict=True)) == Counter(map(len, rows))
    assert [0, *end] == [*first, len(tokens)]
    assert list(end - first) == list(count * length)


@pytest.mark.parametrize(("cores", "most"), [(1, 252), (4, 125), (40, 48)])
def test_few_texts_are_shared_among_the_cores(monkeypatch, cores, most):
    """100 texts of 5 tokens: 500 tokens, 125 for each of 4 cores."""
    monkeypatch.setattr("multimodal_eval.core.machine.cores", lambda: cores)
    sizes = [5 * len(batch) for batch in bert.batches([[0] * 5] * 100)]
    assert sum(sizes) == 500
    assert most - 5 < max(sizes) <= most
