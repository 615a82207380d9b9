from __future__ import annotations

import pytest

from multimodal_eval import Box, Message, MessagePart, Sample
from multimodal_eval.core.sample import has


@pytest.mark.parametrize("name", ["generated_answer", "model_output", "prediction"])
def test_the_answer_has_three_names(name):
    sample = Sample(id="1", **{name: "a dog"})
    assert sample.generated_answer == sample.model_output == sample.prediction == "a dog"


def test_the_answer_under_two_names_is_refused():
    with pytest.raises(TypeError, match="not both"):
        Sample(id="1", generated_answer="a", prediction="b")


def test_expected_answer_and_caption_count_as_references():
    sample = Sample(id="1", references=["a", "b"], expected_answer="b", caption="c")
    assert sample.reference_texts == ["a", "b", "c"]


def test_duplicate_references_are_kept():
    assert Sample(id="1", references=["a", "a"]).reference_texts == ["a", "a"]


@pytest.mark.parametrize(
    ("sample", "is_met"),
    [
        (Sample(id="1"), False),
        (Sample(id="1", caption="c"), True),
        (Sample(id="1", expected_answer="c"), True),
        (Sample(id="1", references=["c"]), True),
    ],
)
def test_any_reference_field_meets_the_need_for_references(sample, is_met):
    assert has(sample, "references") is is_met


def test_a_sample_cannot_be_changed_by_a_metric():
    with pytest.raises(AttributeError):
        Sample(id="1").id = "2"  # type: ignore[misc]


def test_a_need_with_two_alternatives_one_of_them_in_the_metadata():
    need = "references|metadata.objects"
    assert has(Sample(id="1", caption="c"), need)
    assert has(Sample(id="1", metadata={"objects": []}), need)
    assert not has(Sample(id="1", metadata={"objects": None, "other": 1}), need)


@pytest.mark.parametrize(
    ("need", "sample", "empty"),
    [
        ("choices", Sample(id="1", choices={"A": "x"}), Sample(id="1", choices=[])),
        ("images", Sample(id="1", images=["a.png"]), Sample(id="1", images=[])),
        ("images", Sample(id="1", images=["a.png"]), Sample(id="1", image="a.png")),
        ("image", Sample(id="1", image="a.png"), Sample(id="1", images=["a.png"])),
        ("video", Sample(id="1", video="a.mp4"), Sample(id="1")),
        ("messages", Sample(id="1", messages=[Message("user", "x")]), Sample(id="1", messages=[])),
        ("boxes", Sample(id="1", boxes=[]), Sample(id="1")),
        ("epoch", Sample(id="1", epoch=0), Sample(id="1")),
        ("image|images", Sample(id="1", images=["a.png"]), Sample(id="1")),
    ],
)
def test_a_need_can_be_any_field(need, sample, empty):
    assert has(sample, need)
    assert not has(empty, need)


def test_a_message_as_parts_and_as_text():
    parts = [MessagePart("text", "What"), MessagePart("image", "x.png"), MessagePart("text", "is it?")]
    assert Message("user", parts).text == "What\nis it?"
    assert Message("user", "hi").parts == [MessagePart("text", "hi")]
    assert Message("user", None).parts == []


def test_boxes_and_messages_cannot_be_changed():
    for record in (Box((0, 0, 1, 1)), Message("user"), MessagePart("text")):
        with pytest.raises(AttributeError):
            record.extra = {}  # type: ignore[misc, union-attr]
