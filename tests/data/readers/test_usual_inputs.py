"""Files as people have them: integers as gold answers, `options`, one reference as text, no ids."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.cli.command_line import mmeval

ROWS = [
    {"question": "What is it?", "options": ["a dog", "a cat"], "expected_answer": place, "pred": "A", "image_id": 7}
    for place in (0, 1, 0)
]


def read(path):
    problems, summary = Problems(), Summary()
    samples = list(FileInput(path).samples(problems, summary))
    problems.raise_if_any()
    return samples, summary.notes


@pytest.fixture(params=["jsonl", "parquet", "json"])
def path(request, tmp_path):
    file = tmp_path / f"quiz.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    else:
        text = json.dumps(ROWS) if request.param == "json" else "".join(json.dumps(row) + "\n" for row in ROWS)
        file.write_text(text)
    return file


def test_positions_options_and_numbered_lines(path):
    samples, notes = read(path)
    assert [sample.id for sample in samples] == ["0", "1", "2"]
    assert [sample.expected_answer for sample in samples] == ["0", "1", "0"]
    assert samples[0].choices == ["a dog", "a cat"]
    assert notes == [
        "the column 'pred' is read as generated_answer",
        "the column 'options' is read as choices",
        "no column is `id`, so the samples are numbered. To take a column: --map id=image_id",
    ]
    run = evaluate(path, metrics=["multiple_choice"])
    assert run["multiple_choice"]["value"] == pytest.approx(2 / 3)


def test_letters_with_texts_are_options_and_other_objects_are_not(tmp_path):
    for options, choices in (({"A": "dog", "B": "cat"}, {"A": "dog", "B": "cat"}), ({"top_k": 1}, None)):
        row = {"id": 1, "generated_answer": "A", "options": options}
        (tmp_path / "a.jsonl").write_text(json.dumps(row))
        assert read(tmp_path / "a.jsonl")[0][0].choices == choices


def test_numbers_of_several_files_name_the_file(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"pred": "x"}\n{"pred": "y"}\n')
    samples, _ = read(tmp_path)
    assert [sample.id for sample in samples] == ["a/0", "a/1", "b/0", "b/1"]


def test_some_ids_are_not_enough_and_joined_files_need_them(tmp_path):
    (tmp_path / "some.jsonl").write_text('{"id": "a", "pred": "x"}\n{"pred": "y"}\n')
    with pytest.raises(InputError, match="the sample has no `id`"):
        read(tmp_path / "some.jsonl")
    (tmp_path / "gold.jsonl").write_text('{"references": ["x"]}\n')
    (tmp_path / "pred.jsonl").write_text('{"pred": "y"}\n')
    with pytest.raises(InputError, match="the sample has no `id`"):
        evaluate(tmp_path / "gold.jsonl", tmp_path / "pred.jsonl", metrics=["rouge_l"])


def test_a_reference_may_be_one_text(tmp_path):
    (tmp_path / "one.jsonl").write_text('{"generated_answer": "a dog", "references": "a dog"}\n')
    assert evaluate(tmp_path / "one.jsonl", metrics=["exact_match"])["exact_match"]["value"] == 1


def test_the_only_text_column_is_named_as_the_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.jsonl").write_text('{"id": 1, "zeile": "a dog", "references": ["a dog"], "n": 3}\n')
    done = mmeval("score", "odd.jsonl", "--metrics", "exact_match", code=1)
    assert "If it is in 'zeile', add: --map generated_answer=zeile" in done.stderr
