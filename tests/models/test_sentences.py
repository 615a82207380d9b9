"""The sentence encoders against sentence-transformers and navec."""

from __future__ import annotations

import base64
import random
import shutil

import numpy as np
import pytest

from multimodal_eval.core.errors import ModelError, UnavailableError
from multimodal_eval.models import encoders
from multimodal_eval.models.encoders import check_sentence_encoder, open_sentence_encoder, sentence_encoder_label
from multimodal_eval.models.sentences import find
from multimodal_eval.models.source import find_model
from tests.golden.load import golden

pytestmark = pytest.mark.weights
MINILM = "all-minilm-l6-v2"


def recorded():
    vectors = golden("sentences.json.gz")["vectors"]
    return {text: np.frombuffer(base64.b64decode(packed), "<f4") for text, packed in vectors.items()}


def test_vectors_are_those_of_sentence_transformers(weights):
    expected = recorded()
    vectors = open_sentence_encoder(MINILM).encode(list(expected))
    assert np.abs(vectors - np.stack(list(expected.values()))).max() < 1e-5


def test_a_text_has_the_same_vector_alone_and_among_others(weights, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    encoder = find(MINILM).open()
    texts = [*recorded(), "a cat", "a dog", "the cat sat"]
    together = encoder.encode(texts)
    assert all(np.array_equal(encoder.encode([text])[0], row) for text, row in zip(texts, together, strict=True))
    order = list(range(len(texts)))
    random.Random(4).shuffle(order)
    assert np.array_equal(encoder.encode([texts[i] for i in order] * 2)[: len(texts)], together[order])


def test_what_was_encoded_is_read_from_disk(weights, monkeypatch):
    text = "a text that no other test encodes"
    encoders._opened_sentence_encoder.cache_clear()
    fresh = open_sentence_encoder(MINILM).encode([text])
    encoders._opened_sentence_encoder.cache_clear()
    encoder = open_sentence_encoder(MINILM)
    monkeypatch.setattr(encoder.inner, "encode", None)  # whoever asks the model now fails
    assert np.array_equal(encoder.encode([text, text]), np.repeat(fresh, 2, axis=0))


def test_long_texts_are_said_to_be_cut(weights):
    texts = ["a dog", "dog " * 254, "dog " * 255, "d" * 300]
    assert open_sentence_encoder(MINILM).are_cut(texts) == [False, False, True, False]


def test_int8_is_near_and_says_so(weights):
    texts = [text for text in recorded() if text][:12]
    exact, rough = open_sentence_encoder(MINILM), open_sentence_encoder(f"{MINILM}+int8")
    assert rough.label == f"{exact.label}+int8"
    assert (exact.encode(texts) * rough.encode(texts)).sum(axis=1).min() > 0.95


def test_a_directory_is_an_encoder_too(weights, tmp_path):
    folder = tmp_path / "my-encoder"
    shutil.copytree(find_model(MINILM).folder, folder)
    mine = open_sentence_encoder(str(folder))
    assert mine.label.startswith("my-encoder@")
    assert mine.languages == frozenset()
    assert np.array_equal(mine.encode(["a dog"]), open_sentence_encoder(MINILM).encode(["a dog"]))
    (folder / "config.json").write_text((folder / "config.json").read_text().replace("1e-12", "1e-11"))
    assert sentence_encoder_label(str(folder)) != mine.label


def test_a_cut_off_weight_file_is_refused(weights, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(find_model(MINILM).folder, folder)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:50_000_000])
    with pytest.raises(ModelError, match="cut off"):
        open_sentence_encoder(str(folder))


def test_a_model_that_is_not_here_says_how_to_get_it():
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


PARAPHRASES = [
    ("Собака бежит по пляжу", "Пёс несётся вдоль берега моря"),
    ("Мужчина играет на гитаре", "Музыкант исполняет песню на гитаре"),
    ("Кошка спит на диване", "Кот дремлет на софе"),
    ("Дети играют в парке", "Ребята гуляют в саду"),
]


def test_russian_paraphrases_are_near_and_other_texts_are_not(weights):
    encoder = open_sentence_encoder("navec-ru")
    left, right = (encoder.encode([pair[side] for pair in PARAPHRASES]) for side in (0, 1))
    assert (left * right).sum(axis=1).min() > 0.5
    unrelated = encoder.encode(["Правительство приняло новый закон", "Курс доллара вырос"])
    assert (left @ unrelated.T).max() < 0.2


def test_russian_words_are_navecs(weights):
    from navec import Navec

    from multimodal_eval.models.navec import FILE, NavecFile

    path = find_model("navec-ru").file(FILE)
    theirs, ours = Navec.load(str(path)), NavecFile(path)
    words = ["собака", "в", "актёр", "<unk>", "санкт-петербург"]
    vectors = ours.vectors([ours.words.index(word) for word in words])
    assert np.array_equal(vectors, np.stack([theirs[word] for word in words]))


def test_a_text_without_a_known_word_has_no_direction(weights):
    encoder = open_sentence_encoder("navec-ru")
    vectors = encoder.encode(["ыыыъ", "", "самолёт", "самолет"])
    assert not vectors[:2].any()
    assert np.allclose(np.linalg.norm(vectors[2:], axis=1), 1)
    assert vectors[2] @ vectors[3] > 0.5  # with ё and without: two rows of navec's, or one
