"""The files with the replies of a model: perplexities and failures."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from multimodal_eval.contests.dialogue.contest import open_contest, prepare
from multimodal_eval.contests.dialogue.generation import FailedRepliesError
from multimodal_eval.core.errors import InputError
from multimodal_eval.generate.protocol import Answer
from tests.contests.dialogue.contest import write_json
from tests.contests.dialogue.counting_model import GOLD, REFUSED, Counting, read

EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))


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
