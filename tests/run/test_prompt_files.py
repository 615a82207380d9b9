"""The files of a prompt in a run: read once, stored, and not read for somebody else's run."""

from __future__ import annotations

import json

import msgspec
import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import InputError, RunFolderError
from multimodal_eval.data.runs.grants import refuse_requests
from multimodal_eval.data.runs.run_folder import RunFolder

ROWS = [{"id": "1", "question": "Who?", "expected_answer": "Q: Who?"}]


def echo(request):
    return request.prompt


@pytest.fixture
def generation(tmp_path):
    (tmp_path / "mine.md").write_text("Q: {{ question }}")
    (tmp_path / "system.txt").write_text("Be brief.")
    (tmp_path / "shots.jsonl").write_text(json.dumps({"id": "s", "question": "q", "expected_answer": "a"}))
    files = {"prompt": "mine.md", "shots": "shots.jsonl"}
    named = {name: str(tmp_path / file) for name, file in files.items()}
    return {"model": "python:echo", "system": f"@{tmp_path / 'system.txt'}", **named}


def test_the_run_stores_the_texts_and_the_signature_has_their_digests(tmp_path, generation):
    run = evaluate(ROWS, metrics="exact_match", model=echo, generation=generation, output=tmp_path / "run")
    assert run["exact_match"]["value"] == 1
    stored = run.info.config.generation
    assert (stored.template, stored.system) == ("Q: {{ question }}", "Be brief.")
    # printf 'Q: {{ question }}' | sha256sum; printf 'Be brief.' | sha256sum
    assert "|prompt:mine.md@416eb7b99d98|system:213c22ed7234|shots:1@" in run.info.generation.signature


def test_a_sample_that_cannot_be_asked_leaves_no_run(tmp_path, generation):
    with pytest.raises(InputError, match=r"PROMPT: the template .*mine.md, line 1 .* field that is empty"):
        evaluate(
            [*ROWS, {"id": "2"}], metrics="exact_match", model=echo, generation=generation, output=tmp_path / "run"
        )
    assert not (tmp_path / "run").exists()


def test_examples_of_somebody_elses_run_are_not_read(tmp_path, monkeypatch, generation):
    run = evaluate(ROWS, metrics="exact_match", model=echo, generation=generation, output=tmp_path / "run")
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "another user"))
    shots = str(tmp_path / "shots.jsonl")
    config = msgspec.structs.replace(run.info.config, generation=GenerationConfig(model="m", shots=shots))
    open_run = msgspec.structs.replace(run.info, state="generating", config=config)
    with pytest.raises(RunFolderError, match=r"names a file to read: .*shots.jsonl \(its examples\)"):
        refuse_requests(RunFolder(tmp_path / "run"), open_run, config)
    refuse_requests(RunFolder(tmp_path / "run"), open_run, config, [tmp_path])
    refuse_requests(RunFolder(tmp_path / "run"), msgspec.structs.replace(open_run, state="done"), config)
