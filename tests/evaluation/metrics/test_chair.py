"""CHAIR_i and CHAIR_s, with values computed by hand."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files

import numpy as np
import pytest

from multimodal_eval import Rows, Sample, evaluate
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics.chair import compute_chair_i, compute_chair_s
from multimodal_eval.text.pos import tagger_label


def sample(answer, references=None, objects=None, name="1"):
    metadata = {} if objects is None else {"objects": objects}
    return Sample(id=name, generated_answer=answer, references=references, metadata=metadata)


def score(metric, subject):
    return score_batch(metric, metric.open(None), [subject])[0]


def test_values_by_hand():
    # Mentions: man, dog, cat, cat; the image has a person and a cat, so one mention of four is not in it.
    subject = sample("a man with a dog, a cat and a kitten", ["a woman and her cat"])
    assert compute_chair_i(subject) == 1 / 4
    assert compute_chair_s(subject) == 1.0
    assert score(compute_chair_i, subject).details == {
        "mentioned_objects": ["man", "dog", "cat", "kitten"],
        "hallucinated_objects": ["dog"],
    }


def test_references_and_listed_objects_count_together():
    answer = "a dog, a cat and a car"
    assert compute_chair_i(sample(answer, ["a dog"])) == pytest.approx(2 / 3)
    assert compute_chair_i(sample(answer, objects=["cat", "tree"])) == pytest.approx(2 / 3)
    assert compute_chair_i(sample(answer, ["a puppy", "a road"], ["cats"])) == pytest.approx(1 / 3)
    assert compute_chair_i(sample(answer, objects=[])) == 1.0


def test_an_answer_without_objects_has_no_share_and_no_hallucination():
    subject = sample("a quiet landscape", ["a dog"])
    assert (score(compute_chair_i, subject).status, score(compute_chair_s, subject).value) == ("degenerate", 0.0)
    assert compute_chair_i(subject) == 0.0


def test_a_blank_answer_gets_the_worst_value():
    for metric in (compute_chair_i, compute_chair_s):
        blank = score(metric, sample(" ", ["a dog"]))
        assert (blank.value, blank.warning) == (1.0, "blank_answer")
        assert metric(sample(" ", ["a dog"])) == 1.0


def test_a_blank_answer_counts_as_one_hallucinated_mention_of_the_corpus():
    pair = [sample(" ", ["a dog"]), sample("a dog, a cat and a car", ["a dog and a cat"], name="2")]
    # 1 of 1 and 1 of 3 mentions
    assert evaluate(pair, metrics=["chair_i"])["chair_i"]["value"] == pytest.approx(2 / 4)


def test_without_references_and_objects_it_is_unscored():
    result = score(compute_chair_i, sample("a dog"))
    assert (result.status, result.reason) == ("missing_input", "no references or metadata.objects")
    assert compute_chair_i(sample("a dog")) == compute_chair_s(sample("a dog")) == 0.0


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Собака и кошка на пляже", "a dog runs on the beach"),
        ("a dog runs on the beach", "Собака бежит по пляжу"),
        ("ein Hund und der Mann auf dem Platz mit einem Ball", "a dog"),
    ],
)
def test_another_language_is_a_warning(answer, reference):
    subject = sample(answer, ["a dog", reference])
    assert [score(metric, subject).warning for metric in (compute_chair_i, compute_chair_s)] == ["language_unfit"] * 2


def test_english_gives_no_warning():
    subject = sample("a dog and a cat run on the beach", ["the dog runs"], ["собака"])
    assert [score(metric, subject).warning for metric in (compute_chair_i, compute_chair_s)] == [None] * 2


@pytest.mark.parametrize("objects", ["dog", [1], {"dog": 1}])
def test_objects_that_are_not_a_list_of_strings_are_an_error(objects):
    result = score(compute_chair_s, sample("a dog", objects=objects))
    assert result.status == "error"
    assert "`objects` must be a list of strings" in result.reason


def test_the_corpus_score_is_a_ratio_of_sums():
    # 1 of 4 and 1 of 1: (1 + 1) / (4 + 1), while the mean of the shares is 0.625. The third mentions nothing.
    run = evaluate(
        [
            sample("a man with a dog, a cat and a kitten", ["a woman and her cat"], name="1"),
            sample("a bus", ["a car"], name="2"),
            sample("a landscape", ["a car"], name="3"),
        ],
        metrics=["chair_i", "chair_s"],
    )
    assert run["chair_i"]["value"] == pytest.approx(2 / 5)
    assert (run["chair_i"]["n_scored"], run["chair_i"]["n_total"]) == (2, 3)
    assert run["chair_s"]["value"] == pytest.approx(2 / 3)


def test_the_influence_of_a_sample_by_hand():
    # R = 2/5 and n = 2: psi = n (h - R m) / 5, so 2 (1 - 1.6) / 5 and 2 (1 - 0.4) / 5.
    estimate = compute_chair_i.aggregate(Rows(np.array([0.25, 1.0]), np.array([[1.0, 4.0], [1.0, 1.0]])))
    assert estimate.value == pytest.approx(0.4)
    assert estimate.influence == pytest.approx([-0.24, 0.24])


def test_another_list_or_tagger_requires_another_version():
    # The signature only says `v:1`: after changing the list or the tagger, raise the versions and update these values.
    names = (files("multimodal_eval.text") / "coco_objects.tsv").read_bytes()
    assert (sha256(names).hexdigest()[:8], tagger_label()) == ("741c3c34", "captions-1@3685cdc7")
    assert (compute_chair_i.version, compute_chair_s.version) == ("1", "1")
