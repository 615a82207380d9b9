"""Every rule of the family against its origin."""

from __future__ import annotations

import pytest

from multimodal_eval.core.rules import find_rule, rules_of
from tests.golden.load import golden

RULES = rules_of("yes_no")


def test_lmms_eval_and_vlmevalkit_read_the_same_in_generated_answers():
    cases = golden("answer_rules.json.gz")["pope"]
    assert len(cases) == 625
    lmms_eval, vlmevalkit = RULES["lmms-eval@0.7.3/pope"].function, RULES["vlmevalkit@e8e78f05/yes-no"].function
    for case in cases:
        assert float(lmms_eval(case["answer"]).choice == case["gold"]) == case["lmms_eval"]
        assert (vlmevalkit(case["answer"]).choice or "unknown") == case["vlmevalkit_extracted"].lower()


@pytest.mark.parametrize("name", ["pope@lmms-eval", "yes-no@vlmevalkit", "lmms-eval@0.7.3/mme"])  # two older names
def test_a_rule_reads_what_the_package_reads_in_random_texts(name):
    cases = golden("answer_rules.json.gz")["yes_no"]
    assert len(cases) == 2000
    function = find_rule("yes_no", name).function
    assert [case for case in cases if function(case[0]).choice != case[1][name]] == []


@pytest.mark.parametrize(
    ("answer", "default", "pope", "mme"),
    [
        ("Yes, there is a dog.", "yes", "yes", "yes"),
        ("There is no dog", "no", "no", None),
        ("Not sure", None, "yes", "no"),  # POPE looks for "not" in this case only; MME sees "no" in "not "
        ("There is a dog", None, "yes", None),
        ("It is not visible", None, "no", None),
        ("No\n", "no", "yes", "no"),  # only blanks separate words in POPE's program
        ("  yes", "yes", "yes", None),  # MME does not strip
        ("yesterday", None, "yes", "yes"),
    ],
)
def test_the_rules_differ(answer, default, pope, mme):
    names = ("mmeval@1", "pope@2023", "mme@2023")
    assert [RULES[name].function(answer).choice for name in names] == [default, pope, mme]


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        *(("<think>no</think>yes", "yes"), (r"\boxed{No}", "no"), ("**Yes**", "yes"), ("Final answer: **No**", "no")),
        *(("I think the answer is yes, since there is no cat.", "yes"), ("Based on the image, no.", "no")),
        *(("нет", "no"), ("Да, есть", "yes"), ("是的", "yes"), ("不是", "no"), ("Oui.", "yes"), ("Nein", "no")),
        *(("No yes", None), ("yes/no", None), ("", None), ("I know nothing", None)),
    ],
)
def test_the_default_reads_the_statement_of_an_answer(answer, choice):
    assert RULES["mmeval@1"].function(answer).choice == choice
