"""Files whose rows have no ids."""

from __future__ import annotations

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import InputError
from tests.captured_call import captured_call

ANSWER = '{"references": ["a"], "generated_answer": "a"}\n'


def ids(path):
    run = evaluate(path, metrics=["exact_match"], format="rows")
    return [sample.id for sample in run.samples()]


def test_rows_without_ids_are_numbered(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(2 * ANSWER)
    assert ids(path) == ["0", "1"]
    run = evaluate(path, metrics=["exact_match"])
    assert [sample.id for sample in run.samples()] == ["0", "1"]
    assert run.info.input_notes == ["no column is `id`, so the samples are numbered. To take a column: --map id=COLUMN"]
    path.write_text(ANSWER + '{"id": "x", "references": ["a"], "generated_answer": "a"}\n')
    with pytest.raises(InputError, match="MISSING_ID"):
        evaluate(path, metrics=["exact_match"])


def test_rows_of_several_files_have_different_ids(tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(ANSWER)
    assert ids(tmp_path) == ["a/0", "b/0"]


def test_ids_that_are_there_stay(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('id,references,generated_answer\n007,"[""a""]",a\n')
    assert ids(path) == ["007"]


def test_the_command_knows_formats_of_datasets(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(ANSWER)
    call = captured_call("validate", str(path), "--format", "rows")
    assert call.status == 0, call.err.decode()
    call = captured_call("validate", str(path), "--format", "croisant:rows")
    assert call.status == 2
    assert b"Did you mean 'croissant'?" in call.err
