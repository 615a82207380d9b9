"""The files of a small contest, valid or with problems."""

from __future__ import annotations

import pytest

from multimodal_eval.contests.dialogue.contest import open_contest, prepare
from multimodal_eval.contests.dialogue.generation import generate_dialogues
from multimodal_eval.core.errors import InputError
from tests.contests.dialogue.contest import GOLD, OUTPUT, PPL, write_json
from tests.contests.dialogue.counting_model import QUESTIONS


@pytest.fixture
def contest(tmp_path):
    """Writes the files of a contest, with any changed content or raw bytes, and scores them into `run`."""

    def scored(gold=GOLD, output=OUTPUT, ppl=PPL, questions=None, suffix="", **settings):
        names = {"gold": gold, "output": output, "ppl_output": ppl, "questions": questions}
        paths = {}
        for name, content in names.items():
            paths[name] = path = tmp_path / f"{name}.json{suffix}"
            if isinstance(content, bytes):
                path.write_bytes(content)
            elif content is not None:
                write_json(path, content)
        settings |= {"questions": paths["questions"]} if questions is not None else {}
        opened = open_contest(paths["gold"], **({"synonyms": "none"} | settings))
        return prepare(opened, paths["output"], paths["ppl_output"]).score(tmp_path / "run")

    return scored


@pytest.fixture
def problems(contest, tmp_path):
    """Code, file, id and text of each problem of refused files; no run folder is left."""

    def refused(**files):
        with pytest.raises(InputError) as error:
            contest(**files)
        assert not (tmp_path / "run").exists()
        refusals = error.value.problems
        assert error.value.total == len(refusals)
        return [
            (problem.code, problem.file and problem.file.removeprefix(f"{tmp_path}/"), problem.id, str(problem))
            for problem in refusals
        ]

    return refused


@pytest.fixture
def questions(tmp_path):
    return write_json(tmp_path / "questions.json", QUESTIONS)


@pytest.fixture
def ask(questions, tmp_path):
    """Generates into `submission`, without the cache and without retries."""

    def generated(model, path=questions, generation=None, **settings):
        generation = {"use_cache": False, "retries": 0, **(generation or {})}
        return generate_dialogues(path, tmp_path / "submission", model=model, generation=generation, **settings)

    return generated
