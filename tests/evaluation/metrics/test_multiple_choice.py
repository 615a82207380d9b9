"""Accuracy by a rule, gold answers, random letters and rotations."""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval import Sample, evaluate, rescore
from multimodal_eval.core.errors import InputError
from multimodal_eval.evaluation.choices import GoldError, gold_letters, options_of
from multimodal_eval.evaluation.metrics.multiple_choice import compute_multiple_choice
from multimodal_eval.stats.estimates import all_right
from tests.parts import set_part_size


def question(number, answer, gold="A", **fields):
    return Sample(
        id=str(number), generated_answer=answer, choices=["dog", "cat", "bird", "fish"], expected_answer=gold, **fields
    )


def run(samples, **options):
    return evaluate(samples, metrics=["multiple_choice"], options={"multiple_choice": options})


def test_an_answer_without_a_letter_scores_0_and_is_counted_as_unread():
    results = run([question(1, "**A**"), question(2, "I cannot see it"), question(3, "  ")])
    entry = results["multiple_choice"]
    assert (entry["value"], entry["n_scored"]) == (pytest.approx(1 / 3), 3)
    assert entry["warnings"] == {"unread": 2}
    details = results.scores(["multiple_choice:details"]).column(0).to_pylist()
    assert details == ['{"read":"A"}', '{"read":"unread"}', '{"read":"unread"}']


def test_a_drawn_letter_is_unscored_or_its_expected_value():
    samples = [question(1, "(A)"), question(2, "hm", gold="B")]
    drawn = run(samples, rule="mmmu-pro@2025")["multiple_choice"]
    assert (drawn["value"], drawn["n_scored"], drawn["unscored"]) == (1.0, 1, {"degenerate": 1})
    assert "draws a letter at random" in drawn["reasons"][0]["reason"]
    expected = run(samples, rule="mmmu-pro@2025", random="expected")["multiple_choice"]
    assert expected["value"] == (1 + 1 / 4) / 2  # one of four letters is right
    assert expected["warnings"] == {}


@pytest.mark.parametrize(
    ("gold", "kind", "letter"),
    [
        *(("B", "auto", "B"), ("b", "auto", "B"), ("(B)", "auto", "B"), ("Cat", "auto", "B"), ("C", "auto", "C")),
        *(("2", "index", "C"), ("c", "text", "A"), ("B.", "letter", "B")),
    ],
)
def test_a_gold_answer_is_a_letter_a_text_or_a_position(gold, kind, letter):
    sample = Sample(id="1", choices=["C", "cat", "bird"], expected_answer=gold)
    assert gold_letters(sample, options_of(sample), kind) == [letter]


@pytest.mark.parametrize(
    ("gold", "kind", "message"),
    [
        ("D", "auto", "'D' is none of the letters or texts of the choices A, B, C"),
        ("cat", "text", "'cat' is the text of several choices: A, B"),
        ("cat", "letter", "none of the letters"),
        ("3", "index", "a position from 0 to 2"),
    ],
)
def test_a_gold_answer_that_is_no_choice_is_refused(gold, kind, message):
    sample = Sample(id="1", choices=["cat", "Cat", "dog"], expected_answer=gold)
    with pytest.raises(GoldError, match=message):
        gold_letters(sample, options_of(sample), kind)


def test_any_of_several_references_is_right():
    sample = Sample(id="1", generated_answer="C", choices=["dog", "cat", "bird"], references=["A", "bird"])
    assert compute_multiple_choice(sample) == 1.0


def test_a_question_counts_only_if_all_its_rotations_are_right():
    # MMBench's numbering: question 1 is right in both rotations, question 2 in one of two.
    samples = [
        question(1, "A"),
        question(2, "A"),
        question(1_000_001, "B", gold="B"),
        question(1_000_002, "A", gold="B"),
    ]
    entry = run(samples, rotations="index")["multiple_choice"]
    assert (entry["value"], entry["parts"]["single"]["value"]) == (0.5, 0.75)
    by_group = [question(number, "A", gold, group=group) for number, gold, group in ((1, "A", "x"), (2, "B", "x"))]
    assert run(by_group, rotations="group")["multiple_choice"]["value"] == 0.0
    by_column = [question(number, "A", metadata={"q": number // 2}) for number in range(4)]
    results = run(by_column, rotations="q")
    assert results["multiple_choice"]["value"] == 1.0
    assert "|rotations:q" in results.results["metrics"]["multiple_choice"]["signature"]


def test_the_error_of_grouped_rows_is_that_of_as_many_units():
    # Groups with the products 1, 0, 1, 0: a mean of 0.5 over 4 units, whose standard error is s / sqrt(4).
    values, keys = np.array([1.0, 1, 0, 1, 1, 1, 0, 0]), np.repeat(np.arange(4.0), 2)[:, None]
    estimate = all_right(values, keys)
    assert estimate.value == 0.5
    error = np.sqrt((estimate.influence**2).sum()) / len(values)
    assert error == pytest.approx(np.std([1, 0, 1, 0], ddof=1) / 2)
    assert not estimate.corrected


NUMBERS = ["2", "1", "3", "0"]


def numbered(gold, choices=NUMBERS):
    rows = [{"prediction": "B", "choices": choices, "expected_answer": answer} for answer in gold]
    return [{"id": str(number), **row} for number, row in enumerate(rows)]


def notes_of(rows, **options):
    return run(rows, **options).outcome.notes


def test_a_number_is_a_position_unless_it_is_the_text_of_another_choice():
    rows = numbered([0, 1, "2", 3], ["dog", "cat", "bird", "7"])
    scored = run([{**row, "prediction": "C"} for row in rows])
    assert [row["multiple_choice"] for row in scored.scores().to_pylist()] == [0, 0, 1, 0]
    assert scored.outcome.notes == []
    assert notes_of(numbered(["1"])) == []  # the text of B, which is also at the position 1
    with pytest.raises(InputError) as refused:  # as positions: B, C, D, A; as texts: B, A, C, D
        run(numbered([1, 2, " 3 ", 0]))
    assert len(refused.value.problems) == 3
    assert (
        "the gold answer 2 is the text of the choice A and the position of C. Say which one is meant: "
        "--option multiple_choice.gold=text, or gold=index"
    ) in refused.value.problems[0].message
    values = [run([{**row, "prediction": "C"} for row in numbered([2])], gold=gold) for gold in ("text", "index")]
    assert [each["multiple_choice"]["value"] for each in values] == [0, 1]


def test_a_note_about_choices_with_numbers_as_letters():
    (note,) = notes_of(numbered(["1"], {"1": "2", "2": "1", "3": "4"}))  # as letter 1, as text 2, as position 2
    assert "are read as letters of choices (1 ×)" in note
    assert "as texts, 1 would be another choice: --option multiple_choice.gold=text" in note
    assert "as positions from 0, 1 would be another choice: --option multiple_choice.gold=index" in note


@pytest.mark.parametrize("gold", ["text", "index"])
def test_a_named_reading_needs_no_note(gold):
    assert notes_of(numbered(["1", "2"]), gold=gold) == []


def test_no_note_if_a_gold_answer_has_one_reading():
    rows = [*numbered(["B"]), *numbered(["7"], ["7", "8"]), *numbered(["1"], {"1": "dog", "2": "cat"})]
    rows = [{**row, "id": str(number)} for number, row in enumerate(rows)]
    assert notes_of(rows) == []


def test_numbers_are_found_in_every_field_and_part(monkeypatch, tmp_path):
    """One note for all rules; a rescored run says the same, unless it names the reading."""
    set_part_size(monkeypatch, 2)
    golds = [{"references": ["A", "1"]}, {"expected_answer": "A"}, {"caption": "1"}, {"expected_answer": "A"}]
    row = {"prediction": "A", "choices": {"1": "2", "2": "1", "A": "A"}}  # as a letter or a text
    rows = [{"id": str(number), **row, **gold} for number, gold in enumerate(golds)]
    variants = {"mc2": "multiple_choice"}
    options = {"mc2": {"rule": "mmmu@2024"}}
    metrics = ["multiple_choice", "mc2"]
    run = evaluate(rows, metrics=metrics, variants=variants, options=options, output=tmp_path / "run")
    (note,) = run.outcome.notes
    assert "letters of choices (2 ×); as texts, 2 would be" in note
    named = {"options": {name: {"gold": "auto" if name == "mc2" else "text"} for name in metrics}}
    assert "mc2: gold numbers" in str(rescore(tmp_path / "run", named).outcome.notes)
    named = {"options": {name: {"gold": "text"} for name in metrics}}
    assert rescore(tmp_path / "run", named).outcome.notes == []
