"""A parsed sentence: words with tags of the Penn Treebank and dependencies in the style of ClearNLP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from multimodal_eval.text.parsing.lemmas import lemma_of

NOUN_TAGS = frozenset({"NN", "NNS", "NNP", "NNPS"})


class Word:
    """A word, its head and its dependents in the order of the sentence."""

    __slots__ = ("children", "head", "index", "is_noun", "is_verb", "label", "lemma", "tag", "text")

    def __init__(self, index: int, text: str, tag: str, label: str) -> None:
        self.index, self.text, self.tag, self.label = index, text, tag, label
        self.is_noun = tag in NOUN_TAGS
        self.is_verb = tag[:2] == "VB"
        self.lemma = lemma_of(text, tag)
        self.head = self  # of a root: itself
        self.children: list[Word] = []

    def __repr__(self) -> str:
        return f"{self.text}/{self.tag} <-{self.label}- {self.head.text}"

    def labelled(self, *labels: str) -> Iterator[Word]:
        """The dependents with one of these labels."""
        return (child for child in self.children if child.label in labels)

    def has(self, *labels: str) -> bool:
        """Whether a dependent has one of these labels."""
        return any(child.label in labels for child in self.children)

    def attach(self, head: Word, label: str | None = None) -> None:
        """Move the word to another head."""
        if self in self.head.children:
            self.head.children.remove(self)
        self.head = head
        head.children.append(self)
        head.children.sort(key=lambda child: child.index)
        if label is not None:
            self.label = label

    def with_conjuncts(self) -> list[Word]:
        """The word and all words that are coordinated with it."""
        words = [self]
        for child in self.labelled("conj"):
            words += child.with_conjuncts()
        return words


Sentence = list[Word]


def sentence(texts: Sequence[str], tags: Sequence[str], heads: Sequence[int], labels: Sequence[str]) -> Sentence:
    """The words of a parse; `heads` are indices, and a root is its own head."""
    words = [Word(index, *word) for index, word in enumerate(zip(texts, tags, labels, strict=True))]
    for word, head in zip(words, heads, strict=True):
        if head != word.index:
            word.head = words[head]
            words[head].children.append(word)
    return words
