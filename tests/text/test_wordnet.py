from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.text.packed import unpacked
from multimodal_eval.text.wordnet import WordNet, is_regular_form
from tests.golden.load import golden

ENGLISH = WordNet()
WORDS = "car automobile dogs dog hound went go axes axe axis xyzzy 24/7 o'clock".split()


def synonyms(left: str, right: str) -> bool:
    first, second = ENGLISH.synsets([left, right])
    return not set(first).isdisjoint(second)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("car", "automobile"),
        ("cars", "automobile"),  # s
        ("buses", "coach"),  # ses -> s
        ("boxes", "loge"),  # xes -> x
        ("churches", "church"),  # ches -> ch
        ("policemen", "officer"),  # men -> man
        ("babies", "infant"),  # ies -> y
        ("riding", "drive"),  # ing -> e
        ("walked", "walk"),  # ed
        ("larger", "bigger"),  # large and big, through er -> e and the irregular forms
        ("largest", "big"),  # est -> e
        ("mice", "mouse"),  # irregular
        ("oxen", "ox"),  # irregular, and ox has no synonym: they share its synset of one word
        ("went", "travel"),
        ("better", "good"),
        ("axes", "axis"),  # three base forms, all count
        ("axes", "ax"),
        ("axes", "axe"),
        ("women", "charwoman"),  # irregular, and men -> man
        ("paris", "paris"),  # lower-cased
        ("usa", "america"),
        ("comics", "strip"),  # an irregular form of "comic strip"
        ("galore", "galore"),  # in the files as galore(ip)
        ("singings", "sing"),  # two steps: singings is not a word, singing is a noun; as a verb s, then ing
    ],
)
def test_synonyms(left, right):
    assert synonyms(left, right)
    assert synonyms(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("dog", "cat"),
        ("princesses", "prince"),  # princess is a word: no second step
        ("car", "cable"),  # cable_car is a phrase
        ("xyzzy", "xyzzy"),
        ("", ""),
        ("Car", "auto"),  # words must be in lower case
        ("s" * 101, "s"),  # no word is that long
    ],
)
def test_no_synonyms(left, right):
    assert not synonyms(left, right)


def test_every_pair_of_nltk_matches():
    rows = golden("wordnet.json.gz")["rows"]
    missed = [(word, name) for word, names in rows.items() for name in names if not synonyms(word, name)]
    assert len(rows) == 4500
    assert missed == []


def test_numbers_are_sorted_and_a_batch_equals_its_single_words():
    batch = ENGLISH.synsets(WORDS)
    assert batch == [ENGLISH.synsets([word])[0] for word in WORDS]
    assert batch[::-1] == ENGLISH.synsets(WORDS[::-1])
    assert all(list(numbers) == sorted(set(numbers)) for numbers in batch)
    assert ENGLISH.synsets([]) == []


@given(st.lists(st.text("aeinmsgdrtx'-", max_size=12)))
def test_any_word_is_accepted(words):
    assert all(synonyms(left, right) == synonyms(right, left) for left, right in product(words[:4], repeat=2))
    assert len(ENGLISH.synsets(words)) == len(words)


def test_threads_share_one_source():
    fresh = WordNet()
    with ThreadPoolExecutor(8) as pool:
        assert all(synsets == ENGLISH.synsets(WORDS) for synsets in pool.map(fresh.synsets, [WORDS] * 32))


def test_the_shipped_table():
    # The output of tools/build_wordnet.py for WordNet 3.0.
    text = unpacked("wordnet.tsv.br")
    assert hashlib.sha256(text).hexdigest() == "22c746a03a6e15e7d2b0c1f91abc9da52e5b656f4f105f39827137d89beb4c93"
    assert [block.count(b"\n") + 1 for block in text.strip().split(b"\n\n")] == [
        *(57_510, 8_700, 20_983, 3_767),
        *(1_413, 1_860, 1_186, 7),
    ]


@pytest.mark.parametrize(
    ("lemma", "forms"),
    [
        ("ride", "ride rides riding"),
        ("rid", "rids ridding ridded"),
        ("stare", "stares stared staring"),
        ("star", "stars starred starring"),
        ("quit", "quits quitting"),
        ("park", "parks parked parking"),
        ("fix", "fixes fixed fixing"),
        ("watch", "watches watched"),
        ("bus", "buses"),
        ("potato", "potatoes"),
        ("photo", "photos"),
        ("carry", "carries carried carrying"),
        ("play", "plays played playing"),
        ("row", "rows rowed rowing"),
        ("see", "sees seeing"),
        ("dye", "dyed dyeing"),
        ("ski", "skis skied skiing"),
        ("big", "bigger biggest"),
        ("large", "larger largest"),
        ("happy", "happier happiest"),
        ("tall", "taller tallest"),
    ],
)
def test_regular_forms(lemma, forms):
    assert [form for form in forms.split() if not is_regular_form(form, lemma)] == []


@pytest.mark.parametrize(
    ("form", "lemma"),
    [
        ("riding", "rid"),
        ("rides", "rid"),
        ("dining", "din"),
        ("staring", "star"),
        ("bathes", "bath"),
        ("boss", "bos"),
        ("skies", "ski"),
        ("dying", "dye"),
        ("men", "man"),
    ],
)
def test_other_forms(form, lemma):
    assert not is_regular_form(form, lemma)
