"""Replies of a model: the conversation that it sees, what is refused, and continuing after an interruption."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval.contests.dialogue.contest import open_contest, prepare
from multimodal_eval.contests.dialogue.generation import (
    ANSWERS,
    DialogueInput,
    MediaRules,
    samples_of_turns,
)
from multimodal_eval.core.conversation import Part
from multimodal_eval.core.errors import ConfigError, InputError, OpenSamplesError, RetryableError, RunFolderError
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.grants import is_own
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.protocol import EndpointError, Media, Text
from tests.contests.dialogue.contest import write_json
from tests.contests.dialogue.counting_model import GOLD, QUESTIONS, REFUSED, Counting, read, said
from tests.media.wav_files import pcm16, wav

EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))


# What the model sees, and the files


def test_every_reply_is_asked_after_the_conversation_before_it(ask):
    model = Counting()
    ask(model)
    turns = {
        request.id: [(turn.role, turn.text) for turn in request.turns if turn.role != "system"]
        for request in model.requests
    }
    assert set(turns) == {"столицы/1", "столицы/2", "столицы/3", "animals/1", "animals/2", "one/1"}
    assert turns["столицы/3"] == [
        ("user", "Столица Франции?"),
        ("assistant", "1. Столица Франции?"),
        ("user", "А Италии?"),
        ("assistant", "2. А Италии?"),
        ("user", "А Японии?"),
    ]
    assert turns["one/1"] == [("user", "Yes or no?")]
    assert model.ids.index("столицы/1") < model.ids.index("столицы/2") < model.ids.index("столицы/3")


def test_the_files_are_those_of_a_submission(ask, tmp_path):
    generated = ask(Counting())
    assert generated.output == tmp_path / "submission" / "output.json"
    assert read(generated.output) == {
        "столицы": ["1. Столица Франции?", "2. А Италии?", "3. А Японии?"],
        "animals": ["1. A pet that purrs?", "2. And one that barks?"],
        "one": ["1. Yes or no?"],
    }
    values = read(generated.perplexities)
    assert {name: [pytest.approx(4)] * len(turns) for name, turns in QUESTIONS.items()} == values
    assert list(values) == list(QUESTIONS)
    assert (generated.failures, generated.note, generated.dialogues) == ([], None, list(QUESTIONS))
    assert "Столица" in generated.output.read_text(encoding="utf-8")  # readable, not escaped


def test_the_folder_is_accepted_for_scoring(ask, tmp_path):
    ask(Counting())
    contest = open_contest(
        write_json(tmp_path / "gold.json", GOLD), synonyms="none", present_types_only=True, skip_lint=True
    )
    run = prepare(contest, tmp_path / "submission").score(tmp_path / "run")
    assert run["hidden_metric"]["value"] == pytest.approx(1 / 4)  # 1 / perplexity
    assert [sample.generated_answer for sample in run.samples()][:2] == ["1. Столица Франции?", "2. А Италии?"]


def test_media_are_sent_in_the_order_of_the_parts(ask, tmp_path):
    Image.new("RGB", (7, 5), "red").save(tmp_path / "a.png")
    Image.new("RGB", (5, 7), "blue").save(tmp_path / "b.png")
    (tmp_path / "a.wav").write_bytes(wav(pcm16(1, 2, 3)))
    first = [
        {"type": "image", "content": "a.png"},
        {"type": "text", "content": "and"},
        {"type": "image", "content": "b.png"},
        {"type": "audio", "content": "a.wav"},
    ]
    path = write_json(tmp_path / "questions.json", {"d": [first, said("Which is red?")]})
    model = Counting()
    ask(model, path)
    asked = {request.id: request for request in model.requests}
    for request, place in ((asked["d/1"], 0), (asked["d/2"], 0)):  # the second request has the first turn too
        parts = [turn for turn in request.turns if turn.role == "user"][place].parts
        assert [part.kind if isinstance(part, Media) else part.text for part in parts] == [
            *("image", "and", "image", "audio")
        ]
        contents = [part.content for part in parts if isinstance(part, Media)]
        assert contents == [(tmp_path / name).read_bytes() for name in ("a.png", "b.png", "a.wav")]
    assert asked["d/2"].turns[-1].parts == (Text("Which is red?"),)


def test_a_turn_may_be_only_spoken(ask, tmp_path):
    (tmp_path / "a.wav").write_bytes(wav(pcm16(1, 2, 3)))
    path = write_json(tmp_path / "questions.json", {"d": [[{"type": "audio", "content": "a.wav"}]]})
    model = Counting()
    assert not ask(model, path).failures
    assert [type(part) for part in model.requests[0].turns[-1].parts] == [Media]


def test_the_example_of_the_contest_is_asked_in_both_languages(ask):
    model = Counting()
    generated = ask(model, EXAMPLE / "questions.json")
    gold = read(EXAMPLE / "gold.json")
    assert generated.dialogues == list(gold)
    assert len(generated.replies) == sum(len(dialogue["replies"]) for dialogue in gold.values()) == len(model.requests)
    answers = read(generated.output)
    assert answers["t2t-ru-3"][1] == "2. А если он опоздает на 15 минут?"
    # A request contains the media of its whole conversation.
    media = {request.id: [part.kind for part in request.media] for request in model.requests}
    assert media["i2t-ru-2/2"] == ["image"]
    assert media["a2t-ru-1/2"] == ["audio"]
    assert media["ia2t-en-3/1"] == ["image", "audio"]


def test_questions_without_names_give_answers_without_names(ask, tmp_path):
    path = write_json(tmp_path / "questions.json", [[said("a?"), said("b?")], [said("c?")]])
    generated = ask(Counting(), path)
    assert read(generated.output) == [["1. a?", "2. b?"], ["1. c?"]]
    gold = {
        "x": {"type": "Text2Text", "replies": [["a"], ["b"]]},
        "y": {"type": "Text2Text", "replies": [["c"]]},
    }
    contest = open_contest(write_json(tmp_path / "gold.json", gold), synonyms="none", present_types_only=True)
    run = prepare(contest, tmp_path / "submission").score(tmp_path / "run")
    assert [(sample.id, sample.generated_answer) for sample in run.samples()] == [
        ("x/1", "1. a?"),
        ("x/2", "2. b?"),
        ("y/1", "1. c?"),
    ]


# Continuing


def test_an_interrupted_generation_continues_where_it_stopped(ask, tmp_path):
    with pytest.raises(EndpointError, match="the key is gone"):
        ask(Counting(fail={"столицы/3": EndpointError("the key is gone")}), generation={"concurrency": 1})
    assert not (tmp_path / "submission" / "output.json").exists()
    asked = RunFolder(tmp_path / "submission" / ANSWERS).read_info()
    assert asked.state == "generating"
    again = Counting()
    generated = ask(again, generation={"concurrency": 7, "base_url": "http://127.0.0.1:9/v1"})
    assert "столицы/1" not in again.ids
    assert "столицы/2" not in again.ids
    third = next(request for request in again.requests if request.id == "столицы/3")
    assert [turn.text for turn in third.turns if turn.role == "assistant"] == ["1. Столица Франции?", "2. А Италии?"]
    assert read(generated.output)["столицы"][2] == "3. А Японии?"
    assert generated.info.base_url == "http://127.0.0.1:9/v1"
    assert is_own(generated.folder, generated.folder.read_info())  # also with the new address


def test_a_finished_generation_asks_nothing(ask):
    first = ask(Counting())
    contents = first.output.read_bytes(), first.perplexities.read_bytes()
    first.perplexities.unlink()
    model = Counting()
    again = ask(model)
    assert model.requests == []
    assert (again.output.read_bytes(), again.perplexities.read_bytes()) == contents


def test_open_replies_can_be_given_up(ask):
    down = {"столицы/1": RetryableError("busy"), "one/1": RetryableError("busy")}
    with pytest.raises(OpenSamplesError, match="busy"):
        ask(Counting(fail=down))
    generated = ask(Counting(fail=down), accept_open=True)
    assert [reply.name for reply in generated.failures] == ["столицы/1", "столицы/2", "столицы/3", "one/1"]
    assert generated.failures[0].error == "unanswered: busy"


@pytest.mark.parametrize("changed", ["model", "system", "questions"])
def test_another_question_model_or_setting_is_refused(ask, tmp_path, changed):
    ask(Counting())
    model, generation = Counting(), {}
    if changed == "model":
        model.label = "counting@2"
    elif changed == "system":
        generation = {"system": "Be brief."}
    else:
        write_json(tmp_path / "questions.json", {"one": QUESTIONS["one"]})
    with pytest.raises(RunFolderError, match="Name another folder with -o, or start again with --overwrite"):
        ask(model, generation=generation)
    assert model.requests == []
    generated = ask(model, generation=generation, overwrite=True)
    assert len(model.requests) == len(generated.replies) == (1 if changed == "questions" else 6)


def test_a_changed_output_is_not_overwritten(ask):
    generated = ask(Counting(fail={"one/1": REFUSED}))
    answers = read(generated.output)
    answers["one"] = ["yes"]
    write_json(generated.output, answers)
    with pytest.raises(RunFolderError, match=r"output.json was changed after it was generated"):
        ask(Counting())
    assert read(generated.output)["one"] == ["yes"]


def test_a_submission_from_elsewhere_is_not_overwritten(ask, tmp_path):
    (tmp_path / "submission").mkdir()
    other = write_json(tmp_path / "submission" / "output.json", {"one": ["mine"]})
    model = Counting()
    with pytest.raises(ConfigError, match="was not generated here"):
        ask(model)
    assert (model.requests, read(other)) == ([], {"one": ["mine"]})


# Refused before anything is asked


def test_missing_media_are_named_before_anything_is_asked(ask, tmp_path):
    turns = [[{"type": "image", "content": "no.png"}], [{"type": "audio", "content": "../outside.wav"}]]
    path = write_json(tmp_path / "questions.json", {"d": turns})
    model = Counting()
    with pytest.raises(InputError) as refusal:
        ask(model, path)
    assert [(problem.code, problem.id) for problem in refusal.value.problems] == [("IMAGE", "d"), ("AUDIO", "d")]
    assert "turn 1" in str(refusal.value)
    assert (model.requests, (tmp_path / "submission").exists()) == ([], False)


def test_media_are_read_from_another_folder_if_the_user_names_it(ask, tmp_path):
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "a.wav").write_bytes(wav(pcm16(1, 2)))
    path = write_json(tmp_path / "questions.json", {"d": [[{"type": "audio", "content": "a.wav"}]]})
    model = Counting()
    ask(model, path, media=MediaRules(root=tmp_path / "media"))
    assert len(model.requests) == 1
    with pytest.raises(ConfigError, match="must be a folder"):
        ask(Counting(), path, media=MediaRules(root=tmp_path / "nothing"))


# Parts


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(1, 6))
def test_a_part_contains_whole_dialogues(sizes, most):
    turns = {f"d{number}": [(Part("text", "?"),)] * size for number, size in enumerate(sizes)}
    samples = samples_of_turns(turns)
    parts = [part.samples([]) for part in DialogueInput(samples, []).parts(Problems(), Summary(), most)]
    assert [sample for part in parts for sample in part] == samples
    groups = [{sample.group for sample in part} for part in parts]
    assert sum(map(len, groups)) == len(turns)
    assert all(len(part) >= most for part in parts[:-1])
