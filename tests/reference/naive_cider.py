"""CIDEr directly from the paper's equations, for tests only."""

from __future__ import annotations

from math import log, sqrt


def grams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def cider(candidate, references, corpus, tokenize, longest=4):
    """`corpus` is a list of reference lists, one per image; `longest` the number of n-gram orders."""
    images = [
        {g for text in texts for n in range(1, longest + 1) for g in grams(tokenize(text), n)} for texts in corpus
    ]
    total = 0.0
    for n in range(1, longest + 1):
        for reference in references:
            total += cosine(vector(tokenize(candidate), n, images), vector(tokenize(reference), n, images))
    return total / (longest * len(references))


def vector(tokens, n, images):
    ngrams = grams(tokens, n)
    weights = {}
    for gram in ngrams:
        df = sum(gram in image for image in images)
        weights[gram] = ngrams.count(gram) / len(ngrams) * log(len(images) / max(1, df))
    return weights


def cosine(a, b):
    norm = sqrt(sum(x * x for x in a.values())) * sqrt(sum(x * x for x in b.values()))
    return sum(a[g] * b[g] for g in a if g in b) / norm if norm else 0.0
