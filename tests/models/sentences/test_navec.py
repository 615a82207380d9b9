"""The Russian encoder based on navec's word vectors."""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval.models.encoders import open_sentence_encoder
from multimodal_eval.models.source import find_model

pytestmark = pytest.mark.weights
PARAPHRASES = [
    ("Собака бежит по пляжу", "Пёс несётся вдоль берега моря"),
    ("Мужчина играет на гитаре", "Музыкант исполняет песню на гитаре"),
    ("Кошка спит на диване", "Кот дремлет на софе"),
    ("Дети играют в парке", "Ребята гуляют в саду"),
]


def test_russian_paraphrases_are_similar_and_unrelated_texts_are_not(weights):
    encoder = open_sentence_encoder("navec-ru")
    left, right = (encoder.encode([pair[side] for pair in PARAPHRASES]) for side in (0, 1))
    assert (left * right).sum(axis=1).min() > 0.5
    unrelated = encoder.encode(["Правительство приняло новый закон", "Курс доллара вырос"])
    assert (left @ unrelated.T).max() < 0.2


def test_word_vectors_equal_those_of_navec(weights):
    from navec import Navec

    from multimodal_eval.models.sentences.tokens import FILE, NavecFile

    path = find_model("navec-ru").file(FILE)
    theirs, ours = Navec.load(str(path)), NavecFile(path)
    words = ["собака", "в", "актёр", "<unk>", "санкт-петербург"]
    vectors = ours.vectors([ours.words.index(word) for word in words])
    assert np.array_equal(vectors, np.stack([theirs[word] for word in words]))


def test_a_text_without_a_known_word_has_the_zero_vector(weights):
    encoder = open_sentence_encoder("navec-ru")
    vectors = encoder.encode(["ыыыъ", "", "самолёт", "самолет"])
    assert not vectors[:2].any()
    assert np.allclose(np.linalg.norm(vectors[2:], axis=1), 1)
    assert vectors[2] @ vectors[3] > 0.5  # spelt with and without ё; navec may have one row or two
