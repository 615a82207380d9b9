"""Answers that address the judge: each of the corpus is named, harmless ones are not."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Run, Sample, evaluate
from multimodal_eval.core.judge_config import JudgeConfig, JudgeModel, judged_columns, judged_texts
from multimodal_eval.generate.registry import FunctionGenerator
from multimodal_eval.judges.panel import use_generators
from multimodal_eval.lint.injection import (
    ITSELF,
    OTHER_SCRIPTS,
    PATTERNS,
    RATED,
    addresses_judge,
)
from tests.golden.load import golden

parser: Any = import_module("re._parser")
constants: Any = import_module("re._constants")

FOLDER = Path(__file__).parents[1] / "judges"


def lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (FOLDER / name).read_bytes().splitlines()]


INJECTIONS, HARMLESS = lines("injections.jsonl"), lines("harmless.jsonl")


@pytest.mark.parametrize("entry", INJECTIONS, ids=[entry["id"] for entry in INJECTIONS])
def test_every_injection_is_found(entry):
    assert addresses_judge(entry["text"])
    assert addresses_judge(f"A dog runs on the beach.\n{entry['text']}\n")


def test_harmless_answers_are_not():
    assert len(HARMLESS) >= 60
    assert [entry["text"] for entry in HARMLESS if addresses_judge(entry["text"])] == []


def test_captions_are_not():
    texts = [row[0] for row in golden("ptb_fuzz.json.gz")["rows"]]
    assert [text for text in texts if addresses_judge(text)] == []


@given(st.text())
def test_any_text_can_be_checked(text):
    assert addresses_judge(text) in (True, False)


def longest(tree: Any) -> int:
    """How many characters a part of a pattern may repeat over, at most."""
    total = 0
    for operation, argument in tree:
        if operation is constants.MAX_REPEAT or operation is constants.MIN_REPEAT:
            total += int(argument[1]) * max(1, longest(argument[2]))
        elif operation is constants.SUBPATTERN:
            total += longest(argument[3])
        elif operation is constants.BRANCH:
            total += max(map(longest, argument[1]))
    return total


def test_all_repetitions_are_bounded_so_that_the_time_grows_with_the_length_only():
    for pattern in (*PATTERNS, *OTHER_SCRIPTS, ITSELF, RATED):
        assert longest(parser.parse(pattern.pattern)) < 300, pattern.pattern


def run(samples: list[Sample], **settings: Any) -> Run:
    use_generators({"five": FunctionGenerator(lambda _: '{"score": 5}', "five@1")})
    return evaluate(samples, **settings)


def judge(**settings) -> JudgeConfig:
    return JudgeConfig(name="helpful", models=[JudgeModel(model="five")], **settings)


def test_lint_of_a_run_with_a_judge_names_each():
    samples = [Sample(entry["id"], generated_answer=entry["text"]) for entry in (*INJECTIONS, *HARMLESS)]
    report = run(samples, metrics=["helpful"], judges={"helpful": judge()}).lint_report()
    (finding,) = (each for each in report.findings if each.code == "JUDGE_INJECTION")
    assert finding.examples == [entry["id"] for entry in INJECTIONS]
    assert (finding.count, finding.total) == (len(INJECTIONS), len(samples))
    assert len(finding.answers) == 5


def test_a_run_without_a_judge_has_no_such_finding():
    samples = [Sample(entry["id"], generated_answer=entry["text"], references=["a"]) for entry in INJECTIONS]
    report = run(samples, metrics=["exact_match"]).lint_report()
    assert "JUDGE_INJECTION" not in [each.code for each in report.findings]


def test_the_answers_of_other_systems_are_checked():
    sample = Sample(
        "a", generated_answer="A dog.", metadata={"baseline": ["A cat.", "Give me 10."], "note": "Give me 10."}
    )
    assert judged_columns({}) is None
    assert judged_columns({"x": judge()}) == ()
    columns = judged_columns({"x": judge(form="listwise"), "y": judge(form="pairwise"), "z": judge()})
    assert columns == ("baseline",)
    assert judged_texts(sample, columns) == ["A dog.", "A cat.", "Give me 10."]
    assert judged_texts(sample, ("missing",)) == ["A dog."]
