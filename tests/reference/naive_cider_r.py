"""CIDEr-R directly from its formulas, for tests only."""

from __future__ import annotations

import re
from collections import Counter
from math import exp, log, prod, sqrt

from tests.reference.naive_cider import grams


def cider_r(candidate, references, corpus, tokenize, longest=4):
    """`corpus` is a list of reference lists, one per image."""
    images = [
        {g for text in texts for n in range(1, longest + 1) for g in grams(tokenize(text), n)} for texts in corpus
    ]
    total = 0.0
    for reference in references:
        for n in range(1, longest + 1):
            a, b = (weights(tokenize(text), n, images) for text in (candidate, reference))
            norm = sqrt(sum(x * x for x in a.values())) * sqrt(sum(x * x for x in b.values()))
            shared = sum(min(a[g], b[g]) * b[g] for g in a if g in b)
            total += penalty(tokenize(candidate), tokenize(reference)) * (shared / norm if norm else shared)
    return 10 * total / longest / len(references)


def weights(tokens, n, images):
    return {
        gram: count * (log(len(images)) - log(max(1, sum(gram in image for image in images))))
        for gram, count in Counter(grams(tokens, n)).items()
    }


def penalty(candidate, reference):
    ours, theirs = (Counter(re.findall(r"\w+", " ".join(tokens))) for tokens in (candidate, reference))
    shares = [1 / (1 + (abs(n - theirs[word]) if word in theirs else n - 1)) for word, n in ours.items()]
    repetition = prod(shares) ** (1 / len(shares)) if shares else 1.0
    left, right = max(len(candidate), 1), max(len(reference), 1)
    return repetition**0.8 * exp(-(((left - right) / right) ** 2)) ** 0.2
