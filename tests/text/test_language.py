from __future__ import annotations

import pytest

from multimodal_eval.text.languages import language_of_texts


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["a cat"], "en"),
        (["кошка"], "ru"),
        (["это iPhone"], "en"),  # 3 Cyrillic letters, 6 Latin ones
        (["вот это iPhone"], "ru"),  # 6 and 6: half is enough
        (["кот", "a big cat"], "en"),  # all texts together
        (["кот и собака", "cat"], "ru"),
        (["a café"], "en"),  # Latin, not ASCII
        (["42"], "en"),
        (["—", "3 + 4 = 7"], "en"),
        (["日本"], "en"),
        (["№ 5, да"], "ru"),
        ([], "en"),
    ],
)
def test_half_of_the_letters_decide(texts, language):
    assert language_of_texts(texts) == language
