"""Replies of a model as a submission: the conversation that it sees, the files, failures, and continuing."""

from __future__ import annotations

import json
from importlib.resources import files
from math import log
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval.cli.main import cli
from multimodal_eval.contests.dialogue.contest import open_contest, prepare
from multimodal_eval.contests.dialogue.generation import (
    ANSWERS,
    DialogueInput,
    MediaRules,
    generate_dialogues,
    samples_of_turns,
)
from multimodal_eval.contests.dialogue.replies import FailedRepliesError
from multimodal_eval.core.conversation import Part
from multimodal_eval.core.errors import ConfigError, InputError, OpenSamplesError, RetryableError, RunFolderError
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.protocol import Answer, EndpointError, Media, RejectedError, Text
from tests.contests.dialogue.contest import write_json
from tests.media.wav_files import pcm16, wav

EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))


def said(*texts):
    """A turn of the user."""
    return [{"type": "text", "content": text} for text in texts]


QUESTIONS = {
    "столицы": [said("Столица Франции?"), said("А Италии?"), said("А Японии?")],
    "animals": [said("A pet that purrs?"), said("And one that barks?")],
    "one": [said("Yes or no?")],
}
GOLD = {
    "столицы": {"type": "Text2Text", "replies": [["Париж"], ["Рим"], ["Токио"]]},
    "animals": {"type": "Text2Text", "replies": [["cat"], ["dog"]]},
    "one": {"type": "Text2Text", "replies": [["yes"]]},
}


class Counting:
    """A model whose reply depends on the conversation: the number of its own replies so far, and the last question.

    The tokens of reply k have the probabilities 1/2 and 1/8, and k - 1 tokens more have the probability 1/4, so every
    perplexity is 4: the mean of ln 2 and ln 8 is ln 4.
    """

    label = "counting@1"

    def __init__(self, fail=None, logprobs=True):
        self.fail, self.logprobs, self.requests = fail or {}, logprobs, []

    async def answer(self, request):
        self.requests.append(request)
        replies = [turn for turn in request.turns if turn.role == "assistant"]
        failure = self.fail.get(request.id)
        if isinstance(failure, Exception):
            raise failure
        if failure is not None:
            return failure
        logprobs = [-log(2), -log(8), *[-log(4)] * len(replies)] if self.logprobs else None
        return Answer(f"{len(replies) + 1}. {request.prompt}", logprobs=logprobs)

    @property
    def ids(self):
        return [request.id for request in self.requests]


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


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


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


# Perplexities


def test_without_log_probabilities_there_is_no_file_of_perplexities(ask, tmp_path):
    generated = ask(Counting(logprobs=False))
    assert generated.perplexities is None
    assert not (tmp_path / "submission" / "ppl_output.json").exists()
    assert "6 of 6 answers have no perplexity (first: столицы/1: the model gave no log-probabilities)" in generated.note
    assert f"mmeval dialogue ppl {tmp_path}/questions.json {tmp_path}/submission/output.json -o" in generated.note


def test_log_probabilities_are_asked_for_unless_the_user_says_no(ask):
    model = Counting()
    ask(model)
    assert all(request.parameters.logprobs for request in model.requests)
    quiet = Counting(logprobs=False)
    generated = ask(quiet, generation={"parameters": {"logprobs": False, "temperature": 0.5}}, overwrite=True)
    assert not any(request.parameters.logprobs for request in quiet.requests)
    assert quiet.requests[0].parameters.temperature == 0.5
    assert "log-probabilities were not asked for" in generated.note


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        (None, "the model gave no log-probabilities"),
        ([], "there are no tokens"),
        ([-0.5, -9999.0], "the perplexity is infinite"),
        ([0.5], "log-probability 0 must be at most 0. Got 0.5"),
    ],
)
def test_one_reply_without_a_perplexity_is_named(ask, logprobs, reason):
    generated = ask(Counting(fail={"animals/2": Answer("dog", logprobs=logprobs)}))
    assert generated.perplexities is None
    assert f"1 of 6 answers have no perplexity (first: animals/2: {reason}" in generated.note
    assert read(generated.output)["animals"][1] == "dog"


def test_perplexities_of_other_answers_are_removed(ask, tmp_path):
    ask(Counting())
    generated = ask(Counting(logprobs=False), overwrite=True)
    assert generated.perplexities is None
    assert not (tmp_path / "submission" / "ppl_output.json").exists()


def test_perplexities_that_the_user_computed_are_kept(ask, tmp_path):
    ask(Counting(logprobs=False))
    ppl = write_json(tmp_path / "submission" / "ppl_output.json", {"one": [2]})
    generated = ask(Counting(logprobs=False))
    assert (generated.perplexities, generated.note) == (ppl, None)
    assert read(ppl) == {"one": [2]}


# Failures


REFUSED = Answer("I cannot say that", finish="refusal")


def test_after_a_failed_reply_the_later_ones_are_not_asked(ask, tmp_path):
    model = Counting(fail={"столицы/2": REFUSED})
    generated = ask(model)
    assert "столицы/3" not in model.ids
    reason = "refused: the model refused: 'I cannot say that'"
    blocked = "blocked: an earlier reply of the same dialogue failed"
    assert [(reply.name, reply.error) for reply in generated.failures] == [
        ("столицы/2", reason),
        ("столицы/3", blocked),
    ]
    assert read(generated.output) == {
        "столицы": ["1. Столица Франции?", {"error": reason}, {"error": blocked}],
        "animals": ["1. A pet that purrs?", "2. And one that barks?"],
        "one": ["1. Yes or no?"],
    }
    assert read(generated.perplexities)["столицы"] == [pytest.approx(4), {"error": reason}, {"error": blocked}]
    with pytest.raises(FailedRepliesError, match="2 of 6 replies have no answer:\n  столицы/2: refused"):
        generated.refuse_failures()


def test_scoring_refuses_failed_replies_and_names_the_reason(ask, tmp_path):
    ask(Counting(fail={"animals/1": REFUSED}))
    contest = open_contest(write_json(tmp_path / "gold.json", GOLD), synonyms="none", present_types_only=True)
    with pytest.raises(InputError) as refusal:
        prepare(contest, tmp_path / "submission")
    problems = [(problem.code, problem.id) for problem in refusal.value.problems]
    assert problems == [("MISSING_REPLY", "animals")] * 2 + [("MISSING_PERPLEXITY", "animals")] * 2
    text = str(refusal.value)
    assert "reply 1 has no answer, because the model failed: " in text
    assert "I cannot say that" in text
    assert "reply 2 has no answer, because the model failed: 'blocked: an earlier reply" in text


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Answer("", finish="stop"), "empty"),
        (Answer("cut", finish="length"), "truncated"),
        (Answer(None, finish="content_filter"), "filtered"),
        (Answer(None, finish="tool_calls"), "tool_call"),
    ],
)
def test_no_failure_is_an_answer(ask, reply, status):
    generated = ask(Counting(fail={"one/1": reply}))
    assert [failure.error.partition(":")[0] for failure in generated.failures] == [status]
    assert read(generated.output)["one"][0].keys() == {"error"}


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


# The commands


@pytest.fixture
def command(monkeypatch, tmp_path, questions):
    """Runs a command whose model `test:x` is the given one."""
    gold = write_json(tmp_path / "gold.json", GOLD)
    folder = str(tmp_path / "submission")

    def invoked(name, *options, model):
        monkeypatch.setattr("multimodal_eval.run.generation.model.find_generator", lambda config: model)
        inputs = [str(questions)] if name == "generate" else [str(gold), str(questions), "--present-types-only"]
        inputs += [] if name == "generate" else ["--synonyms", "ru=none", "--synonyms", "en=none"]
        arguments = ["dialogue", name, *inputs, "--model", "test:x", "-o", folder, "--no-cache", "--retries", "0"]
        return CliRunner().invoke(cli, [*arguments, *options])

    return invoked


def test_the_command_writes_a_submission(command, tmp_path):
    result = command("generate", "--system", "Кратко.", model=(model := Counting()))
    assert result.exit_code == 0, result.output
    assert "6 replies of 3 dialogues: " in result.stderr
    assert f"mmeval dialogue GOLD {tmp_path}/submission" in result.stderr
    assert model.requests[0].system == "Кратко."
    assert read(tmp_path / "submission" / "ppl_output.json")["one"] == [pytest.approx(4)]


def test_the_command_names_failed_replies_and_exits_1(command):
    result = command("generate", model=Counting(fail={"столицы/2": REFUSED}))
    assert result.exit_code == 1
    assert "столицы/2: refused: the model refused" in str(result.exception)
    assert "Score them" not in result.stderr


def test_the_command_explains_an_endpoint_without_log_probabilities(command):
    failure = {"one/1": RejectedError("HTTP 400: too long")}
    assert "--no-logprobs" not in str(command("generate", model=Counting(fail=failure)).exception)
    failure = {"one/1": RejectedError("HTTP 400: logprobs are not supported")}
    result = command("generate", "--overwrite", model=Counting(fail=failure))
    assert "If the endpoint offers no log-probabilities: --no-logprobs" in str(result.exception)
    model = Counting(logprobs=False)
    result = command("generate", "--overwrite", "--no-logprobs", model=model)
    assert result.exit_code == 0
    assert "! no ppl_output.json: log-probabilities were not asked for" in result.stderr
    assert not model.requests[0].parameters.logprobs


def test_a_stopped_command_says_that_it_continues(command):
    open_ = command("generate", model=Counting(fail={"one/1": RetryableError("busy")}))
    assert open_.exit_code == 1
    assert "the same command" in str(open_.exception)
    assert "mmeval run --resume" not in str(open_.exception)
    stopped = command("generate", model=Counting(fail={"one/1": EndpointError("no such model")}))
    assert "Continue with: the same command" in str(stopped.exception)
    assert command("generate", model=Counting()).exit_code == 0


def test_one_command_asks_and_scores(command, tmp_path):
    result = command("run", model=Counting())
    assert result.exit_code == 0, result.output + str(result.exception)
    assert "integral score" in result.stdout
    assert (tmp_path / "submission" / "run" / "report.html").is_file()
    again = command("run", model=Counting())
    assert "submission/run already exists" in str(again.exception)
    replaced = command("run", "--overwrite", "--format", "json", model=Counting())
    assert replaced.exit_code == 0, str(replaced.exception)
    assert json.loads(replaced.stdout)["metrics"]["hidden_metric"]["value"] == pytest.approx(1 / 4)


def test_scoring_needs_all_replies_and_perplexities(command, tmp_path):
    failed = command("run", model=Counting(fail={"one/1": REFUSED}))
    assert "one/1: refused" in str(failed.exception)
    without = command("run", "--overwrite", model=Counting(logprobs=False))
    assert "then score with: mmeval dialogue" in str(without.exception)
    assert not (tmp_path / "submission" / "run").exists()


def test_a_wrong_gold_file_is_refused_before_anything_is_asked(command, tmp_path):
    model = Counting()
    write_json(tmp_path / "gold.json", {"one": GOLD["one"], "two": GOLD["animals"]})
    result = command("run", model=model)
    assert isinstance(result.exception, InputError)
    assert model.requests == []


def test_a_model_is_required(questions, tmp_path):
    result = CliRunner().invoke(cli, ["dialogue", "generate", str(questions), "-o", str(tmp_path / "out")])
    assert (result.exit_code, "--model" in result.stderr) == (2, True)
