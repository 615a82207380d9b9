"""Samples that a metric cannot score are refused with file and line, before anything is scored."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import Sample, evaluate, metric, rescore
from multimodal_eval.core.errors import InputError
from multimodal_eval.core.metric import sample_problems
from tests.cli.command_line import mmeval
from tests.registry_state import restored_registries

CHOICES = ["dog", "cat"]
ROWS = [
    {"id": "a", "prediction": "A", "choices": CHOICES, "expected_answer": "A"},
    {"id": "b", "prediction": "A", "choices": CHOICES, "expected_answer": "C"},
    {"id": "c", "prediction": "A", "expected_answer": "A"},
    {"id": "d", "prediction": "A", "choices": ["dog"], "expected_answer": "A"},
]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_the_problems_have_file_line_and_id(data, tmp_path):
    with pytest.raises(InputError) as refused:
        evaluate(data, metrics=["multiple_choice"], output=tmp_path / "run")
    places = [(problem.file, problem.line, problem.id, problem.code) for problem in refused.value.problems]
    assert places == [(str(data), line, id, "SAMPLE") for line, id in ((2, "b"), (3, "c"), (4, "d"))]
    assert "the gold answer 'C' is none of the letters or texts of the choices A, B" in str(refused.value)
    assert "has no `choices`" in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_predictions_in_another_file_are_placed_by_the_data(tmp_path):
    gold, predicted = tmp_path / "gold.jsonl", tmp_path / "predicted.jsonl"
    gold.write_text("".join(json.dumps({**row, "prediction": None}) + "\n" for row in ROWS[:2]))
    predicted.write_text('{"id": "b", "prediction": "A"}\n{"id": "a", "prediction": "A"}\n')
    with pytest.raises(InputError, match=r"gold.jsonl:2: SAMPLE: multiple_choice"):
        evaluate(gold, predictions=predicted, metrics=["multiple_choice"])


def test_samples_in_memory_are_numbered():
    with pytest.raises(InputError, match=r"sample 2: SAMPLE: .* \(id 'b'\)"):
        evaluate(ROWS[:2], metrics=["multiple_choice"])


def test_samples_without_choices_may_be_unscored():
    rows = [ROWS[0], ROWS[2]]
    run = evaluate(rows, metrics=["multiple_choice"], options={"multiple_choice": {"without_choices": "unscored"}})
    assert run["multiple_choice"]["unscored"] == {"missing_input": 1}


def test_many_problems_are_counted_and_the_first_are_shown(tmp_path):
    rows = [{**ROWS[1], "id": str(number)} for number in range(2500)]
    with pytest.raises(InputError) as refused:
        evaluate(rows, metrics=["multiple_choice"])
    assert (len(refused.value.problems), refused.value.total) == (1000, 2500)


def test_a_rescored_run_is_checked_by_its_new_metrics(tmp_path):
    run = evaluate(ROWS[:2], metrics=["exact_match"], output=tmp_path / "run")
    with pytest.raises(InputError, match=r"^SAMPLE: multiple_choice: .* \(id 'b'\)"):
        rescore(run, {"metrics": ["multiple_choice"]})


def test_a_function_declares_what_it_refuses():
    def short(sample: Sample, limit: int = 3) -> str | None:
        return None if len(sample.generated_answer or "") >= limit else "the answer is too short"

    with restored_registries():

        @metric("lengthy", version="1", needs=("generated_answer",), problem=short)
        def compute_lengthy(sample: Sample, *, limit: int = 3) -> float:
            """The length of an answer."""
            return float(len(sample.generated_answer or ""))

        assert sample_problems(compute_lengthy)
        samples = [Sample(id="1", generated_answer="abc"), Sample(id="2", generated_answer="ab")]
        with pytest.raises(InputError, match="sample 2: SAMPLE: lengthy: the answer is too short"):
            evaluate(samples, metrics=["lengthy"])
        assert evaluate(samples, metrics=["lengthy"], options={"lengthy": {"limit": 1}})["lengthy"]["value"] == 2.5


def test_the_table_and_the_report_show_unread_answers_beside_the_metric(tmp_path):
    data, out = tmp_path / "data.jsonl", tmp_path / "run"
    rows = [ROWS[0], {**ROWS[0], "id": "x", "prediction": "I do not know"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = mmeval("score", str(data), "--task", "mcq", "-o", str(out))
    assert "multiple_choice ★ (unread 1, chance " in result.stdout
    assert "(unread 1, chance " in (out / "report.html").read_text()
