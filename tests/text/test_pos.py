"""The part-of-speech tagger: its accuracy on unseen captions, and the origin of its weights."""

from __future__ import annotations

import gzip
from collections import Counter
from importlib import util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.text.pos import (
    Sentence,
    read_weights,
    scores,
    shipped_weights,
    split_words,
    tag,
    tag_sentence,
    tagger_label,
)
from multimodal_eval.text.word_classes import neighbours, possible_tags, shape

ROOT = Path(__file__).parents[2]
UNIVERSAL = set("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ VERB".split())


def load_script():
    spec = util.spec_from_file_location("train_tagger", ROOT / "tools" / "train_tagger.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()
GOLD = SCRIPT.read_captions(ROOT / "tests" / "golden" / "pos_captions.tsv")


def merged(name):
    return "NOUN" if name == "PROPN" else name  # the metrics treat proper nouns as nouns


def pairs(tagger):
    """The correct and the predicted tag of every word of the gold captions."""
    for caption in GOLD:
        predicted = tagger([word for word, _ in caption])
        yield from ((merged(right), merged(name)) for (_, right), name in zip(caption, predicted, strict=True))


def accuracy(tagger):
    words = [(right, name) for right, name in pairs(tagger) if right != "PUNCT"]
    return sum(right == name for right, name in words) / len(words)


def test_the_gold_captions_have_universal_tags():
    assert len(GOLD) == 220
    assert {name for caption in GOLD for _, name in caption} <= UNIVERSAL


def test_no_gold_caption_is_in_the_training_set():
    trained = {" ".join(word for word, _ in caption).lower() for caption in SCRIPT.read_captions(SCRIPT.CAPTIONS)}
    assert not trained & {" ".join(word for word, _ in caption).lower() for caption in GOLD}


def test_its_accuracy_matches_the_documentation():
    assert accuracy(tag) >= 0.9873


@pytest.mark.parametrize(
    ("name", "precision", "recall"), [("NOUN", 0.9917, 0.9917), ("VERB", 0.9696, 0.9746), ("ADJ", 0.9519, 0.9428)]
)
def test_its_precision_and_recall_match_the_documentation(name, precision, recall):
    table = Counter(pairs(tag))
    hits = table[name, name]
    assert hits / sum(count for (_, predicted), count in table.items() if predicted == name) >= precision
    assert hits / sum(count for (right, _), count in table.items() if right == name) >= recall


def test_without_weights_the_accuracy_is_low():
    assert accuracy(lambda words: tag_sentence(words, {})) < 0.9


def test_training_reproduces_the_shipped_weights():
    trained = SCRIPT.train(SCRIPT.read_captions(SCRIPT.CAPTIONS))
    assert trained == shipped_weights()
    assert read_weights(gzip.decompress(SCRIPT.packed(trained)).decode()) == trained


def test_an_impossible_tag_in_the_training_captions_stops_the_script():
    with pytest.raises(SystemExit, match="'the' cannot be VERB"):
        SCRIPT.train([[("the", "VERB")]], epochs=1)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("a man watches watches", "DET NOUN VERB NOUN"),
        ("They train on the train.", "PRON VERB ADP DET NOUN PUNCT"),
        ("There is a dog. It is brown.", "PRON VERB DET NOUN PUNCT PRON AUX ADJ PUNCT"),
        ("A WOMAN RIDES A BIKE", "DET NOUN VERB DET NOUN"),
        ("the dog isn't barking", "DET NOUN AUX PART VERB"),
        ("3 dogs, 12 cats", "NUM NOUN PUNCT NUM NOUN"),
        ("", ""),
    ],
)
def test_tags_of_a_few_texts(text, tags):
    assert tag(split_words(text)) == tags.split()


def test_sentences_are_tagged_independently():
    first, second = split_words("A couple dances."), split_words("A street light lights the road.")
    assert tag(first + second) == tag(first) + tag(second)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The dog's bone isn't here", ["The", "dog", "'s", "bone", "is", "n't", "here"]),
        ("a close-up, (blurry) view…", ["a", "close-up", ",", "(", "blurry", ")", "view", "…"]),
        ("it’s snake_case", ["it", "'s", "snake", "_", "case"]),
    ],
)
def test_words_and_punctuation(text, words):
    assert split_words(text) == words


@given(st.text(max_size=80))
def test_every_word_gets_a_universal_tag_and_no_letter_is_lost(text):
    words = split_words(text)
    tags = tag(words)
    assert len(tags) == len(words)
    assert set(tags) <= UNIVERSAL
    assert "".join(words) == "".join(text.replace("’", "'").split()) or "’" in text or "'" in text


class Counted(list[str]):
    """A list that counts reads of its items."""

    reads = 0

    def __getitem__(self, key):
        item = super().__getitem__(key)
        self.reads += len(item) if isinstance(key, slice) else 1
        return item

    def __iter__(self):
        for item in super().__iter__():
            self.reads += 1
            yield item


def reads_per_word(text):
    sentence = Sentence(split_words(text))
    lists = sentence.words, sentence.shapes, sentence.tags = [
        Counted(row) for row in (sentence.words, sentence.shapes, sentence.tags)
    ]
    for index in range(len(sentence.words)):
        candidates = sentence.candidates(index)
        sums = scores(sentence.features(index), candidates, shipped_weights())
        sentence.add(max(candidates, key=sums.__getitem__))
    return sum(row.reads for row in lists) / len(sentence.words)


@pytest.mark.parametrize("words", ["a man near the bike and dogs ", "tall red dog house ", "sitting "])
def test_the_cost_per_word_does_not_depend_on_the_sentence_length(words):
    assert reads_per_word(words * 200) < 1.1 * reads_per_word(words * 20) < 44


def test_a_sentence_of_200_000_words_is_tagged():
    words = split_words("a man near a tall house and dogs ") * 25_000
    tags = tag(words)
    assert len(tags) == 200_000
    assert tags[8:16] == tags[-16:-8]


@pytest.mark.parametrize("text", ["x", "s", ",", "dog,cat", "\n", "a'", "n't", "é-"])
def test_a_megabyte_of_any_text_is_tagged(text):
    words = split_words(text * (1_000_000 // len(text.encode())))
    assert len(tag(words)) == len(words)


@pytest.mark.parametrize(
    ("word", "signs"),
    [("dog", "00--"), ("dogs", "ss--"), ("running", "0g0-"), ("painted", "-d0-"), ("ate", "0i--"), ("qwxz", "----")],
)
def test_shapes(word, signs):
    assert shape(word) == signs


def test_possible_tags():
    assert possible_tags("the", False) == ("DET",)
    assert possible_tags("sits", False) == ("VERB",)
    assert possible_tags("paris", True) == ("NOUN", "PROPN")
    assert possible_tags("blorply", False) == ("ADJ", "ADV", "NOUN")
    assert possible_tags("...", False) == ("PUNCT",)


def test_neighbours_distinguish_verbs_from_nouns():
    # Left: S D Q B T P N, right: S D B P W N. "sits" follows people and animals and precedes prepositions.
    assert neighbours("sits")[6] > "1"
    assert neighbours("sits")[10] == "3"
    assert neighbours("dog")[0] == "3"
    assert neighbours("qwxz") == ""


def test_the_label_names_the_weights():
    assert tagger_label().startswith("captions-1@")
    assert len(tagger_label().partition("@")[2]) == 8
