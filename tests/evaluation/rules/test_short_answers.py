"""The rules for short answers give what the programs give that they are named after."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.rules import rules_of
from multimodal_eval.evaluation.metrics.anls import anls, compute_anls
from multimodal_eval.evaluation.metrics.exact_match import contains, exact_match, token_f1
from multimodal_eval.evaluation.metrics.reference_matches import compute_ocrbench, gqa, ocrbench, relaxed_accuracy
from multimodal_eval.evaluation.metrics.vqa_accuracy import vqa_accuracy
from tests.golden.load import golden

pytestmark = pytest.mark.property

# Kind of case -> metric, and the rule for each column with an origin's verdict.
COLUMNS = {
    "anls": (anls, {"lmms_eval": "lmms-eval@0.7.3/anls", "vlmevalkit": "vlmevalkit@e8e78f05/anls"}),
    "relaxed": (
        relaxed_accuracy,
        {"lmms_eval": "lmms-eval@0.7.3/chartqa", "vlmevalkit": "vlmevalkit@e8e78f05/relaxed"},
    ),
    "vqa": (
        vqa_accuracy,
        {
            "lmms_eval_vqav2": "lmms-eval@0.7.3/vqav2",
            "lmms_eval_textvqa": "lmms-eval@0.7.3/textvqa",
            "vlmevalkit": "vlmevalkit@e8e78f05/vqa_score",
        },
    ),
}


@pytest.mark.parametrize(
    ("kind", "column", "rule"),
    [(kind, column, rule) for kind, (_, rules) in COLUMNS.items() for column, rule in rules.items()],
)
def test_every_verdict_equals_that_of_the_origin(kind, column, rule):
    function, _ = COLUMNS[kind]
    cases = [case for case in golden("short_answers.json.gz")["cases"] if case["kind"] == kind]
    assert len(cases) > 500
    for case in cases:
        golds = case["gold"] if isinstance(case["gold"], list) else [case["gold"]]
        assert function(case["answer"], golds, rule=rule) == pytest.approx(float(case[column]), abs=1e-15), case


# Measured with lmms-eval 0.7.3, VLMEvalKit e8e78f05, inspect_evals 0.26.0 and the package anls 0.0.2.
@pytest.mark.parametrize(
    ("answer", "gold", "paper", "harness", "inspect"),
    [
        ("ac", "ab", 0, 0.5, 0),  # the distance is exactly half of the length
        (" Paris.", "Paris", 1 - 1 / 6, 1 - 1 / 7, 1 - 2 / 7),
        ("10 oct", "10  Oct", 1, 1, 1 - 1 / 7),
        (
            "STRASSE",
            "straße",
            1 - 2 / 7,
            1 - 2 / 7,
            1 - 2 / 7,
        ),  # ss for ß is two edits; in upper case, ß has two letters
        ("ß", "x", 0, 0.5, 0),  # in upper case, ß has two letters
    ],
)
def test_anls_differs_between_programs(answer, gold, paper, harness, inspect):
    assert anls(answer, [gold], rule="anls@2019") == pytest.approx(paper, abs=1e-15)
    assert anls(answer, [gold], rule="lmms-eval@0.7.3/anls") == pytest.approx(harness, abs=1e-15)
    assert anls(answer, [gold], rule="inspect-evals@0.26.0/anls") == pytest.approx(inspect, abs=1e-15)


def test_the_toy_figures_of_pix2struct():
    """Its test expects exact match 12.5, ANLS 47.5 and relaxed accuracy 62.5 for these eight answers."""
    answers = ["abc", "abc", "Abc", "100%", "100%", "100%", "100%", "Don't"]
    golds = ["abc", "Abc", "abc", "96%", "94%", "0.96", "0.94", "Won't"]
    pairs = list(zip(answers, golds, strict=True))
    assert sum(exact_match(answer, [gold], rule="none@1") for answer, gold in pairs) / 8 == 0.125
    assert sum(relaxed_accuracy(answer, [gold], rule="relaxed@pix2struct") for answer, gold in pairs) / 8 == 0.625
    # Three times 1; "100%" to "96%" and "94%" has distance 3 of 4, to "0.96" and "0.94" 4 of 4; "don't" to "won't" has
    # distance 1 of 5: 3.8 of 8.
    values = [anls(answer, [gold], rule="anls@pix2struct") for answer, gold in pairs]
    assert sum(values) / 8 == pytest.approx(0.475, abs=1e-15)


@pytest.mark.parametrize(
    ("answer", "gold", "published", "ours"),
    [
        ("0.0", "0", 0, 1),
        ("2099", "2010", 1, 0),
        ("2010.", "2010", 1, 1),
        ("yes ", "Yes", 0, 1),
        ("5,200", "5000", 0, 1),
        ("$5", "5", 0, 1),
        ("45", "45%", 0, 1),
        ("0.45", "45%", 1, 0),
        ("0.58", "0.58", 1, 1),
        ("0.62", "0.58", 0, 0),
        ("105", "100", 1, 1),  # exactly 5 %
        ("95", "100", 1, 1),
        ("106", "100", 0, 0),
        ("1001", "1000", 1, 0),  # years: 1000 to 2100
        ("2101", "2100", 1, 0),
        ("998", "999", 1, 1),
        ("2102", "2101", 1, 1),
        ("The answer is 0.58", "0.58", 0, 0),
    ],
)
def test_relaxed_accuracy_by_hand(answer, gold, published, ours):
    assert relaxed_accuracy(answer, [gold]) == published
    assert relaxed_accuracy(answer, [gold], rule="mmeval@1") == ours


def test_vqa_rules_differ_if_all_people_agree():
    """The official program normalises only if people differ; the harnesses always do."""
    people = ["the dog"] * 10
    assert vqa_accuracy("dog", people) == 0
    assert vqa_accuracy("dog", people, rule="lmms-eval@0.7.3/vqav2") == 1
    assert vqa_accuracy("dog", people, rule="vlmevalkit@e8e78f05/vqa_score") == 1
    assert vqa_accuracy("dog", people[:2]) == 0
    assert vqa_accuracy("dog", people[:1]) == 1  # one person agrees with nobody


def test_vqa_rules_differ_in_full_stops_and_possessives():
    people = ["5", *["six"] * 9]
    assert vqa_accuracy("5.", people, rule="lmms-eval@0.7.3/vqav2") == pytest.approx(0.3)
    assert vqa_accuracy("5.", people, rule="vlmevalkit@e8e78f05/vqa_score") == 0
    people = ["dog 's", *["six"] * 9]
    assert vqa_accuracy("dog's", people, rule="vqa@evalai") == pytest.approx(0.3)
    assert vqa_accuracy("dog's", people, rule="lmms-eval@0.7.3/vqav2") == 0


def test_gqa_and_ocrbench():
    assert gqa("Yes.", ["yes"]) == 0
    assert gqa("Yes.", ["yes"], rule="lmms-eval@0.7.3/gqa") == 1
    assert gqa("İ", ["i̇"], rule="lmms-eval@0.7.3/gqa") == 0  # NumPy cuts "i̇" to the length of "İ"
    assert ocrbench("The sign says STOP\nhere", ["stop here"]) == 1
    assert ocrbench("ＳＴＯＰ", ["stop"]) == 0
    assert ocrbench("ＳＴＯＰ", ["stop"], rule="lmms-eval@0.7.3/ocrbench") == 1
    assert ocrbench("X ^ 2", ["x^2"], is_formula=True) == 0
    assert ocrbench("$x ^ 2$", ["x^ 2"], is_formula=True) == 1
    formula = Sample(id="1", generated_answer="x ^ 2", references=["x^2"], metadata={"dataset": "HME100k"})
    assert compute_ocrbench(formula) == 1
    assert compute_ocrbench(Sample(id="1", generated_answer="x ^ 2", references=["x^2"])) == 0


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So the result is \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        ("<think>maybe 5</think>\nThe answer is 7.", "7"),
        ("Answer: A\nlater\n**Final answer:** Paris", "paris"),
        ("Blue", "blue"),
        ("It is \\boxed{unfinished", "it is \\boxed{unfinished"),
    ],
)
def test_our_rule_takes_the_final_answer(text, answer):
    assert exact_match(text, [answer], rule="mmeval@1") == 1
    assert exact_match(text, ["something else"], rule="mmeval@1") == 0


@pytest.mark.parametrize(
    ("answer", "references", "expected"),
    [  # f1_score of SQuAD's evaluate-v1.1.py: words of the answer and of the gold answer, without articles
        ("the red dog", ["a dog"], 2 * 1 * (1 / 2) / (1 + 1 / 2)),  # [red dog] and [dog]: P 1/2, R 1
        ("the red dog", ["a dog", "Red, red dog!"], 2 * 2 / (2 + 3)),  # P 1, R 2/3
        ("dog dog dog", ["dog dog"], 2 * 2 / (3 + 2)),
        ("The", ["an"], 0.0),  # no words are left
        ("cat", ["dog"], 0.0),
        ("Eiffel tower, Paris", ["paris eiffel tower"], 1.0),
    ],
)
def test_the_f1_of_squad(answer, references, expected):
    assert token_f1(answer, references) == pytest.approx(expected)
    sample = Sample(id="1", generated_answer=answer, references=references)
    assert evaluate([sample], metrics=["token_f1"], skip_lint=True)["token_f1"]["value"] == pytest.approx(expected)


def test_squad_rule_and_containment():
    assert exact_match("The  Eiffel-Tower!", ["eiffeltower"], rule="squad@1.1") == 1
    assert contains("It is 100 metres", ["10"]) == 1
    assert contains("It is 100 metres", ["10"], whole_words=True) == 0
    assert contains("It is 10 metres", ["10"], whole_words=True) == 1
    assert contains("a", ["the"], rule="squad@1.1") == 0  # nothing is left of the reference
    assert contains("", ["x"]) == 0


TEXTS = st.text(st.sampled_from("abAB .\t\n\x1cßİé€😀5"), max_size=90)


@given(
    st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), max_size=6),
    st.sampled_from(list(rules_of("anls"))),
)
def test_whole_columns_and_single_answers_agree(cases, rule):
    samples = [
        Sample(id=str(row), generated_answer=answer, references=golds) for row, (answer, golds) in enumerate(cases)
    ]
    assert compute_anls.function(samples, rule=rule).values.tolist() == [
        anls(answer, golds, rule=rule) for answer, golds in cases
    ]


@given(TEXTS, TEXTS, st.sampled_from(list(rules_of("anls"))))
def test_anls_is_symmetric_and_bounded(left, right, rule):
    value = anls(left, [right], rule=rule)
    assert 0 <= value <= 1
    assert anls(right, [left], rule=rule) == value
    assert anls(left, [left], rule=rule) == 1
    assert anls(left, [right, left], rule=rule) == 1


def test_the_rule_is_in_the_signature_and_stored_samples_are_scored_natively(tmp_path):
    samples = [{"id": str(row), "prediction": "Paris!", "references": ["paris", "London"]} for row in range(3)]
    run = evaluate(samples, metrics=["anls"], options={"anls": {"rule": "lmms-eval@0.7.3/anls"}}, output=tmp_path / "r")
    assert run["anls"]["value"] == pytest.approx(1 - 1 / 6)
    assert "|rule:lmms-eval@0.7.3/anls|" in run.results["metrics"]["anls"]["signature"]


def test_a_run_knows_the_formulas_of_ocrbench(tmp_path):
    rows = [{"id": "1", "prediction": "x ^ 2", "references": ["x^2"], "dataset": "HME100k"}]
    assert evaluate(rows, metrics=["ocrbench"], output=tmp_path / "run")["ocrbench"]["value"] == 1
