"""The rules of single benchmarks, on cases whose readings follow from the code of their origins."""

from __future__ import annotations

import pytest

from multimodal_eval.core.rules import find_rule

OPTIONS = {"A": "Man", "B": "A Woman", "C": "two birds", "D": "None of the above"}

# Cases with what the origin reads; None: nothing.
CASES = {
    "mmstar@2024": [
        ("B", "B"),
        ("(c) two birds", "C"),
        ("Option D", "D"),
        ("The answer is\nb.", "B"),
        ("apple", "A"),
        ("I think B", None),
        ("the correct answer is B", None),
        ("", None),
    ],
    "blink@2024": [
        ("B", "B"),
        ("(B)", "B"),
        ("b", None),
        (" (B)", "B"),
        ("The answer is (B).", None),
        ("It is (A) or (B).\n\nSo (B) it is", "B"),
        ("(A) is larger than (B)", None),
        ("(A)\n\n(A) and (B)", None),
        ("It is (C) here\n\nI am sure.", "C"),
        ("(E)", "E"),
        ("It is (E) here", None),  # the question has four options
    ],
    "video-mme@2024": [
        ("The best answer is C", "C"),
        ("A man walks: C", "A"),
        ("Answer: C", "A"),
        ("Best option: D", "B"),
        ("The best option is: D", "D"),
        ("the letter e", None),
    ],
    "vlmevalkit@0.0.20/video-mme": [("Answer: C", "C"), ("Option: C", "C"), ("Best option: D", "B")],
    "lmms-eval@0.7.3/omni_bench": [
        ("(A) or (B)", "B"),
        ("A or B", "B"),
        ("B. two", "B"),
        ("Man", None),
        ("USA is", "A"),
        ("A. B.", "A"),
        ("'C'", None),
    ],
    "mmau@2024": [
        ("a woman", "B"),
        ("man", "A"),
        ("A man", None),  # "a" is a word of another option only
        ("(A) Man", None),
        ("B", None),
        ("the two small birds", None),  # "the" is a word of another option
        ("two small birds", "C"),
        ("", None),
    ],
    "vsi-bench@2024": [("a.", "A"), ("B. two", "B"), ("C) x", None), (" A", None), ("D\n", "D"), ("(A)", None)],
    "lmms-eval@0.7.3/seedbench": [(" Best", "B"), ("b", None), ("(B)", None), ("", None)],
    "lmms-eval@0.7.3/scienceqa": [("b", "B"), ("B. two", "B"), ("b. two", None), ("B because", None), ("B.", "B")],
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_reads_what_its_origin_reads(name):
    rule = find_rule("choice", name).function
    assert [(answer, rule(answer, OPTIONS).choice) for answer, _ in CASES[name]] == CASES[name]
    assert not any(rule(answer, OPTIONS).is_drawn for answer, _ in CASES[name])
