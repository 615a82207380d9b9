"""SPICE and SPIDEr as metrics: values worked out by hand, parts, details, messages."""

from __future__ import annotations

from importlib import import_module

import msgspec
import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.corpus import corpus_key, default_state, fitted
from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.text.languages import UNFIT

DOG = Sample(
    id="1", generated_answer="a brown dog on a sofa", references=["a dog on a couch", "a big dog sleeps on a red couch"]
)
BIRDS = Sample(id="2", generated_answer="two birds", references=["three birds on a wire"])
RUSSIAN = Sample(id="3", generated_answer="собака на диване", references=["собака спит на диване"])
HORSE = Sample(id="4", generated_answer="a man riding a horse", references=["a man rides a horse"])


def scored(name, samples, **options):
    metric = configured(resolve(name), options)
    state = fitted(metric, samples) if metric.corpus else default_state(metric)
    return score_batch(metric, metric.open(state), samples)


def test_without_the_parser_the_message_says_how_to_get_it():
    for name in ("spice", "spider"):
        assert "mmeval fetch en-core-web-sm" in str(resolve(name).unavailable())
        assert resolve(name).resources() == ("en-core-web-sm",)
    with pytest.raises(UnavailableError, match="mmeval fetch en-core-web-sm"):
        import_module("multimodal_eval.evaluation.metrics.spice").spice("a dog", ["a dog"])


def test_the_signature_names_the_parser():
    signature = str(signature_of(resolve("spice")))
    assert signature == "spice|v:2|parser:en-core-web-sm-3.6.0@4206b8f3|synonyms:wordnet-3.0|tokenizer:ptb"
    assert str(signature_of(configured(resolve("spice"), {"openings": "plain"}))).endswith("|openings:plain")


def test_spider_shares_its_corpus_statistics_with_cider_d():
    assert corpus_key(resolve("spider")) == corpus_key(resolve("cider_d"))


def test_references_must_be_a_list():
    with pytest.raises(ConfigError, match="spice needs a list of at least one reference"):
        import_module("multimodal_eval.evaluation.metrics.spice").spice("a dog", "a dog")


@pytest.mark.weights
def test_values_by_hand(weights):
    dog, birds = scored("spice", [DOG, BIRDS])
    # Candidate: dog, sofa, (dog, brown), (dog, on, sofa). References: dog, couch, (dog, big), (couch, red),
    # (dog, on, couch), (dog, sleep on, couch). Sofa and couch are synonyms: 3 of 4 and of 6 match.
    assert dog.value == pytest.approx(2 * 3 / (4 + 6))
    assert dog.parts == pytest.approx(
        {"precision": 3 / 4, "recall": 3 / 6, "object": 1.0, "attribute": 0.0, "relation": 2 / 3, "color": 0, "size": 0}
    )
    assert dog.details == {
        "matched_objects": ["dog", "sofa"],
        "matched_relations": ["dog, on, sofa"],
        "only_in_answer_attributes": ["dog: brown"],
        "only_in_references_attributes": ["dog: big", "couch: red"],
        "only_in_references_relations": ["dog, sleep on, couch"],
    }
    # bird, (bird, 2) against bird, (bird, 3), wire, (bird, on, wire)
    assert birds.value == pytest.approx(2 * 1 / (2 + 4))
    assert birds.parts["count"] == 0


@pytest.mark.weights
def test_openings_are_read_as_the_original_does_or_plainly(weights):
    # original: man, horse without a relation, against man, horse, (man, ride, horse); plain: all three match
    assert scored("spice", [HORSE])[0].value == pytest.approx(2 * 2 / 5)
    # riding, horse, snow, (riding, man), (horse, in, snow) against man, horse, (man, ride, horse): horse matches
    in_snow = msgspec.structs.replace(HORSE, generated_answer="a man riding a horse in snow")
    assert scored("spice", [in_snow])[0].value == pytest.approx(2 * 1 / 8)
    assert scored("spice", [HORSE], openings="plain")[0].value == 1
    spice = import_module("multimodal_eval.evaluation.metrics.spice").spice
    assert spice("a man riding a horse", ["a man rides a horse"], openings="plain") == 1


@pytest.mark.weights
def test_other_languages_get_a_warning(weights):
    assert scored("spice", [RUSSIAN])[0].warning == UNFIT
    assert scored("spice", [DOG])[0].warning is None


@pytest.mark.weights
def test_spider_is_the_mean_of_spice_and_cider_d(weights):
    samples = [DOG, BIRDS, HORSE]
    for spider, spice, cider_d in zip(*(scored(name, samples) for name in ("spider", "spice", "cider_d")), strict=True):
        assert spider.value == (spice.value + cider_d.value) / 2
        assert spider.parts == {"spice": spice.value, "cider_d": cider_d.value}


@pytest.mark.weights
def test_a_run_has_intervals_and_the_preset_contains_both(weights):
    samples = [
        {"id": n, "generated_answer": s.generated_answer, "references": s.references}
        for n, s in enumerate([DOG, BIRDS, HORSE] * 4)
    ]
    run = evaluate(samples, metrics=["coco"])
    for name in ("spice", "spider"):
        entry = run.entries[name]
        assert entry.n_scored == 12
        assert entry.low < entry.value < entry.high
    assert run.entries["spice"].parts["object"].value > 0
