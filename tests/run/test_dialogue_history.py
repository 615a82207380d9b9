"""Dialogues that are generated turn by turn, also over the ends of parts and after an interruption."""

from __future__ import annotations

import pytest

from multimodal_eval import evaluate, resume
from multimodal_eval.core.errors import InputError, OpenSamplesError, RetryableError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.protocol import Answer, EndpointError
from tests.parts import set_part_size

ROWS = [
    {"id": f"{dialogue}{turn}", "question": f"{dialogue}{turn}?", "group": dialogue, "expected_answer": "x"}
    for dialogue in "abc"
    for turn in range(4)
]
SETTINGS = {"model": "python:counting", "history": True, "concurrency": 2, "use_cache": False}


class Counting:
    """Answers with everything that it was told, and fails after some answers."""

    label = "python:counting"

    def __init__(self, limit=1000):
        self.limit, self.asked = limit, []

    async def answer(self, request):
        if len(self.asked) >= self.limit:
            raise EndpointError("the endpoint is gone")
        self.asked.append(request.id)
        return Answer("|".join(turn.text for turn in request.turns))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    set_part_size(monkeypatch, 3)  # dialogues of four turns end in other parts


def answers(folder):
    folder = RunFolder(folder)
    parts = range(len(folder.read_info().parts))
    return {
        sample.id: sample.generated_answer or sample.error for part in parts for sample in folder.read_samples(part)
    }


# Each answer is everything before it, and the question: a0? then a0?|a0?|a1? and so on.
FIRST = "a0?"
SECOND = f"a0?|{FIRST}|a1?"
THIRD = f"a0?|{FIRST}|a1?|{SECOND}|a2?"
FOURTH = f"a0?|{FIRST}|a1?|{SECOND}|a2?|{THIRD}|a3?"


def test_each_reply_conditions_the_next(tmp_path):
    evaluate(ROWS, metrics="exact_match", model=Counting(), generation=SETTINGS, output=tmp_path / "run")
    given = answers(tmp_path / "run")
    assert [given[f"a{turn}"] for turn in range(4)] == [FIRST, SECOND, THIRD, FOURTH]
    assert given["c3"] == FOURTH.replace("a", "c")


@pytest.mark.parametrize("limit", [1, 2, 4, 7, 11])
def test_an_interrupted_dialogue_continues_with_its_earlier_replies(tmp_path, limit):
    first, second = Counting(limit), Counting()
    with pytest.raises(EndpointError):
        evaluate(ROWS, metrics="exact_match", model=first, generation=SETTINGS, output=tmp_path / "run")
    resume(tmp_path / "run", model=second, progress=False)
    assert len(first.asked) == limit
    assert sorted(first.asked + second.asked) == [row["id"] for row in ROWS]  # nothing is asked twice
    turns = (FIRST, SECOND, THIRD, FOURTH)
    expected = {f"{name}{place}": turn.replace("a", name) for name in "abc" for place, turn in enumerate(turns)}
    assert answers(tmp_path / "run") == expected


def test_turns_after_a_failed_reply_are_blocked_in_the_next_part_too(tmp_path):
    class Silent(Counting):
        async def answer(self, request):
            return Answer("") if request.id == "a1" else await super().answer(request)

    evaluate(ROWS, metrics="exact_match", model=Silent(), generation=SETTINGS, output=tmp_path / "run")
    given = answers(tmp_path / "run")
    assert given["a2"] == given["a3"] == "blocked: an earlier reply of the same dialogue failed"
    assert given["b3"] == FOURTH.replace("a", "b")


def test_turns_after_a_turn_without_a_reply_are_not_asked(tmp_path):
    class Overloaded(Counting):
        async def answer(self, request):
            if request.id == "a1":
                raise RetryableError("overloaded")
            return await super().answer(request)

    model, settings = Overloaded(), {**SETTINGS, "retries": 0}
    with pytest.raises(OpenSamplesError, match="overloaded"):
        evaluate(ROWS, metrics="exact_match", model=model, generation=settings, output=tmp_path / "run")
    assert "a2" not in model.asked
    resume(tmp_path / "run", model=Counting(), progress=False)
    assert [answers(tmp_path / "run")[f"a{turn}"] for turn in range(4)] == [FIRST, SECOND, THIRD, FOURTH]


def test_a_dialogue_in_several_places_is_refused_before_anything_is_asked(tmp_path):
    model = Counting()
    with pytest.raises(InputError, match="not next to each other"):
        evaluate([*ROWS, {**ROWS[0], "id": "z"}], metrics="exact_match", model=model, generation=SETTINGS)
    assert model.asked == []
