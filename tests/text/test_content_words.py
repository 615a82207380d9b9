"""Content words: parts of speech, base forms, duplicates."""

from __future__ import annotations

import pytest

from multimodal_eval.text import pos
from multimodal_eval.text.pos import cached_by_text, content_words


def words_and_forms(text):
    return [(word.word, word.part, word.lemmas) for word in content_words(text)]


def test_parts_of_speech_and_base_forms():
    assert words_and_forms("Anna's dogs ran; the taller one was parked.") == [
        ("anna", "NOUN", ("anna",)),
        ("dogs", "NOUN", ("dog",)),
        ("ran", "VERB", ("run",)),
        ("taller", "ADJ", ("tall",)),
        ("one", "NOUN", ("one",)),
        ("parked", "VERB", ("park",)),
    ]


@pytest.mark.parametrize(
    ("text", "word", "lemmas"),
    [
        ("he is riding", "riding", ("ride",)),
        ("she rides a bike", "rides", ("ride",)),
        ("a couple is dining outside", "dining", ("dine",)),
        ("he is staring", "staring", ("stare",)),
        ("two men", "men", ("men", "man")),  # WordNet has "men" as a separate word: the work force
        ("she is bathing", "bathing", ("bathe", "bath")),  # both are regular
        ("a man busing tables", "busing", ("bus",)),  # irregular and in no list, but the only candidate
        ("a blorple", "blorple", ("blorple",)),
    ],
)
def test_base_forms_follow_english_spelling(text, word, lemmas):
    assert [content.lemmas for content in content_words(text) if content.word == word] == [lemmas]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("they ride and he is riding and she rides", ["ride"]),
        ("two men and a man", ["men"]),
        ("a man and two men", ["man"]),
        ("they dance a dance", ["dance", "dance"]),  # a verb and a noun
    ],
)
def test_words_with_a_common_base_form_count_once(text, words):
    assert [word.word for word in content_words(text)] == words


def test_only_short_texts_are_cached(monkeypatch):
    monkeypatch.setattr(pos, "MAX_LENGTH", 3)
    calls = []

    @cached_by_text
    def upper(text):
        calls.append(text)
        return text.upper()

    assert [upper(text) for text in ("dog", "dog", "dogs", "dogs")] == ["DOG", "DOG", "DOGS", "DOGS"]
    assert calls == ["dog", "dogs", "dogs"]
