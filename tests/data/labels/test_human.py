"""Human labels: their values on a scale, and the file that collects them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.labels.human import HumanLabel, LabelError, label_value, probability_of, read_labels

SHARE = (0.0, 1.0)


@pytest.mark.parametrize(
    ("value", "bounds", "number"),
    [
        ("yes", SHARE, 1),
        (" No ", SHARE, 0),
        ("TRUE", SHARE, 1),
        (False, SHARE, 0),
        ("win", SHARE, 1),
        ("tie", SHARE, 0.5),
        ("loss", SHARE, 0),
        ("0.25", SHARE, 0.25),
        (4, (1, 5), 4),
        ("4", (1, 5), 4),
        (-3, (None, None), -3),
        (None, SHARE, None),
        ("  ", SHARE, None),
    ],
)
def test_labels_are_numbers_or_words(value, bounds, number):
    assert label_value(value, bounds) == number


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (6, (1, 5), "the human label 6 is not on the scale of the metric, from 1 to 5"),
        (0.5, (1, None), "from 1 to ∞"),
        ("yes", (1, 5), "must be a number. Got 'yes'"),
        (True, (1, 5), "must be a number. Got True"),
        ("good", SHARE, "must be a number, yes, no, win, tie or loss. Got 'good'"),
        ("nan", SHARE, "must be a number"),
        ([1], SHARE, "must be a number"),
    ],
)
def test_other_labels_are_refused(value, bounds, message):
    with pytest.raises(LabelError, match=message.replace(".", r"\.").replace("[", r"\[")):
        label_value(value, bounds)


@given(st.floats(0, 1, exclude_min=True))
def test_probabilities_are_above_zero(number):
    assert probability_of(number) == number
    assert probability_of(str(number)) == number


@pytest.mark.parametrize("value", [0, -0.1, 1.1, "often", True, float("nan")])
def test_other_probabilities_are_refused(value):
    with pytest.raises(LabelError, match="above 0 and at most 1"):
        probability_of(value)


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_file_of_labels(tmp_path):
    path = write(
        tmp_path / "labels.jsonl",
        {"id": 7, "label": "yes", "question": "?", "human_weight": 0.5},
        {"id": "b", "label": None, "human_weight": 0.5},
        {"id": "c", "label": 0, "metric": "good", "annotator": "ann", "run": "first"},
    )
    assert read_labels(path) == [
        HumanLabel(id="7", label="yes", human_weight=0.5, line=1),
        HumanLabel(id="c", label=0, metric="good", annotator="ann", run="first", line=3),
    ]


def test_a_table_of_labels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label,human_weight\na,4,0.25\nb,,\n")
    (label,) = read_labels(path)
    assert (label.id, label_value(label.label, (1, 5)), label.human_weight) == ("a", 4, 0.25)


def test_all_problems_are_named_with_their_lines(tmp_path):
    path = write(
        tmp_path / "labels.jsonl",
        {"label": 1},
        {"id": "a", "label": [1]},
        {"id": "b", "label": 1, "human_weight": 2},
        {"id": "c", "label": 1, "annotator": 1.5},
    )
    with pytest.raises(InputError) as error:
        read_labels(path)
    assert [problem.line for problem in error.value.problems] == [1, 2, 3, 4]
    assert "labels.jsonl:1: LABEL: `id` must be the id of a sample. Got None instead." in str(error.value)


def test_a_file_without_labels(tmp_path):
    path = write(tmp_path / "labels.jsonl", {"id": "a"}, {"id": "b", "label": " "})
    with pytest.raises(
        InputError, match=r"no record with a `label`\. The values of `label` are blank\. Its columns: 'id', "
    ):
        read_labels(path)
    path = write(tmp_path / "labels.jsonl", {"id": "a", "rating": 4}, {"id": "b", "score": 3})
    with pytest.raises(InputError, match=r"no record with a `label`\. Its columns: 'id', 'rating', 'score'\."):
        read_labels(path)
