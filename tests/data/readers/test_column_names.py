"""Columns with common names: read as a field, or suggested, in every format."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import evaluate, evaluate_sample
from multimodal_eval.core.sample import ANSWER_ALIASES, FIELDS
from multimodal_eval.data.readers import column_names
from multimodal_eval.data.readers.column_names import (
    SUGGESTED,
    TAKEN,
    TAKEN_IN_PAIRS,
    kinds_of,
    map_flag,
    peeked,
    suggestion,
    taken_columns,
)
from multimodal_eval.data.readers.memory_input import MemoryInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.data.readers.reading import read

ROOT = Path(__file__).parents[3]
ROWS = [{"id": "a", "pred": "a dog", "split": "val"}, {"id": "b", "pred": "a cat", "split": "test"}]


def as_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_json(path, rows):
    path.write_text(json.dumps(rows))


def as_csv(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def as_parquet(path, rows):
    pq.write_table(pa.Table.from_pylist(rows), path)


FORMATS = {"d.jsonl": as_jsonl, "d.json": as_json, "d.csv": as_csv, "d.parquet": as_parquet}


@pytest.fixture(params=FORMATS)
def written(request, tmp_path):
    def write(rows, prefix=""):
        path = tmp_path / f"{prefix}{request.param}"
        FORMATS[request.param](path, rows)
        return path

    return write


def from_memory(rows, columns=None, annotators=()):
    problems, summary = Problems(), Summary()
    parts = MemoryInput(rows, annotators, columns).parts(problems, summary, 1000)
    samples = [sample for part in parts for sample in part.samples(FIELDS)]
    problems.raise_if_any()
    return samples, summary


def test_the_documented_table_is_the_one_of_the_code():
    text = (ROOT / "docs" / "input.md").read_text(encoding="utf-8")
    rows = dict(
        re.findall(
            r"^\| (taken|taken from two files|taken as `\w+`|suggested for `\w+`) \| (.+) \|$", text, re.MULTILINE
        )
    )
    documented = {kind: tuple(re.findall(r"`(\w+)`", names)) for kind, names in rows.items()}
    assert documented == {
        "taken": TAKEN,
        "taken from two files": TAKEN_IN_PAIRS,
        "taken as `choices`": column_names.CHOICES,
        **{f"suggested for `{field}`": names for field, names in SUGGESTED.items()},
    }


def test_the_names_of_the_table_are_in_its_form_and_are_no_fields():
    taken = {*TAKEN, *TAKEN_IN_PAIRS}
    for name in [*taken, *(name for names in SUGGESTED.values() for name in names)]:
        assert column_names.plain_name(name) == name
        assert name not in ANSWER_ALIASES
    assert not taken & {*FIELDS}
    assert not {*TAKEN} & {name for names in SUGGESTED.values() for name in names}


@pytest.mark.parametrize("name", TAKEN)
def test_every_taken_name_is_read_as_the_answer(tmp_path, name):
    as_jsonl(tmp_path / "d.jsonl", [{"id": "a", name: "x"}])
    samples, problems, summary = read(tmp_path / "d.jsonl")
    assert not problems.total
    assert samples[0].generated_answer == "x"
    assert samples[0].metadata == {}
    assert summary.notes == [f"the column {name!r} is read as generated_answer"]


def test_the_answer_in_every_format(written):
    samples, problems, summary = read(written(ROWS))
    assert not problems.total
    assert [sample.generated_answer for sample in samples] == ["a dog", "a cat"]
    assert [sample.metadata for sample in samples] == [{"split": "val"}, {"split": "test"}]
    assert summary.fields["generated_answer"] == 2
    assert summary.notes == ["the column 'pred' is read as generated_answer"]


def test_the_answer_in_memory():
    samples, summary = from_memory(ROWS)
    assert [sample.generated_answer for sample in samples] == ["a dog", "a cat"]
    assert summary.notes == ["the column 'pred' is read as generated_answer"]
    by_column, _ = from_memory({"id": ["a"], "Model Answer": ["x"]})
    assert by_column[0].generated_answer == "x"


def test_the_answer_in_a_frame_and_in_one_sample():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"response": ["a dog", "a cat"], "references": [["a dog"], ["a cat"]]})
    run = evaluate(frame, metrics=["exact_match"], progress=False)
    assert run["exact_match"]["value"] == 1.0
    assert "the column 'response' is read as generated_answer" in run.info.input_notes
    scores = evaluate_sample({"pred": "a dog", "references": ["a dog"]}, metrics=["exact_match"])
    assert scores["exact_match"] == 1.0


@pytest.mark.parametrize(
    "row",
    [
        {"generated_answer": "x", "pred": "y"},
        {"model_output": "x", "pred": "y"},
        {"prediction": "x", "response": "y", "output": "z"},
    ],
)
def test_a_file_with_answers_is_read_as_before(written, row):
    samples, problems, summary = read(written([{"id": "a", **row}]))
    assert not problems.total
    assert samples[0].generated_answer == "x"
    assert samples[0].metadata == {name: value for name, value in row.items() if value != "x"}
    assert summary.notes == []


def test_a_column_of_the_answer_without_values_is_still_that_column(tmp_path):
    as_jsonl(tmp_path / "d.jsonl", [{"id": "a", "generated_answer": None, "pred": "y"}])
    samples, _, _ = read(tmp_path / "d.jsonl")
    assert samples[0].generated_answer is None
    assert samples[0].metadata == {"pred": "y"}


def test_of_two_columns_that_could_be_the_answer_none_is_taken(written):
    samples, problems, summary = read(written([{"id": "a", "pred": "x", "my output": "1", "output": "y"}]))
    assert not problems.total
    assert samples[0].generated_answer is None
    assert samples[0].metadata == {"pred": "x", "output": "y", "my output": "1"}
    assert summary.notes == [
        "the columns 'pred' and 'output' may each be generated_answer, so none is read as it. "
        "Choose one: --map generated_answer=pred"
    ]


@pytest.mark.parametrize("mapped", [{"generated_answer": "text"}, {"generated_answer": ""}, {"question": "pred"}])
def test_a_map_decides(written, mapped):
    samples, problems, summary = read(written([{"id": "a", "pred": "x", "text": "y"}]), **mapped)
    assert not problems.total
    assert summary.notes == []
    assert samples[0].generated_answer == ("y" if mapped.get("generated_answer") else None)


def test_annotators_are_not_the_answer():
    samples, _ = from_memory([{"id": "a", "output": "yes", "pred": "no"}], annotators=("out*",))
    assert samples[0].generated_answer == "no"
    assert samples[0].annotations == {"output": "yes"}


@pytest.mark.parametrize("value", [3, True, {"text": "x"}, ["x"], None])
def test_a_column_with_other_values_is_metadata(tmp_path, value):
    as_jsonl(tmp_path / "d.jsonl", [{"id": "a", "output": value}])
    samples, problems, _ = read(tmp_path / "d.jsonl")
    assert not problems.total
    assert samples[0].generated_answer is None
    assert samples[0].metadata == ({} if value is None else {"output": value})


def test_a_record_with_both_names_after_the_first_ones_is_refused(tmp_path):
    rows = [{"id": str(number), "pred": "x"} for number in range(column_names.PEEKED)]
    as_jsonl(tmp_path / "d.jsonl", [*rows, {"id": "last", "pred": "x", "generated_answer": "y"}])
    _, problems, _ = read(tmp_path / "d.jsonl")
    (problem,) = problems.kept
    assert (problem.code, problem.id) == ("DUPLICATE", "last")


def test_records_that_failed_come_first(tmp_path):
    as_jsonl(tmp_path / "d.jsonl", [{"id": "a", "error": "time-out", "pred": None}, {"id": "b", "pred": "x"}])
    samples, _, _ = read(tmp_path / "d.jsonl")
    assert [sample.generated_answer for sample in samples] == [None, "x"]


@pytest.mark.parametrize(("gold", "field"), [("a dog", "expected_answer"), (["a dog", "dog"], "references")])
def test_the_column_answer_of_two_files(tmp_path, gold, field):
    as_jsonl(tmp_path / "gold.jsonl", [{"id": "a", "answer": gold, "output": "kept"}])
    as_jsonl(tmp_path / "answers.jsonl", [{"id": "a", "answer": "dog"}])
    samples, problems, summary = read(tmp_path / "gold.jsonl", tmp_path / "answers.jsonl")
    assert not problems.total
    assert samples[0].generated_answer == "dog"
    assert getattr(samples[0], field) == gold
    assert samples[0].metadata == {"output": "kept"}
    assert summary.notes == [
        f"the column 'answer' of {tmp_path / 'answers.jsonl'} is read as generated_answer",
        f"the column 'answer' of {tmp_path / 'gold.jsonl'} is read as {field}",
    ]


def test_the_column_answer_beside_references_is_metadata(tmp_path):
    as_jsonl(tmp_path / "gold.jsonl", [{"id": "a", "answer": "kept", "references": ["a dog"]}])
    as_jsonl(tmp_path / "answers.jsonl", [{"id": "a", "pred": "dog", "answer": "kept"}])
    samples, problems, _ = read(tmp_path / "gold.jsonl", tmp_path / "answers.jsonl")
    assert not problems.total
    assert samples[0].generated_answer == "dog"
    assert samples[0].expected_answer is None
    assert samples[0].metadata == {"answer": "kept"}


@pytest.mark.parametrize("choices", ["choices", "options"])
def test_an_integer_answer_beside_choices_is_the_position_of_the_correct_one(tmp_path, choices):
    row = {"question": "Which?", choices: ["red", "blue"], "answer": 1}
    for name, write in [("d.jsonl", as_jsonl), ("d.parquet", as_parquet)]:
        write(tmp_path / name, [{**row, "pred": "A"}])
        samples, problems, summary = read(tmp_path / name)
        assert not problems.total
        assert (samples[0].expected_answer, samples[0].generated_answer) == ("1", "A")
        assert "the column 'answer' is read as expected_answer" in summary.notes


@pytest.mark.parametrize(
    "row", [{"answer": 1}, {"answer": 1, "choices": ["a", "b"], "caption": "a"}, {"answer": "A", "choices": ["a", "b"]}]
)
def test_another_answer_is_metadata(tmp_path, row):
    as_jsonl(tmp_path / "d.jsonl", [row])
    assert read(tmp_path / "d.jsonl")[0][0].metadata == {"answer": row["answer"]}


def test_a_file_that_cannot_be_read_has_no_columns(tmp_path):
    for name, content in [
        ("d.jsonl", b"\xff\xfe{"),
        ("d.parquet", b"PAR1"),
        ("d.json", b"[{"),
        ("e.json", b'{"a": 1}'),
    ]:
        (tmp_path / name).write_bytes(content)
        assert peeked(tmp_path / name) == {}
    assert peeked(tmp_path / "nothing.jsonl") == {}


def test_kinds_agree_between_a_schema_and_records(tmp_path):
    rows = [{"id": "a", "refs": ["x"], "n": 1, "nested": {"a": 1}, "none": None}]
    as_parquet(tmp_path / "d.parquet", rows)
    expected = {"id": "text", "refs": "texts", "n": "integer", "nested": "other", "none": "null"}
    assert peeked(tmp_path / "d.parquet") == kinds_of(rows) == expected


@pytest.mark.parametrize(
    ("need", "row", "field", "column"),
    [
        ("generated_answer", {"answer": "x"}, "generated_answer", "answer"),
        ("generated_answer", {"caption": "x"}, "generated_answer", "caption"),
        ("generated_answer", {"split": 4, "zeile": "x"}, "generated_answer", "zeile"),
        ("generated_answer", {"answer": "x", "pred": "y"}, "generated_answer", "pred"),
        ("generated_answer", {"genrated_answer": "x"}, "generated_answer", "genrated_answer"),
        ("generated_answer", {"Generated Answer": "x"}, "generated_answer", "Generated Answer"),
        ("references", {"gt": "x"}, "expected_answer", "gt"),
        ("references", {"gt": ["x"]}, "references", "gt"),
        ("references|metadata.objects", {"gt": "x"}, "expected_answer", "gt"),
        ("references", {"target": "x"}, "expected_answer", "target"),
        ("references", {"label": "x"}, "expected_answer", "label"),
        ("references", {"menschen": "x", "split": 4}, "expected_answer", "menschen"),
        ("references", {"menschen": ["x"], "query": "y", "pred": "z"}, "references", "menschen"),
        ("references", {"References": ["x"]}, "references", "References"),
        ("references", {"caption_1": "x", "caption_2": "y", "split": "z"}, "references", "caption_1,caption_2"),
        ("id", {"image_id": 3}, "id", "image_id"),
        ("image|images", {"file_name": "x.jpg"}, "image", "file_name"),
    ],
)
def test_the_likely_column(need, row, field, column):
    likely = suggestion(need, kinds_of([row]))
    assert likely is not None
    assert (likely.field, likely.column) == (field, column)


@pytest.mark.parametrize("row", [{}, {"split": 4}, {"answer": 3}, {"answer": None}, {" answer": "x"}])
def test_no_likely_column(row):
    assert suggestion("generated_answer", kinds_of([row])) is None


def test_the_option_is_safe_in_a_shell():
    assert map_flag("generated_answer", "my answer") == "--map 'generated_answer=my answer'"
    assert map_flag("generated_answer", "$(rm)") == "--map 'generated_answer=$(rm)'"


names = st.sampled_from([*FIELDS, *ANSWER_ALIASES, *TAKEN, "Pred", "answer", "split"])


@given(st.dictionaries(names, st.sampled_from(["text", "texts", "other", "null"]), max_size=6))
def test_a_field_has_one_column_at_most(kinds):
    taken = taken_columns(kinds)
    assert len(taken.fields) <= 1
    for column, field in taken.fields.items():
        assert field == "generated_answer"
        assert kinds[column] == "text"
        assert not {"generated_answer", *ANSWER_ALIASES} & kinds.keys()
    assert not (taken.fields and any("may each be" in note for note in taken.notes))
