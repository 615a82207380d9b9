"""Datasets of VLMEvalKit."""

from __future__ import annotations

import base64
import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.data.datasets import vlmevalkit_tsv
from multimodal_eval.data.datasets.dataset_format import natural_key, written_list
from multimodal_eval.data.logs.recognised import recognised
from tests.data.readers.reading import read

RED, BLUE = b"red" * 40, b"blue" * 40


def encoded(image):
    return base64.b64encode(image).decode()


def written(path, *rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    return path


def row(index, image, **cells):
    return {"index": index, "image": image, "question": "Which colour?", **cells}


def test_choices_are_the_columns_with_letters(tmp_path):
    cells = {"A": "None", "B": "N/A", "C": "007", "D": "", "answer": "B", "category": "colour", "l2-category": ""}
    samples, problems, _ = read(written(tmp_path / "data.tsv", row("007", encoded(RED), **cells)))
    assert problems.total == 0
    (sample,) = samples
    assert sample.id == "007"
    assert sample.image == RED
    assert sample.question == "Which colour?"
    assert sample.choices == {"A": "None", "B": "N/A", "C": "007"}
    assert sample.expected_answer == "B"
    assert sample.metadata == {"category": "colour"}


def test_a_row_may_point_to_the_image_of_another(tmp_path):
    rows = [row("3", "1"), row("1", encoded(RED)), row("1000001", "1"), row("2", encoded(BLUE))]
    samples, problems, _ = read(written(tmp_path / "data.tsv", *rows))
    assert problems.total == 0
    assert [(sample.image, sample.group) for sample in samples] == [(RED, "1"), (RED, "1"), (RED, "1"), (BLUE, "2")]


def test_rows_without_shared_images_have_no_groups(tmp_path):
    samples, _, _ = read(written(tmp_path / "data.tsv", row("1", encoded(RED)), row("2", encoded(BLUE))))
    assert [sample.group for sample in samples] == [None, None]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("9", "`image` is '9', but no row with this index has an image"),
        ("1", "`image` is '1', but no row with this index has an image"),  # itself
        ("?" * 100, "`image` must be base64, or the index of a row with an image"),
    ],
)
def test_images_that_cannot_be_read(tmp_path, image, message):
    _, problems, _ = read(written(tmp_path / "data.tsv", row("1", image), row("2", encoded(BLUE))))
    assert [(problem.code, problem.line) for problem in problems.kept] == [("TYPE", 2)]
    assert problems.kept[0].message.startswith(message)


def test_several_images_and_lists_of_answers(tmp_path):
    cells = {"answer": "['red', \"it's red\"]", "image_path": "['a.jpg', 'b.jpg']"}
    samples, _, _ = read(written(tmp_path / "data.tsv", row("1", str([encoded(RED), encoded(BLUE)]), **cells)))
    (sample,) = samples
    assert sample.images == [RED, BLUE]
    assert sample.references == ["red", "it's red"]
    assert sample.metadata["image_path"] == "['a.jpg', 'b.jpg']"


def test_paths_if_there_are_no_images(tmp_path):
    rows = [
        {"index": "1", "image_path": "a.jpg", "question": "?", "answer": "[unclear"},
        {"index": "2", "image_path": "['a.jpg', 'b.jpg']", "question": "?", "answer": ""},
    ]
    first, second = read(written(tmp_path / "data.tsv", *rows))[0]
    assert (first.image, first.expected_answer) == ("a.jpg", "[unclear")
    assert (second.images, second.expected_answer, second.references) == (["a.jpg", "b.jpg"], None, None)


@pytest.mark.parametrize("column", ["prediction", "id"])
def test_files_with_answers_or_ids_are_not_datasets(tmp_path, column):
    format_ = recognised(written(tmp_path / "data.tsv", row("1", "a.jpg", **{column: "x"})))
    assert (None if format_ is None else format_.name) == ("vlmevalkit" if column == "prediction" else None)


def test_predictions_are_joined_by_index(tmp_path):
    data = written(tmp_path / "data.tsv", row("1", encoded(RED), answer="red"), row("2", "1", answer="blue"))
    predictions = tmp_path / "answers.jsonl"
    predictions.write_text('{"id": "2", "prediction": "blue"}\n{"id": "1", "prediction": "red"}\n')
    samples, problems, _ = read(data, predictions)
    assert problems.total == 0
    assert [sample.generated_answer for sample in samples] == ["red", "blue"]


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=5), max_size=5))
def test_a_list_is_read_as_it_was_written(values):
    assert written_list(str(values)) == values


@pytest.mark.parametrize("text", ["", "[", "[[1]]", "{'a': 1}", "[" * 5000 + "]", "[open('x')]", "['\\d']x"])
def test_other_texts_are_not_lists(text):
    assert written_list(text) is None


def test_long_lists_have_images():
    items = ["a" * (1 << 19)] * 3
    assert written_list(str(items)) == items


@given(st.lists(st.integers(0, 10**6), min_size=2))
def test_names_are_sorted_by_their_numbers(numbers):
    names = sorted((f"image_{number}" for number in numbers), key=natural_key)
    assert names == [f"image_{number}" for number in sorted(numbers)]


def test_longest_index_is_that_of_vlmevalkit():
    # vlmeval/dataset/image_base.py: `if len(image_map[k]) <= 64`
    assert vlmevalkit_tsv.LONGEST_INDEX == 64
