"""Refusals and suspected failures: which texts count, when references excuse them, and what lint reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval.lint.facts import Flag
from multimodal_eval.lint.failed_answers import Doubt, doubts_about, refusal, suspected
from multimodal_eval.lint.findings import findings
from tests.core.test_failures import FAILURES
from tests.golden.load import golden
from tests.lint.both_ways import facts_of
from tests.parts import set_part_size

REFUSALS = (
    *("I am unable to see", "I'm unable to view the image.", "As an AI, I have no eyes", "As an AI language model, I"),
    *("I'm sorry, but I can't assist with that.", "I’m sorry, I can’t help", "Sorry, I cannot view images."),
    *("I cannot see the image.", "I can't provide a caption", "Unfortunately, I am not able to open the photo."),
    *(
        "I apologize, but I cannot do this",
        "I do not have the ability to hear",
        "**I'm unable to answer**",
        "I won't help",
    ),
    *("Извините, я не могу помочь с этим.", "Как языковая модель, я не вижу", "Я не могу увидеть изображение"),
)
SUSPECTS = (
    *("None", "none.", " N/A ", "null", "NaN", "undefined", "{}", "[ ]", '""', "''", '{"answer": ""}', '{"a": null}'),
    *(
        "Error",
        "error: no",
        "ERROR: something broke",
        "Error: 404 Not Found",
        "ValueError: no",
        "my.pkg.BadThingError(1)",
    ),
    *("[BLOCKED] x", "<error>", "502 Bad Gateway", "Internal Server Error", "HTTP 500", "Failed to load the image"),
    *("Unable to process the image", "no answer", "<NA>"),
)
ANSWERS = (
    *(
        "a dog",
        "None of them",
        "I can see a dog",
        "As an airplane lands",
        "I can't see any dog",
        "I am sorry for the dog",
    ),
    *("An error on a screen", "a terror: no", "empty", "blocked", "[a, b]", '{"answer": "none of them"}', "nano"),
    *("Error 404", "Internal Server Error on a screen", "Unable to fly", "Failed to score", "'' and", "5", "500", "no"),
    *("sorry", "Я не могу забыть", "как собака", "n/a or not", "Exception to the rule", "nothing"),
)


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text):
    assert doubts_about(text, ["a dog"]) == Doubt.REFUSAL
    assert doubts_about(text, ["a dog", text]) == 0


@pytest.mark.parametrize("text", SUSPECTS)
def test_suspected_failures(text):
    assert doubts_about(text, ["a dog"]) == Doubt.SUSPECTED
    assert doubts_about(text, ["a dog", text]) == 0


@pytest.mark.parametrize("text", ANSWERS)
def test_answers(text):
    assert doubts_about(text, []) == 0


def test_captions_are_neither():
    texts = [row[0] for row in golden("ptb_fuzz.json.gz")["rows"]]
    assert [text for text in texts if refusal().match(text)] == []
    assert {text for text in texts if suspected().match(text)} == {"''"}  # not a caption


def sample(number, answer, **fields):
    return Sample(id=f"s{number}", generated_answer=answer, group=f"g{number}", **fields)


def doubts(samples, patterns=None):
    facts = facts_of(samples) if patterns is None else facts_of(samples, patterns)
    return (facts["flags"] & (Doubt.REFUSAL | Doubt.SUSPECTED)).tolist()


def test_a_clear_failure_is_suspected_only_if_it_is_scored():
    rows = [sample(n, text) for n, text in enumerate(FAILURES)]
    assert doubts(rows) == [0] * len(rows)
    assert doubts(rows, ()) == [Doubt.SUSPECTED] * len(rows)


pieces = st.sampled_from(
    [text[:length] for text in (*REFUSALS, *SUSPECTS, *FAILURES) for length in (3, 8, 60)]
    + ["", " ", "\u2003", "“", "*", "x", "Error", "Exception(", "\u0130'm", "собака"]
)


@given(st.lists(st.tuples(st.lists(pieces, max_size=3).map("".join), st.booleans()), min_size=1, max_size=8))
def test_columns_and_samples_agree(rows):
    samples = [sample(n, text, references=["None", "x"] if refers else None) for n, (text, refers) in enumerate(rows)]
    facts_of(samples)  # checks both ways


def report(samples):
    return {
        finding.code: finding
        for finding in findings(facts_of(samples), lambda row: (samples[row].id, samples[row].generated_answer))
    }


def test_findings_have_counts_and_examples():
    texts = ["None", "a dog", "{}", "None", "As an AI, I cannot", "[ERROR] x", "", None, "I am unable to see"]
    by_code = report([sample(n, text) for n, text in enumerate(texts)])
    suspected, refusal = by_code["SUSPECTED_FAILURE"], by_code["REFUSAL"]
    assert (suspected.count, suspected.total, suspected.examples) == (3, 7, ["s0", "s2", "s3"])  # 7 have an answer
    assert [(answer.answer, answer.count) for answer in suspected.answers] == [("None", 2), ("{}", 1)]
    assert (refusal.count, refusal.examples) == (2, ["s4", "s8"])


def test_an_answer_that_is_a_reference_elsewhere_is_an_answer():
    rows = [
        sample(0, "None", references=["cat"]),
        sample(1, "dog", references=["none"]),
        sample(2, "N/A", references=["x"]),
    ]
    assert report(rows)["SUSPECTED_FAILURE"].examples == ["s2"]


def test_the_flags_are_separate():
    other = [value for name, value in vars(Flag).items() if name.isupper()]
    assert not any(value & (Doubt.REFUSAL | Doubt.SUSPECTED) for value in other)


@pytest.mark.parametrize("size", [1, 3])
def test_a_run_gives_the_same_findings_for_any_parts(monkeypatch, tmp_path, size):
    texts = [
        "None",
        "a dog",
        "Error: 429 Too Many Requests",
        "I'm sorry, I can't assist with that.",
        "{}",
        "a cat",
        "N/A",
    ]
    rows = [sample(n, text, references=[f"a {n}"]) for n, text in enumerate(texts)]
    whole = evaluate(rows, metrics=["rouge_l"], output=tmp_path / "whole")
    codes = [finding["code"] for finding in whole.lint()["findings"]]
    assert codes[:2] == ["SUSPECTED_FAILURE", "REFUSAL"]
    set_part_size(monkeypatch, size)
    evaluate(rows, metrics=["rouge_l"], output=tmp_path / "parts", workers=2)
    assert (tmp_path / "parts" / "lint.json").read_bytes() == (tmp_path / "whole" / "lint.json").read_bytes()
