"""Parsed captions for the tests, written as text: one `word/TAG/label/head` per word, heads counted from 1."""

from __future__ import annotations

from multimodal_eval.text.parsing import Sentence, sentence


def parsed(text: str) -> Sentence:
    """The sentence; the head of a root is 0."""
    words = [word.rsplit("/", 3) for word in text.split()]
    heads = [int(head) - 1 if int(head) else number for number, (*_, head) in enumerate(words)]
    texts, tags, labels = ([word[column] for word in words] for column in range(3))
    return sentence(texts, tags, heads, labels)
