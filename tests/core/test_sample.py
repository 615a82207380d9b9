from __future__ import annotations

import pytest

from multimodal_eval import Sample
from multimodal_eval.core.sample import has


@pytest.mark.parametrize("name", ["generated_answer", "model_output", "prediction"])
def test_the_answer_has_three_names(name):
    sample = Sample(id="1", **{name: "a dog"})
    assert sample.generated_answer == sample.model_output == sample.prediction == "a dog"


def test_two_names_for_the_answer_at_once_are_refused():
    with pytest.raises(TypeError, match="not both"):
        Sample(id="1", generated_answer="a", prediction="b")


def test_expected_answer_and_caption_count_as_references():
    sample = Sample(id="1", references=["a", "b"], expected_answer="b", caption="c")
    assert sample.reference_texts == ["a", "b", "c"]


def test_references_that_people_wrote_twice_stay_twice():
    assert Sample(id="1", references=["a", "a"]).reference_texts == ["a", "a"]


@pytest.mark.parametrize(
    ("sample", "there"),
    [
        (Sample(id="1"), False),
        (Sample(id="1", caption="c"), True),
        (Sample(id="1", expected_answer="c"), True),
        (Sample(id="1", references=["c"]), True),
    ],
)
def test_any_reference_field_meets_the_need_for_references(sample, there):
    assert has(sample, "references") is there


def test_a_sample_cannot_be_changed_by_a_metric():
    with pytest.raises(AttributeError):
        Sample(id="1").id = "2"  # type: ignore[misc]


def test_a_need_may_be_met_by_either_of_two_or_by_a_further_column():
    need = "references|metadata.objects"
    assert has(Sample(id="1", caption="c"), need)
    assert has(Sample(id="1", metadata={"objects": []}), need)
    assert not has(Sample(id="1", metadata={"objects": None, "other": 1}), need)
