"""The fast reader of COCO pairs against the usual readers: the same samples, counts and problems for any pair."""

import json
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers import inputs
from multimodal_eval.data.readers.coco_and_vqa import regular_pair
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary

ANNOTATIONS = {
    "images": [{"id": 7, "file_name": "seven.jpg"}, {"id": 5, "file_name": "fünf.jpg"}, {"id": 9, "file_name": None}],
    "annotations": [
        {"image_id": 5, "id": 1, "caption": "a dog"},
        {"image_id": 7, "id": 2, "caption": "a café"},
        {"image_id": 5, "id": 3, "caption": "one dog"},
    ],
}
RESULTS = [{"image_id": 7, "caption": "a cat"}, {"caption": " ", "image_id": 5}]

ids = st.sampled_from([5, 7, 9, "5", "7", "é", "e\u0301", " ", "", "\0", True, 5.0, 2**70, None, [5]])
texts = st.sampled_from(
    ["a dog", "un été", "une\u0301", "\u0301", "", " ", "\u3000", "\0", "x" * 1_000_001, None, 3, ["a"]]
)
likely_ids, likely_texts = st.sampled_from([5, 7, 9]) | ids, st.sampled_from(["a dog", "two"]) | texts
records = st.fixed_dictionaries(
    {}, optional={"image_id": likely_ids, "caption": likely_texts, "score": st.none() | st.floats(0, 1)}
)
likely_records = st.fixed_dictionaries({"image_id": likely_ids, "caption": likely_texts}) | records | texts
images = st.fixed_dictionaries({}, optional={"id": likely_ids, "file_name": likely_texts}) | texts


def read(folder, *, fast=True, **settings):
    """Samples, counts and problems as plain values, or the error."""
    problems, summary = Problems(), Summary()
    with patch.object(inputs, "regular_pair", regular_pair if fast else lambda *paths: None):
        try:
            source = FileInput(folder / "annotations.json", folder / "results.json", **settings)
            samples = list(source.samples(problems, summary))
        except InputError as error:
            return str(error)
    if problems.total:
        return [str(problem) for problem in problems.kept], problems.total
    return samples, msgspec.structs.asdict(summary), list(summary.fields)


def write(folder, annotations, results):
    for name, content in (("annotations", annotations), ("results", results)):
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / f"{name}.json").write_bytes(raw)


def both(folder, **settings):
    fast = read(folder, **settings)
    assert fast == read(folder, fast=False, **settings)
    return fast


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pair")


def test_a_regular_pair_is_read_at_once(folder):
    write(folder, ANNOTATIONS, RESULTS)
    assert regular_pair(folder / "annotations.json", folder / "results.json") is not None
    samples, summary, fields = both(folder)
    assert [(sample.id, sample.image, sample.references, sample.generated_answer) for sample in samples] == [
        ("5", "fünf.jpg", ["a dog", "one dog"], " "),
        ("7", "seven.jpg", ["a café"], "a cat"),
    ]
    assert (summary["samples"], summary["blank_answers"]) == (2, 1)
    assert fields == ["id", "generated_answer", "references", "image"]


@given(
    st.lists(likely_records, max_size=5), st.lists(likely_records, max_size=4), st.none() | st.lists(images, max_size=3)
)
@example(ANNOTATIONS["annotations"], RESULTS, ANNOTATIONS["images"])
@example([{"image_id": "a", "caption": "x"}], [{"image_id": "a", "caption": "y"}], [{"id": 1, "file_name": 3}])
@example([{"image_id": 5, "caption": "x"}], [{"image_id": 5, "caption": "y"}], [{"id": "5", "file_name": "5.jpg"}])
@example([{"image_id": 5, "caption": "x"}], [{"image_id": 5, "caption": "y"}], [{"id": True, "file_name": "1.jpg"}])
def test_any_pair_gives_the_same(folder, annotations, results, image_list):
    write(folder, {"annotations": annotations, "images": image_list}, results)
    both(folder)
    both(folder, allow_partial=True)


REGULAR = json.dumps(ANNOTATIONS).encode(), json.dumps(RESULTS).encode()


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize(
    "damaged",
    [
        lambda raw: b"\xef\xbb\xbf" + raw,
        lambda raw: raw.decode().encode("utf-16"),
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw + b" x",
        lambda raw: raw + b"\n\n",
        lambda raw: raw.replace(b'"image_id"', b'"caption": "twice", "image_id"'),
        lambda raw: raw.replace(b'"image_id"', b'"score": 1e999, "image_id"'),
        lambda raw: raw.replace(b'"image_id"', b'"note": "\\ud800", "image_id"'),
        lambda raw: raw.replace(b'"image_id"', b'"note": "\xff", "image_id"'),
        lambda raw: raw.replace(b'"a ', b'"\\ud83d\\ude00 '),
        lambda raw: raw.replace(b'"image_id": 7', b'"image_id": 7.0'),
        lambda raw: b"",
        lambda raw: b"null",
        lambda raw: b"[]",
        lambda raw: b"{}",
    ],
)
def test_a_damaged_file_gives_the_same(folder, position, damaged):
    files = list(REGULAR)
    files[position] = damaged(files[position])
    write(folder, *files)
    both(folder)


def test_settings_that_change_the_columns(folder):
    write(folder, ANNOTATIONS, RESULTS)
    both(folder, columns={"question": ("caption",)})
    both(folder, annotators=("caption",))
