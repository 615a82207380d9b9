"""Every rule of the family against its origin; the default rule against a reader."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.rules import find_rule, rules_of
from multimodal_eval.evaluation.rules._readings import Reading, letters_of
from tests.golden.load import golden

RULES = rules_of("choice")
COLUMNS = {
    "official": "mmmu-pro@2025",
    "lmms_eval_mmmu": "lmms-eval@0.7.3/mmmu",
    "lmms_eval_mcq_extract": "lmms-eval@0.7.3/mcq_extract",
    "vlmevalkit_rules": "vlmevalkit@e8e78f05/can_infer",
}
OPTIONS = {"A": "a dog", "B": "a cat", "C": "two birds", "D": "None of the above"}
DATA = os.environ.get("MMEVAL_TEST_DATA")  # a folder with mmmu-pro/gpt4o_half.jsonl.gz, which is not in the project


def label(reading: Reading, drawn: str = "random") -> str | None:
    return drawn if reading.is_drawn else reading.choice


@pytest.mark.parametrize("column", COLUMNS)
def test_a_rule_reads_what_its_origin_reads_in_generated_answers(column):
    key = "official_mmmu_pro" if column == "official" else column
    rule = RULES[COLUMNS[column]].function
    cases = golden("answer_rules.json.gz")["mcq"]
    assert len(cases) == 617
    assert [case for case in cases if label(rule(case["answer"], case["choices"])) != (case[key] or None)] == []


@pytest.mark.parametrize(
    "name", ["lmms-eval@0.7.3/mmmu", "lmms-eval@0.7.3/mcq_extract", "inspect@0.3.285/multiple_choice"]
)
def test_a_rule_reads_what_the_package_reads_in_random_texts(name):
    rule = RULES[name].function
    cases = golden("answer_rules.json.gz")["choice"]
    assert len(cases) == 3000
    assert [case for case in cases if label(rule(case[0], case[1]), "drawn") != case[2][name]] == []


def mmmu_pro():
    if DATA is None:
        pytest.skip("MMEVAL_TEST_DATA names no folder with MMMU-Pro's answers")
    content = gzip.decompress((Path(DATA) / "mmmu-pro" / "gpt4o_half.jsonl.gz").read_bytes())
    return [json.loads(line) for line in content.splitlines()]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_rule_reads_what_its_origin_reads_in_real_answers(column):
    rule, differing = RULES[COLUMNS[column]].function, []
    for row in mmmu_pro():
        options = dict(zip(letters_of(len(row["options"])), row["options"], strict=True))
        if label(rule(row["response"], options)) != (row["letters"][column] or None):
            differing.append((row["file"], row["row"]))
    assert differing == []


def test_the_default_reads_what_a_reader_reads():
    read = json.loads((Path(__file__).parents[2] / "golden" / "mmmu_pro_read.json").read_text())
    general = {name: rule for name, rule in RULES.items() if not rule.function.__module__.endswith("_benchmarks")}
    agreement = dict.fromkeys(general, 0)
    for row in mmmu_pro():
        by_eye = read.get(row["file"], {})
        if str(row["row"]) in by_eye:
            options = dict(zip(letters_of(len(row["options"])), row["options"], strict=True))
            for name, rule in general.items():
                agreement[name] += label(rule.function(row["response"], options)) == by_eye[str(row["row"])]
    assert agreement == {
        "mmeval@1": 200,
        "mmmu-pro@2025": 180,
        "mmmu@2024": 63,
        "mmmu@2024/seed42": 63,
        "lmms-eval@0.7.3/mmmu": 76,
        "lmms-eval@0.7.3/mcq_extract": 165,
        "vlmevalkit@e8e78f05/can_infer": 71,
        "inspect@0.3.285/multiple_choice": 160,
    }


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        *(("B", "B"), ("b", "B"), ("(B)", "B"), ("(b)", "B"), ("B.", "B"), ("**B**", "B"), ("`C`", "C"), ('"C"', "C")),
        *((r"\boxed{B}", "B"), (r"The result is $\boxed{\text{C}}$.", "C"), ("[[C]]", "C"), ("Ｂ", "B")),
        *(("<answer>C</answer>", "C"), ("<answer> two birds </answer>", "C"), ("option B", "B"), ("B) a cat", "B")),
        *(("<think>A? maybe C</think> B", "B"), ("<think>A is right", None), ("Option B: a cat", "B")),
        ("<think>A?</think> The answer is A. <think>No, C.</think> B", "B"),
        *(("Answer: B. Because A is wrong", "B"), ("Answer: B\n\nExplanation: A shows a dog.", "B")),
        *(("the answer is not A but B", "B"), ("The answer is B, not A.", "B"), ("答案不是A，而是B", "B")),
        *(("Wait, the answer is A. Hmm, actually the answer is C.", "C"), ("Final Answer: **D**", "D")),
        *(("The correct answer is:\n\n**C. two birds**", "C"), ("Answer\n\nB", "B"), ("Answer: probably B", "B")),
        *(("The correct answer, given the image, is option **B**.", "B"), ("So it must be (D).", "D")),
        *(("a cat", "B"), ("A cat.", "B"), ("A dog", "A"), ("It is a cat.", "B"), ("The answer is a cat.", "B")),
        *(("None of B or A; hence C", "C"), ("A dog, so D", "D"), ("We exclude A and C. That leaves B.", "B")),
        *(("B is correct, A is not", "B"), ("I would choose C because A is too small", "C")),
        *(("Both (A) and (B) are possible, but let's choose (B).", "B"), ("Answer: both A and B. I choose B", "B")),
        *(("正确答案：C", "C"), ("選 C", "C"), ("Ответ: B", "B"), ("정답은 B입니다", "B"), ("答えはBです", "B")),
        *(("La réponse est B", "B"), ("La respuesta correcta es la C.", "C"), ("Die Antwort ist C", "C")),
        *(("", None), ("I do not know", None), ("I'm sorry, I can't help", None), ("Both A and B", None)),
        *(("Answer: A or B", None), ("Answer: E", None), ("A. a dog\nB. a cat\nC. two birds\n", None)),
    ],
)
def test_the_default_reads_the_statement_of_an_answer(answer, letter):
    assert RULES["mmeval@1"].function(answer, OPTIONS).choice == letter


@pytest.mark.parametrize("name", RULES)
@given(answer=st.text(max_size=80), texts=st.lists(st.text(max_size=12), min_size=2, max_size=6))
def test_a_rule_reads_a_letter_of_the_question_nothing_or_a_draw_among_all(name, answer, texts):
    options = dict(zip(letters_of(len(texts)), texts, strict=True))
    reading = RULES[name].function(answer, options)
    assert reading.among in ((), tuple(options))
    # Z is VLMEvalKit's letter for a refusal; BLINK and Video-MME read A to E, however many options there are.
    assert reading.choice is None or reading.choice in options or reading.choice in "ABCDEZ"
    assert not (reading.among and reading.choice)


def test_a_refusal_is_z_for_vlmevalkit_and_a_letter_i_for_mmmu_pro():
    ten = dict.fromkeys(letters_of(10), "x")
    refusal = "I'm sorry, I can't process this file."
    assert RULES["vlmevalkit@e8e78f05/can_infer"].function(refusal, ten).choice == "Z"
    # "I " is not in the text, "I'm" is; but after the comma there is "I can't".
    assert RULES["mmmu-pro@2025"].function("I'm sorry, I can't help.", ten).choice == "I"


def test_lists_of_more_than_26_choices_have_letters():
    assert letters_of(28)[-3:] == ("Z", "AA", "AB")


def test_a_draw_from_a_single_letter_is_that_letter():
    reading = find_rule("choice", "mmmu@2024").function("no idea", {"A": "yes"})
    assert (reading.choice, reading.is_drawn, reading.label) == ("A", False, "A")
