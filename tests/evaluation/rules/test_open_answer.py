"""The rules for open answers give what the programs of the benchmarks give."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.rules import find_rule, rules_of
from multimodal_eval.evaluation.choices import GoldError
from multimodal_eval.evaluation.rules._open_benchmarks import extracted
from multimodal_eval.evaluation.rules._readings import Reading, letters_of
from multimodal_eval.evaluation.rules.open_answer import Question, mean_relative_accuracy
from multimodal_eval.run.reproduction import reproduce
from multimodal_eval.run.reproduction.ledger import OUR_LEDGER
from tests.golden.load import golden

DATA = os.environ.get("MMEVAL_TEST_DATA")  # a folder with published/, which is not in the project


def value(rule, answer, gold, options=(), **columns):
    golds = gold if isinstance(gold, list) else [gold]
    lettered = dict(zip(letters_of(len(options)), options, strict=True))
    return find_rule("open_answer", rule).function(answer, Question(golds, lettered, columns)).value


# Verdicts of the origins


def test_chartqapro_equals_its_origins():
    cases = golden("open_answers.json.gz")["chartqapro"]
    assert len(cases) == 1500
    for answer, gold, kind, years, official, lmms_eval in cases:
        columns = {"Question Type": kind, "Year": years}
        assert value("chartqapro@2025", answer, gold, **columns) == official, (answer, gold)
        assert value("lmms-eval@0.7.3/chartqapro", answer, gold, **columns) == lmms_eval, (answer, gold)


def test_vsi_bench_and_realworldqa_equal_their_origins():
    cases = golden("open_answers.json.gz")
    for answer, gold, first_word, first_number in cases["vsi-bench"]:
        assert value("vsi-bench@2024", answer, gold) == pytest.approx(first_word, abs=1e-12), answer
        assert value("lmms-eval@0.7.3/vsibench", answer, gold) == pytest.approx(first_number, abs=1e-12), answer
    for answer, gold, verdict in cases["realworldqa"]:
        assert value("lmms-eval@0.7.3/realworldqa", answer, gold) == verdict, (answer, gold)


def test_math_vision_equals_published_verdicts():
    cases = golden("published_answers.json.gz")["math-vision"]
    assert len(cases) == 120
    assert sum(verdict for *_, verdict in cases) == 60
    # The stored extraction of one answer is not that of its text; its verdict is.
    assert [answer for answer, *_, extraction, _ in cases if extracted(answer) != extraction] == ["B"]
    for answer, options, gold, _, verdict in cases:
        assert value("math-vision@2024", answer, gold, options) == verdict, (answer, gold)


def test_blink_reads_the_published_letters():
    rule = find_rule("choice", "blink@2024").function
    readings = [
        (rule(answer, dict.fromkeys(letters_of(count), "")).choice, extraction)
        for answer, count, extraction in golden("published_answers.json.gz")["blink"]
    ]
    assert sum(letter is not None for letter, _ in readings) > 40
    assert [pair for pair in readings if pair[0] is not None and f"({pair[0]})" != pair[1]] == []


def test_mmmu_equals_its_program_with_its_draws():
    rows = golden("published_answers.json.gz")["mmmu"]
    samples = [
        Sample(
            id=str(number),
            generated_answer=answer,
            choices=choices or None,
            references=gold if isinstance(gold, list) else [gold],
        )
        for number, (answer, choices, gold, _) in enumerate(rows)
    ]
    run = evaluate(samples, metrics=["open_answer"], options={"open_answer": {"rule": "mmmu@2024/seed42"}})
    assert run.scores(["open_answer"]).column("open_answer").to_pylist() == [float(verdict) for *_, verdict in rows]
    honest = evaluate(samples, metrics=["open_answer"], options={"open_answer": {"rule": "mmmu@2024"}})["open_answer"]
    assert honest["unscored"] == {"degenerate": 2}


def test_all_published_answers():
    if DATA is None:
        pytest.skip("MMEVAL_TEST_DATA names no folder with published answers")
    outcome = reproduce(OUR_LEDGER, Path(DATA) / "published")
    assert [entry.entry.title for entry in outcome.broken] == []
    differing = sum(
        entry.compared - entry.equal_verdicts for entry in outcome.entries if entry.entry.declared == "equal"
    )
    # Two answers of BLINK to which the authors stored (Z); three entries have them.
    assert differing == 3


# Cases worked out from the definition of a rule


@pytest.mark.parametrize(
    ("answer", "gold", "is_right"),
    [
        ("The answer is 3.", "3", True),
        ("So x = 12.345", "12.35", True),  # 12.345 is rounded to 12.35 as 12.35 is
        ("1,200", "1200", True),
        ("1/64", "1/64", True),
        ("so it is the red one\nthus blue", ["blue", "green"], True),
        ("B", "B", True),
        ("step b", "B", True),  # the gold text is " b" or "b "
        ("about", "B", False),
        ("therefore :", "red", False),
        ("red", "", True),  # every text contains the empty one
        ("1e3", "1000", True),
    ],
)
def test_open_questions_of_mmmu(answer, gold, is_right):
    assert value("mmmu@2024", answer, gold) == is_right


@pytest.mark.parametrize(
    ("answer", "gold", "columns", "old", "present"),
    [
        ("5.0", "5", {"answer_type": "integer"}, 0, 1),
        ("3.9", "3", {"answer_type": "integer"}, 0, 1),
        ("7", "7", {"answer_type": "integer"}, 1, 1),
        ("1.249", "1.2", {"answer_type": "float", "precision": 1}, 1, 1),
        ("1.2 m", "1.2", {"answer_type": "float", "precision": 1}, 0, 0),
        ("[1, 2]", "[1, 2]", {"answer_type": "list"}, 1, 1),
        ("inf", "5", {"answer_type": "integer"}, 0, 0),
    ],
)
def test_free_answers_of_mathvista(answer, gold, columns, old, present):
    columns = {"question_type": "free_form", **columns}
    assert value("mathvista@2023/extracted", answer, gold, **columns) == old
    assert value("mathvista@2024/extracted", answer, gold, **columns) == present


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        ("(b) 7cm", "7 cm"),
        ("C", "a quarter"),
        ("a quartet", "a quarter"),
        ("", "7 cm"),  # the first of the shortest ones
        ("F", "7 cm"),  # no such letter; four edits from each of the short ones
    ],
)
def test_choices_of_mathvista(answer, option):
    options = ["half of it", "7 cm", "a quarter", "9 cm"]
    assert value("mathvista@2024/extracted", answer, option, options, question_type="multi_choice") == 1


def test_a_choice_question_of_mathvista_needs_choices():
    with pytest.raises(GoldError, match="needs `choices`"):
        value("mathvista@2024/extracted", "A", "half", question_type="multi_choice")


def test_mathvista_does_not_read_what_needs_a_model():
    rule = find_rule("open_answer", "mathvista@2024").function
    question = Question(["5"], {}, {"question_type": "free_form", "answer_type": "integer"})
    assert rule(" 5 ", question) == (1.0, "5")
    assert rule("The answer is 5.", question) == (0.0, None)
    choice = Question(["half"], {"A": "half", "B": "all"}, {"question_type": "multi_choice", "answer_type": "text"})
    assert [rule(answer, choice).read for answer in ("half", "A", "(A)")] == ["half", None, None]


@pytest.mark.parametrize(
    ("answer", "gold", "verdict", "extracted"),
    [
        ("The answer is (B).", "B", (1.0, "b"), 1.0),
        ("A", "B", (0.0, "a"), 0.0),  # another letter, which no judge would call right
        ("A: 30 degrees", "B", (0.0, None), 0.0),
        ("1,200", "1200", (1.0, "1,200"), 1.0),
        ("Answer: 5", "4", (0.0, "5"), 0.0),
        ("four", "4", (0.0, None), 0.0),
        ("The upper line is blue.", "blue", (0.0, None), 0.0),
        ("Blue", "blue", (1.0, "blue"), 1.0),
        ("", "blue", (0.0, None), 0.0),
    ],
)
def test_mathverse_and_charxiv_leave_to_their_models_what_only_they_can_judge(answer, gold, verdict, extracted):
    for origin in ("mathverse@2024", "charxiv@2024"):
        assert find_rule("open_answer", origin).function(answer, Question([gold], {}, {})) == verdict
        assert value(f"{origin}/extracted", answer, gold) == extracted


@pytest.mark.parametrize(
    ("answer", "extraction"),
    [
        ("I think it is\nso the answer is C.", "c"),
        ("(B)\nbecause", "b"),
        ("The area is 12.", "12"),
        (r"Hence \boxed{3} or \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        ("The answer is: 4. Because", "4"),
        ("1/2", r"\frac{1}{2}"),
        ("0.5", r"\frac{1}{2}"),
        (r"\boxed{\sqrt3}", r"\sqrt{3}"),
        (r"x = 30^\circ", "30"),
        (r"$\boxed{\text{(D)}}$", "d"),
        (r"\boxed{4}}", "4"),
        ("", ""),
    ],
)
def test_the_final_answer_of_math_vision(answer, extraction):
    assert extracted(answer) == extraction


@pytest.mark.parametrize(
    ("answer", "gold", "options", "is_right"),
    [
        (r"\boxed{0.33}", r"\frac{1}{3}", (), True),
        ("(1, 2.0)", "(1,2.001)", (), True),  # both are rounded to 2.0
        ("(1, x)", "(1, y)", (), False),
        ("12", "B", ("10", "$12$"), True),
        ("b", "B", ("10", "12"), True),
        ("", "", (), False),
    ],
)
def test_equality_in_math_vision(answer, gold, options, is_right):
    assert value("math-vision@2024", answer, gold, options) == is_right


def test_relative_accuracy_has_ten_thresholds():
    thresholds = np.linspace(0.5, 0.95, 10)
    for predicted in (9.5, 9, 8, 5, 4.99, 10, 15, 20):
        expected = float((abs(predicted - 10) / 10 <= 1 - thresholds).mean())
        assert mean_relative_accuracy(predicted, 10) == expected
    assert [mean_relative_accuracy(number, 10) for number in (9.5, 9, 8, 5)] == [1.0, 0.9, 0.6, 0.1]
    with pytest.raises(GoldError, match="other than 0"):
        value("vsi-bench@2024", "3", "0")


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("The answer is 1,200.", "1200", 1),
        (r"\boxed{Paris}", "paris", 1),
        ("$5", "5", 1),
        ("six", "5", 0),
        ("", "5", 0),
    ],
)
def test_the_default_compares_final_answers(answer, gold, expected):
    assert value("mmeval@1", answer, gold) == expected


@pytest.mark.parametrize("name", rules_of("open_answer"))
@given(
    answer=st.text(max_size=60),
    gold=st.one_of(st.text(min_size=1, max_size=20), st.integers(1, 10**6).map(str)),
    options=st.lists(st.text(max_size=8), max_size=4),
    kind=st.sampled_from([None, "integer", "float", "list", "text"]),
)
def test_a_rule_gives_a_value_from_0_to_1_or_a_letter(name, answer, gold, options, kind):
    lettered = dict(zip(letters_of(len(options)), options, strict=True))
    try:
        verdict = find_rule("open_answer", name).function(
            answer, Question([gold], lettered, {"answer_type": kind, "precision": 1})
        )
    except GoldError:
        return
    if not isinstance(verdict, Reading):
        assert 0 <= verdict.value <= 1
        assert verdict.read is not None or verdict.value == 0


def test_the_default_is_the_first_rule_of_a_family():
    for family in ("open_answer", "choice"):
        assert next(iter(rules_of(family))) == "mmeval@1"
