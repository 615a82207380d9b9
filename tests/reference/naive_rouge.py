"""ROUGE from its definition with plain tables, for tests only."""

from __future__ import annotations

import re
from collections import Counter


def words_of(text, stem=None):
    words = re.findall("[a-z0-9]+", text.lower())
    return words if stem is None else [stem(word) if len(word) > 3 else word for word in words]


def figures(hits, candidate, reference):
    precision, recall = hits / max(candidate, 1), hits / max(reference, 1)
    return precision, recall, 2 * precision * recall / (precision + recall) if hits else 0.0


def rouge_n(candidate, references, n, stem=None):
    def grams(text):
        words = words_of(text, stem)
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    mine = grams(candidate)
    each = [figures((mine & theirs).total(), mine.total(), theirs.total()) for theirs in map(grams, references)]
    return max(each, key=lambda row: row[2])


def subsequence(reference, candidate):
    """The places in the reference of one longest common subsequence, found from the end."""
    table = [[0] * (len(candidate) + 1) for _ in range(len(reference) + 1)]
    for i, left in enumerate(reference, 1):
        for j, right in enumerate(candidate, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if left == right else max(table[i - 1][j], table[i][j - 1])
    places, i, j = set(), len(reference), len(candidate)
    while i and j:
        if reference[i - 1] == candidate[j - 1]:
            i, j = i - 1, j - 1
            places.add(i)
        elif table[i][j - 1] > table[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return places


def rouge_lsum(candidate, references, stem=None):
    def sentences(text):
        return [words_of(line, stem) for line in text.split("\n")]

    mine = sentences(candidate)
    each = []
    for reference in references:
        theirs = sentences(reference)
        left = Counter(word for line in mine for word in line)
        right = Counter(word for line in theirs for word in line)
        lengths, hits = (left.total(), right.total()), 0
        for line in theirs:
            for place in sorted(set().union(*(subsequence(line, other) for other in mine))):
                word = line[place]
                if left[word] and right[word]:
                    left[word], right[word], hits = left[word] - 1, right[word] - 1, hits + 1
        each.append(figures(hits, *lengths))
    return max(each, key=lambda row: row[2])
