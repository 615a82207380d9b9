"""hallucination_metric: computed by hand with given vectors, and with the real encoder if it has been fetched."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from multimodal_eval import Sample
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics import hallucination_metric
from multimodal_eval.evaluation.metrics.hallucination_metric import (
    NEUTRAL,
    HallucinationScorer,
    compute_hallucination_metric,
)
from multimodal_eval.text.pos import content_words


class Vectors:
    """An encoder with given cosines; every other text has a separate axis and a cosine of 0 with the rest."""

    label = "by-hand"
    size = 400
    languages = frozenset({"en"})
    longest = 1000

    def __init__(self, unknown=(), **cosines):
        self.unknown = unknown
        self.axes: dict[str, int] = {}
        self.cosines = cosines
        self.calls = 0

    def axis(self, text):
        row = np.zeros(self.size, dtype=np.float32)
        row[self.axes.setdefault(text, len(self.axes))] = 1
        return row

    def encode(self, texts):
        self.calls += 1
        assert len(set(texts)) == len(texts)
        return np.array([self.row(text) for text in texts], dtype=np.float32)

    def are_cut(self, texts):
        return [len(text) > self.longest for text in texts]

    def row(self, text):
        if text in self.unknown:
            return np.zeros(self.size)
        if text not in self.cosines:
            return self.axis(text)
        other, cosine = self.cosines[text]
        return cosine * self.axis(other) + sqrt(1 - cosine**2) * self.axis(text)


def sample(answer, *references):
    return Sample(id="1", generated_answer=answer, references=list(references))


def score(answer, *references, **cosines):
    subject = sample(answer, *references)
    return score_batch(compute_hallucination_metric, HallucinationScorer(Vectors(**cosines)), [subject])[0]


def parts(result):
    return result.parts["hallucination_raw"], result.details["hallucinated_objects"]


def test_an_answer_that_equals_a_reference_is_fully_supported():
    result = score("a dog runs", "a dog runs")
    assert parts(result) == (0.0, [])
    assert result.value == pytest.approx(0.4 + 0.6)


def test_value_by_hand():
    # Content words: man 1, rides 0.8, red 0.3, horse 1; "red" and "horse" have no support: 1.3 of 3.1.
    result = score(
        "a man rides a red horse", "a man riding a bike", **{"a man rides a red horse": ("a man riding a bike", 0.5)}
    )
    raw = 1.3 / 3.1
    assert result.details == {"hallucinated_objects": ["red", "horse"]}
    assert result.parts == pytest.approx(
        {"hallucination_raw": raw, "hallucination_score": 1 - raw, "semantic_similarity": 0.5}
    )
    assert result.value == pytest.approx(0.4 * (1 - (raw - 0.1)) + 0.6 * 0.5)


def test_a_tenth_of_the_weight_is_tolerated():
    # "red" has 0.3 of the weight of 4.3, less than a tenth: it is listed, but not penalised.
    result = score("a red dog, a cat, a bus and a tree", "dog, cat, bus, tree")
    assert parts(result) == (pytest.approx(0.3 / 4.3), ["red"])
    assert result.value == pytest.approx(0.4)


@pytest.mark.parametrize(("cosine", "supported"), [(0.76, True), (0.74, False)])
def test_support_starts_at_a_cosine_of_three_quarters(cosine, supported):
    result = score("a puppy", "a dog", puppy=("dog", cosine))
    assert (parts(result)[1] == []) is supported


def test_support_comes_only_from_words_of_the_same_part_of_speech():
    assert parts(score("a couple dances", "a dance", dance=("couple", 0.0)))[1] == ["dances"]


@pytest.mark.parametrize(("cosine", "forgiven"), [(0.81, True), (0.79, False)])
def test_a_word_close_to_a_neutral_one_is_forgiven(cosine, forgiven):
    result = score("a portrait of a dog", "a dog", portrait=("photo", cosine))
    assert parts(result) == ((0.0, []) if forgiven else (0.5, ["portrait"]))


def test_neutral_words_and_auxiliaries_are_not_claims():
    assert parts(score("The image shows a dog that is being washed", "people wash their dog")) == (0.0, [])


def test_inflected_forms_need_no_encoder_to_match():
    assert parts(score("two geese swam", "a goose swims")) == (0.0, [])


def test_a_repeated_word_counts_once():
    assert parts(score("a dog and a dog and two dogs and a cat", "a dog")) == (0.5, ["cat"])
    # "ride" and "riding" are one claim of 0.8, next to three nouns.
    assert parts(score("they ride a bike and he is riding a bus and a cat", "bike, bus, cat"))[0] == 0.8 / 3.8


def test_the_base_form_is_embedded():
    assert parts(score("he is staring", "he gazes", stare=("gaze", 0.8))) == (0.0, [])
    assert parts(score("he is staring", "he gazes", star=("gaze", 0.8))) == (1.0, ["staring"])


def test_the_closest_of_several_base_forms_counts():
    # "men" is itself in WordNet, and a form of "man"; likewise "hands" and "hand".
    assert parts(score("two men", "a guy", man=("guy", 0.8))) == (0.0, [])
    assert parts(score("two men", "a guy", men=("guy", 0.8))) == (0.0, [])
    assert parts(score("a paw", "two hands", paw=("hand", 0.8))) == (0.0, [])


def test_many_words_are_compared_in_chunks(monkeypatch):
    subject = ("a puppy, a cat, a bus and a pony", "a dog and a horse")
    vectors = {"puppy": ("dog", 0.8), "pony": ("horse", 0.8)}
    whole = score(*subject, **vectors)
    monkeypatch.setattr(hallucination_metric, "CELLS_AT_ONCE", 1)
    assert score(*subject, **vectors) == whole
    assert parts(whole) == (0.5, ["cat", "bus"])


def test_a_text_is_tagged_once(monkeypatch):
    tagged = []

    def counted(text):
        tagged.append(text)
        return content_words(text)

    monkeypatch.setattr(hallucination_metric, "content_words", counted)
    score("a red cat sleeps", "a dog", "a puppy")
    assert sorted(tagged) == ["a dog", "a puppy", "a red cat sleeps"]


def test_all_references_support_and_the_best_one_is_compared():
    answer = "a dog and a cat"
    result = score(answer, "a dog", "a cat", **{answer: ("a cat", 0.9)})
    assert parts(result) == (0.0, [])
    assert result.parts["semantic_similarity"] == pytest.approx(0.9)


def test_a_negative_cosine_counts_as_0():
    result = score("a dog", "the dog", **{"a dog": ("the dog", -0.5)})
    assert result.parts["semantic_similarity"] == 0.0
    assert result.value == pytest.approx(0.4)


def test_without_content_words_nothing_is_hallucinated():
    assert parts(score("yes", "a dog")) == (0.0, [])
    assert parts(score("a dog", "yes")) == (1.0, ["dog"])


def test_a_blank_answer_scores_worst_and_is_never_encoded():
    encoder = Vectors()
    result = score_batch(compute_hallucination_metric, HallucinationScorer(encoder), [sample(" ", "a dog")])[0]
    assert (result.value, result.warning, encoder.calls) == (0.0, "blank_answer", 0)
    assert result.parts == {"hallucination_raw": 1.0, "hallucination_score": 0.0, "semantic_similarity": 0.0}


def test_a_batch_is_encoded_in_one_call():
    encoder = Vectors()
    batch = [sample("a dog", "a cat"), sample("a bus", "a cat"), sample("a dog", "a dog")]
    values = [result.value for result in HallucinationScorer(encoder).score(batch)]
    assert encoder.calls == 1
    assert values == [HallucinationScorer(Vectors()).score([subject])[0].value for subject in batch]


def test_called_directly_it_returns_the_published_dict(monkeypatch):
    monkeypatch.setattr(type(compute_hallucination_metric), "encoder", lambda self: Vectors())
    metric = configured(compute_hallucination_metric, {})
    assert metric(sample("a cat", "a dog")) == {
        "hallucinated_objects": ["cat"],
        "hallucination_raw": 1.0,
        "hallucination_score": 0.0,
        "semantic_similarity": 0.0,
        "composite_score": pytest.approx(0.4 * 0.1),
    }
    assert metric(sample(" ", "a dog"))["composite_score"] == 0.0
    assert metric(Sample(id="1", generated_answer="a dog")) == 0.0
    assert metric(sample("a dog", " ")) == 0.0  # in a run: `missing_input`


def test_options_are_checked():
    with pytest.raises(ConfigError, match="encoder"):
        configured(compute_hallucination_metric, {"encodr": "x"})
    with pytest.raises(ConfigError, match="must be a name"):
        configured(compute_hallucination_metric, {"encoder": 3})


def test_a_text_that_the_encoder_cuts_is_a_warning():
    def warning(answer, *references, nearest):
        return score(answer, *references, **{nearest: (answer, 0.9)}).warning

    long = "a dog " * 200
    assert score("a dog", "the dog").warning is None
    assert score(long, "a dog").warning == "text_cut"
    assert warning("a cat", "a dog", long, nearest=long) == "text_cut"
    assert warning("a cat", "a dog", long, nearest="a dog") is None


def test_a_text_of_unknown_words_is_unscored():
    for unknown in ("a dog", "a cat"):
        result = score("a dog", "a cat", unknown=[unknown])
        assert (result.value, result.status, result.reason) == (
            None,
            "degenerate",
            "the encoder does not know any word of the text",
        )
    other = score("a dog", "a cat", "the dog", unknown=["a cat"], **{"a dog": ("the dog", -0.5)})
    assert (other.status, other.parts["semantic_similarity"]) == ("ok", 0.0)


def test_the_tagger_and_the_encoder_must_support_the_language(monkeypatch):
    russian = ("Собака бежит по пляжу", "Пёс бежит")
    assert score(*russian).warning == "language_unfit"
    assert score("a dog", "a cat", russian[0]).warning == "language_unfit"
    monkeypatch.setattr(Vectors, "languages", frozenset({"ru"}))
    assert score(*russian).warning == "language_unfit"
    assert score("a dog runs", "a dog on the beach").warning == "language_unfit"
    monkeypatch.setattr(Vectors, "languages", frozenset())  # the encoder's languages are unknown
    assert score("a dog runs", "a dog on the beach").warning is None


def test_neutral_words_are_base_forms():
    assert all(word == word.lower() and word.replace("-", "").isalpha() for word in NEUTRAL)


@pytest.mark.weights
def test_synonyms_are_supported_with_the_real_encoder(weights):
    result = compute_hallucination_metric(sample("a photo of a puppy on a sofa", "a dog lies on a couch"))
    assert result["hallucinated_objects"] == []
    assert result["hallucination_score"] == 1.0


@pytest.mark.weights
def test_a_hallucinated_object_is_named_with_the_real_encoder(weights):
    result = compute_hallucination_metric(sample("a dog and an airplane on a beach", "a dog runs on the beach"))
    assert result["hallucinated_objects"] == ["airplane"]
    assert result["hallucination_raw"] == pytest.approx(1 / 3)


@pytest.mark.weights
def test_a_true_answer_beats_an_invented_one_with_the_real_encoder(weights):
    reference = "a woman rides a brown horse along the shore"
    true_answer = compute_hallucination_metric(sample("a woman on a horse at the beach", reference))
    invented = compute_hallucination_metric(sample("two men repair a truck in a garage", reference))
    assert true_answer["composite_score"] > 0.7 > 0.2 > invented["composite_score"]


@pytest.mark.weights
def test_unknown_and_foreign_texts_with_a_russian_encoder(weights):
    metric = configured(compute_hallucination_metric, {"encoder": "navec-ru"})
    unknown, russian = score_batch(
        metric, metric.open(None), [sample("ыыыъ", "Пёс бежит"), sample("Собака бежит", "Пёс бежит")]
    )
    assert (unknown.value, unknown.status) == (None, "degenerate")
    assert russian.warning == "language_unfit"  # for the tagger


@pytest.mark.weights
def test_a_long_answer_is_cut_by_the_real_encoder(weights):
    metric = compute_hallucination_metric
    assert score_batch(metric, metric.open(None), [sample("a dog and a cat " * 100, "a dog")])[0].warning == "text_cut"
