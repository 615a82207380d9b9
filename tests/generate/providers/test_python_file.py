"""A model in a Python file: who names it runs its code, and nobody else can."""

from __future__ import annotations

import json
from functools import partial

import pytest

from multimodal_eval import evaluate, resume, why
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError
from tests.hostile.foreign import received

ROWS = [{"id": str(number), "question": f"say {number}", "references": [str(number)]} for number in range(4)]


@pytest.fixture
def file(tmp_path):
    """A model that notes in a file that its code was run."""
    path = tmp_path / "model.py"
    path.write_text(
        "from pathlib import Path\n"
        "Path(__file__).with_name('was-run').touch()\n"
        "def model(request):\n    return request.prompt.split()[-1]\n"
        "def other(request):\n    return 'other'\n"
    )
    return path


def was_run(file) -> bool:
    mark = file.with_name("was-run")
    exists: bool = mark.exists()
    mark.unlink(missing_ok=True)
    return exists


def test_its_function_answers(file, tmp_path):
    run = evaluate(ROWS, metrics=["contains"], model=f"python:{file}", output=tmp_path / "run", progress=False)
    assert run["contains"]["value"] == 1
    assert run.info.config.generation.model == f"python:{file}"
    other = evaluate(ROWS, metrics=["contains"], model=f"python:{file}:other", progress=False)
    assert other["contains"]["value"] == 0


def test_what_cannot_be_opened_is_named(file, tmp_path):
    for name, error in (
        ("python:missing.py", "missing.py cannot be read"),
        (f"python:{file}:nobody", "must define a function `nobody`"),
        (f"python:{file.with_suffix('.so')}", "must be a file that ends in .py"),
    ):
        with pytest.raises(ConfigError, match=error):
            evaluate(ROWS, metrics=["contains"], model=name, progress=False)
    file.write_text("1 / 0")
    with pytest.raises(ConfigError, match=r"cannot be imported: .*division by zero"):
        evaluate(ROWS, metrics=["contains"], model=f"python:{file}", progress=False)


def test_a_run_of_somebody_else_does_not_run_it(file, tmp_path):
    """Its run.json names the file, as the model or as a judge."""
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    brief = {"system": "Be brief."}
    asked = partial(evaluate, data, metrics=["contains"], model=f"python:{file}", progress=False)
    run, second = asked(output=tmp_path / "run"), asked(output=tmp_path / "second", generation=brief)
    theirs = received(run.path, tmp_path / "copy")
    (theirs / "answers" / "part-00000.parquet").write_bytes(b"damaged")
    assert was_run(file)
    with pytest.raises(MultimodalEvalError, match="not signed as a run of yours"):
        resume(theirs, progress=False)
    for more in ({}, {"base_url": "http://127.0.0.1:9/v1"}):
        with pytest.raises(MultimodalEvalError, match="not signed as a run of yours"):
            why(second.path, theirs, ask=2, **more)
    assert not was_run(file)


def test_a_judge_does_not_run_it(file, tmp_path):
    judge = tmp_path / "kind.yaml"
    judge.write_text(f"form: binary\nquestion: Is it kind?\nmodels: [{{model: 'python:{file}'}}]\n")
    rows = [{**row, "generated_answer": "yes"} for row in ROWS]
    with pytest.raises(ConfigError):
        evaluate(rows, metrics=[f"judge:{judge}"], progress=False)
    with pytest.raises(ConfigError, match="cannot be a judge, because its code would run"):
        evaluate(rows, metrics=[f"judge:{judge}"], judge=f"python:{file}", progress=False)
    assert not was_run(file)
