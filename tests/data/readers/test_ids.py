"""Ids that occur twice are reported with both places, and predictions are found by their id."""

from __future__ import annotations

import pytest

from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Join, PredictionIndex, SeenIds


def duplicates(*places, hash_of=hash):
    ids, problems = SeenIds(hash_of), Problems()
    for _, _, name in places:
        ids.add(name)
    ids.note_duplicates(problems, lambda: places)
    return [(each.id, each.line, each.message) for each in problems.kept]


def test_both_places_of_an_id_are_named():
    rows = [("a.csv", 1, "x"), ("a.csv", 2, "y"), ("a.csv", 3, "z"), ("a.csv", 4, "x"), ("b.csv", 1, "y")]
    assert duplicates(*rows) == [
        ("x", 4, "the id occurs twice, in lines 1 and 4"),
        ("y", 1, "the id occurs twice, in a.csv:2 and b.csv:1"),
    ]
    assert duplicates(("a", 7, "x"), ("a", 7, "x")) == [("x", 7, "the id occurs twice, both times in line 7")]
    assert duplicates(*rows[:3]) == []


def test_ids_with_the_same_hash_are_no_duplicates():
    assert duplicates(("a", 1, "x"), ("a", 2, "y"), hash_of=len) == []


@pytest.fixture
def index():
    index = PredictionIndex()
    for name in ("b", "a", "c"):
        index.add({"id": name, "generated_answer": f"answer {name}"})
    index.seal()
    yield index
    index.close()


def test_predictions_are_found_by_id(index):
    samples = [index.take(name) for name in ("a", "b")]
    assert [sample.generated_answer for sample in samples] == ["answer a", "answer b"]
    assert index.take("d") is None
    assert [sample.id for sample in index.unused()] == ["c"]
    assert len(index) == 3


def test_a_prediction_adds_only_its_fields():
    join, problems = Join(["generated_answer"]), Problems()
    prediction = Sample(id="1", generated_answer="a", caption="mine", metadata={"cost": 2, "site": "b", "same": 1})
    merged = join.merge({"id": "1", "metadata": {"same": 1, "site": "a"}}, prediction, problems, None, 1)
    assert merged == {
        "id": "1",
        "generated_answer": "a",
        "metadata": {"cost": 2, "predictions.site": "b", "same": 1, "site": "a"},
    }
    assert (join.notes.unused, join.notes.metadata) == ({"caption": 1}, {"cost": 1, "predictions.site": 1})
    assert not problems.total


def test_different_values_are_a_conflict():
    problems = Problems()
    data = {"id": "1", "question": "Why?", "generated_answer": "b"}
    Join(["generated_answer"]).merge(data, Sample(id="1", generated_answer="a", question="How?"), problems, "d", 3)
    assert [(each.code, each.field, each.line, bool(each.hint)) for each in problems.kept] == [
        ("CONFLICT", "question", 3, True),
        ("CONFLICT", "generated_answer", 3, False),
    ]
