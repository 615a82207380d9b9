"""The files of a prompt in a run: read once, stored, and not read for somebody else's run."""

from __future__ import annotations

import json

import msgspec
import pytest

from multimodal_eval import evaluate, resume
from multimodal_eval.core.errors import InputError, RunFolderError
from multimodal_eval.data.runs import grants
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.protocol import Answer, EndpointError
from tests.hostile.foreign import received

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


@pytest.fixture
def foreign(tmp_path, generation):
    """A run that was not made here: a copy."""
    evaluate(ROWS, metrics="exact_match", model=echo, generation=generation, output=tmp_path / "run")
    return received(tmp_path / "run", tmp_path / "copy")


REFUSED = r"copy is not signed as a run of yours, and it would send requests to python:echo"


def test_nothing_is_asked_for_somebody_elses_run(foreign):
    folder = RunFolder(foreign)
    folder.write_info(msgspec.structs.replace(folder.read_info(), generation=None, finished=None))
    with pytest.raises(RunFolderError, match=REFUSED):
        resume(foreign, model=echo)


def test_damaged_answers_of_somebody_elses_run_are_not_asked_again(foreign):
    answers = next((foreign / "answers").glob("part-*"))
    answers.write_bytes(answers.read_bytes()[:-1])
    with pytest.raises(RunFolderError, match=REFUSED):
        resume(foreign, model=echo)


class Leaving:
    """Answers until it is told to fail."""

    label = "python:leaving"
    is_there = True

    async def answer(self, request):
        if not self.is_there:
            raise EndpointError("the endpoint is gone")
        return Answer(request.prompt)


def test_a_run_that_continues_with_other_settings_is_still_the_users(tmp_path, monkeypatch):
    model = Leaving()
    evaluate(ROWS, metrics="exact_match", model=model, output=tmp_path / "run", generation={"use_cache": False})
    answers = next((tmp_path / "run" / "answers").glob("part-*"))
    answers.write_bytes(answers.read_bytes()[:-1])
    model.is_there = False
    with pytest.raises(EndpointError):
        resume(tmp_path / "run", model=model, generation={"concurrency": 3})
    monkeypatch.setattr(grants, "_made_here", set())  # another process
    model.is_there = True
    assert resume(tmp_path / "run", model=model).info.config.generation.concurrency == 3
