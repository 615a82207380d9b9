"""The staged aligner against exhaustive search and NLTK's greedy aligner."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from nltk.translate.meteor_score import align_words, single_meteor_score

from multimodal_eval._native import StagedMeteor, stem
from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics.meteor import compute_meteor
from multimodal_eval.text.synonyms import get_synonyms
from tests.reference.naive_alignment import align

# Few words, so that they repeat; some share a stem; synsets come from the test.
WORDS = ["walk", "walks", "walking", "dog", "dogs", "red", "sky"]


def aligned(candidate, reference, synsets=None):
    texts = StagedMeteor([" ".join(candidate)], [[" ".join(reference)]], "whitespace", "english")
    if synsets is not None:
        texts.set_synsets([synsets.get(word, []) for word in texts.words()])
    return texts.alignment(0, 0)


words = st.lists(st.sampled_from(WORDS), max_size=6)
synset_lists = st.fixed_dictionaries(
    {word: st.lists(st.integers(0, 4), max_size=2, unique=True).map(sorted) for word in WORDS}
)


@settings(max_examples=400)
@given(words, words, synset_lists)
def test_the_alignment_equals_that_of_exhaustive_search(candidate, reference, synsets):
    stems = dict(zip(WORDS, stem(WORDS, "english"), strict=True))

    def described(texts):
        return [(word, stems[word], frozenset(synsets[word])) for word in texts]

    matches, crossings, chunks, proven = aligned(candidate, reference, synsets)
    assert proven
    assert (matches, crossings, chunks) == align(described(candidate), described(reference))


def test_an_early_choice_avoids_a_later_crossing():
    # "dog" matches either "dog", but the first one would cross the match of "walk" and "walks".
    matches, crossings, _, _ = aligned(["walk", "dog"], ["dog", "walks", "dog"])
    assert matches == [(0, 1, 1), (1, 2, 0)]
    assert crossings == 0


def test_crossings_count_over_all_stages():
    # "dog" is fixed at (1, 1). "walk" matches "walks" and "walking", and only "walking" crosses nothing.
    matches, crossings, _, _ = aligned(["red", "dog", "walk"], ["walks", "dog", "walking"])
    assert matches == [(1, 1, 0), (2, 2, 1)]
    assert crossings == 0


def test_of_equal_alignments_the_leftmost_is_chosen():
    assert aligned(["dog", "red"], ["dog", "sky", "dog"])[0] == [(0, 0, 0)]


@pytest.mark.parametrize("length", [300, 3000])
def test_long_texts_keep_the_most_matches(length):
    chooser = random.Random(length)
    candidate, reference = (chooser.choices("abcdef", k=length) for _ in range(2))
    matches, crossings, chunks, proven = aligned(candidate, reference)
    assert len(matches) == sum(min(candidate.count(letter), reference.count(letter)) for letter in "abcdef")
    assert len({i for i, _, _ in matches}) == len({j for _, j, _ in matches}) == len(matches)
    assert all(candidate[i] == reference[j] for i, j, _ in matches)
    assert crossings >= 0
    assert chunks >= 1
    assert not proven


# NLTK with our WordNet instead of its own.


class Lemma:
    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name


class Synset:
    def __init__(self, names):
        self._names = names

    def lemmas(self):
        return [Lemma(name) for name in self._names]


class OurWordNet:
    """The part of WordNet that NLTK's aligner uses: the synsets of a word, each with its words."""

    def __init__(self, vocabulary):
        self._numbers = dict(zip(vocabulary, get_synonyms("wordnet", "en").synsets(vocabulary), strict=True))

    def synsets(self, word):
        numbers = set(self._numbers.get(word, ()))  # NLTK looks up stems here, which often are not words
        return [Synset([other for other, synsets in self._numbers.items() if numbers & set(synsets)])]


VOCABULARY = """a the of on in man men woman dog dogs hound car automobile cars run runs running sit sits
    sitting big large small little red street road picture photo boy child children two near table ball""".split()


def test_the_variant_of_2005_against_nltk():
    wordnet, scorer = OurWordNet(VOCABULARY), configured(compute_meteor, {"variant": "2005"}).texts_scorer()
    chooser = random.Random(2005)
    equal = better = 0
    for _ in range(600):
        reference = chooser.choices(VOCABULARY, k=chooser.randint(1, 12))
        candidate = [word if chooser.random() < 0.6 else chooser.choice(VOCABULARY) for word in reference]
        if chooser.random() < 0.5:
            chooser.shuffle(candidate)
        theirs = align_words(candidate, reference, PorterStemmer(), wordnet)[0]
        their_crossings = sum((a - c) * (b - d) < 0 for a, b in theirs for c, d in theirs) // 2
        their_chunks = sum((a - 1, b - 1) not in theirs for a, b in theirs)
        texts = scorer.aligned([" ".join(candidate)], [[" ".join(reference)]])
        matches, crossings, chunks, proven = texts.alignment(0, 0)
        assert proven
        assert len(matches) >= len(theirs)
        if len(matches) > len(theirs):  # NLTK misses synonyms whose stems are not words
            better += 1
            continue
        assert (crossings, chunks) <= (their_crossings, their_chunks)
        if (crossings, chunks) == (their_crossings, their_chunks):
            equal += 1
            (value,) = texts.score(True)[:, 0].tolist()
            nltk = single_meteor_score(reference, candidate, stemmer=PorterStemmer(), wordnet=wordnet)
            assert value == pytest.approx(nltk, abs=1e-12)
        else:
            better += 1
    assert equal > 200
    assert better > 20


def test_the_worked_example_of_nltk():
    # a 4-word candidate within a 6-word reference, in two chunks
    candidate, reference = "dog runs big beach".split(), "dog runs on the big beach".split()
    nltk = single_meteor_score(reference, candidate, wordnet=OurWordNet(candidate + reference))
    assert nltk == pytest.approx(0.646552, abs=1e-6)
    greedy = single_meteor_score("the cat the".split(), "the cat".split(), wordnet=OurWordNet(["the", "cat"]))
    assert greedy == pytest.approx(0.344828, abs=1e-6)
