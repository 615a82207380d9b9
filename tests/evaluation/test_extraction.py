"""A judge reads what a rule cannot read: only that, and scored as if the rule had read it."""

from __future__ import annotations

import json

import msgspec
import pytest

from multimodal_eval import Sample, evaluate, rescore
from multimodal_eval.analysis.judges import findings
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeConfig, JudgeModel
from multimodal_eval.display.run_findings import run_findings
from multimodal_eval.evaluation.metrics.multiple_choice import compute_multiple_choice
from multimodal_eval.generate.protocol import Request
from multimodal_eval.generate.registry import FunctionGenerator
from multimodal_eval.judges.panel import use_generators
from multimodal_eval.report.one_run import FORMS

# What the answers mean, to the judge of these tests.
MEANINGS = {"It barks.": "A", "It meows.": "B", "It is grey.": "none", "Hm.": "no idea", "Certainly.": "yes"}


class Reader:
    """A judge that knows the meanings, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: Request) -> str:
        answer = next(answer for answer in MEANINGS if f"\n{answer}\n" in request.prompt)
        self.asked.append(answer)
        return json.dumps({"choice": MEANINGS[answer]})


@pytest.fixture
def reader() -> Reader:
    judge = Reader()
    names = {"reader": FunctionGenerator(judge, "reader@1"), "other": FunctionGenerator(judge, "reader@2")}
    use_generators({**names, "contrary": FunctionGenerator(lambda _: '{"choice": "C"}', "contrary@1")})
    return judge


def question(number, answer, gold="A", **fields):
    return Sample(
        str(number),
        question="What?",
        generated_answer=answer,
        choices=["dog", "cat", "cow"],
        expected_answer=gold,
        **fields,
    )


def judged(*models: str, **settings) -> JudgeConfig:
    asked = [JudgeModel(model=model) for model in models or ("reader",)]
    return JudgeConfig(name="multiple_choice", form="extract", models=asked, **settings)


SAMPLES = [
    question(1, "B"),
    question(2, "It barks."),
    question(3, "It meows."),
    question(4, "It is grey."),
    question(5, "Hm."),
    question(6, "   "),
    question(7, None, error="timeout"),
]


def test_a_judge_that_only_reads_does_not_make_the_score_its_own(reader):
    run = evaluate(SAMPLES, metrics=["multiple_choice"], judges={"multiple_choice": judged()})
    assert not any("measures what the judge says" in line for line in [each.sentence for each in run_findings(run)])
    known = findings(run).metrics["multiple_choice"]
    assert FORMS[known.form] == "the choice that an answer means, if the rule finds none"


def test_only_what_the_rule_cannot_read_is_asked_and_counted(reader):
    results = evaluate(SAMPLES, metrics=["multiple_choice"], judges={"multiple_choice": judged()})
    entry = results["multiple_choice"]
    assert sorted(reader.asked) == ["Hm.", "It barks.", "It is grey.", "It meows."]
    # B is wrong, barks = A is right, meows = B is wrong, grey = none and blank are unread: 1 of 5.
    assert (entry["value"], entry["n_scored"]) == (1 / 5, 5)
    assert entry["warnings"] == {"unread": 2, "by_judge": 2}
    # An unreadable verdict is not a wrong answer.
    assert entry["unscored"] == {"error": 2}
    assert any(
        "unreadable verdict: 'no idea' is not one of A, B, C or none" in each["reason"] for each in entry["reasons"]
    )
    details = results.scores(["multiple_choice:details"]).column(0).to_pylist()
    assert details[:4] == [
        '{"read":"B"}', '{"by":"judge","read":"A"}', '{"by":"judge","read":"B"}', '{"read":"unread"}',
    ]  # fmt: skip
    signature = str(entry["signature"])
    assert "fallback" in signature
    assert "reader" in signature


def test_rescoring_asks_only_if_other_answers_are_unread(reader, tmp_path):
    config = {"metrics": ["multiple_choice"], "judges": {"multiple_choice": msgspec.to_builtins(judged())}}
    run = evaluate(SAMPLES, config=config, output=tmp_path / "run")
    assert len(reader.asked) == 4
    options = {"multiple_choice": {"random": "expected"}}
    again = rescore(run, {**config, "options": options}, output=tmp_path / "again")
    assert again["multiple_choice"]["warnings"] == run["multiple_choice"]["warnings"]
    assert len(reader.asked) == 4
    options = {"multiple_choice": {"rule": "mmmu-pro@2025"}}
    rescore(run, {**config, "options": options}, output=tmp_path / "other")
    assert len(reader.asked) == 8  # another rule reads other answers


def test_without_the_option_nothing_changes(reader):
    entry = evaluate(SAMPLES, metrics=["multiple_choice"])["multiple_choice"]
    assert (entry["value"], entry["n_scored"], entry["warnings"]) == (0.0, 6, {"unread": 5})
    assert "judge" not in str(entry["signature"])
    assert reader.asked == []


def test_all_answers_are_readable_and_nobody_is_asked(reader):
    results = evaluate(
        [question(1, "A"), question(2, "B")], metrics=["multiple_choice"], judges={"multiple_choice": judged()}
    )
    assert results["multiple_choice"]["value"] == 0.5
    assert reader.asked == []


def test_the_majority_of_a_panel_counts(reader):
    both = judged("reader", "other", "contrary")
    results = evaluate(SAMPLES[1:3], metrics=["multiple_choice"], judges={"multiple_choice": both})
    assert results["multiple_choice"]["warnings"] == {"by_judge": 2}
    divided = judged("reader", "contrary")
    results = evaluate(SAMPLES[1:3], metrics=["multiple_choice"], judges={"multiple_choice": divided})
    assert results["multiple_choice"]["warnings"] == {"unread": 2}


def test_yes_or_no_is_read_by_a_judge(reader):
    samples = [
        Sample("1", question="Dog?", generated_answer="yes", expected_answer="no"),
        Sample("2", question="Dog?", generated_answer="Certainly.", choices=["yes", "no"], expected_answer="yes"),
    ]
    judge = JudgeConfig(name="yes_no", form="extract", models=[JudgeModel(model="reader")])
    entry = evaluate(samples, metrics=["yes_no"], judges={"yes_no": judge})["yes_no"]
    assert (entry["value"], entry["warnings"], reader.asked) == (0.5, {"by_judge": 1}, ["Certainly."])
    # yes twice, right once; both parts know it
    assert (entry["parts"]["precision"]["value"], entry["parts"]["yes_ratio"]["value"]) == (0.5, 1.0)


def test_a_letter_that_would_be_drawn_is_asked_for(reader):
    options = {"multiple_choice": {"rule": "mmmu-pro@2025"}}
    results = evaluate(
        [question(1, "It barks."), question(2, "It is grey.")],
        metrics=["multiple_choice"], options=options, judges={"multiple_choice": judged()},
    )  # fmt: skip
    entry = results["multiple_choice"]
    assert (entry["value"], entry["n_scored"], entry["unscored"]) == (1.0, 1, {"degenerate": 1})


def test_the_metric_asks_by_itself_outside_of_a_run(reader):
    metric = compute_multiple_choice.judged_by(judged())
    assert metric(question(1, "It barks.")) == 1.0
    assert reader.asked == ["It barks."]


def test_a_judge_that_is_named_makes_the_extractor(reader):
    options = {"multiple_choice": {"fallback": "judge"}}
    run = evaluate(SAMPLES, metrics=["multiple_choice"], options=options, judge="reader")
    assert run.info.config.judges == {"multiple_choice": judged()}
    assert reader.asked


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"multiple_choice": {"fallback": "judge"}}}, "needs a judge. Name one with --judge PROVIDER:NAME"),
        ({"judges": {"multiple_choice": JudgeConfig(form="extract")}}, "has no model. Name one with --judge"),
        (
            {"metrics": ["bleu"], "judges": {"bleu": JudgeConfig(form="extract", models=judged().models)}},
            "bleu reads no choices",
        ),
    ],
)
def test_what_is_missing_is_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        evaluate(SAMPLES, **{"metrics": ["multiple_choice"], **settings})


def test_a_value_is_extracted_and_scored_by_the_rule_of_extractions(reader):
    """MathVista: the rule reads bare numbers, the judge the others, and `…/extracted` rounds and compares."""
    columns = {"question_type": "free_form", "answer_type": "float", "precision": 1}
    said = {"2.5": None, "It is two and a half.": "2.49", "About 3": "3", "No idea.": "none"}

    def asked(request: Request) -> str:
        answer = next(answer for answer in said if f"\n{answer}\n" in request.prompt)
        assert "whether it says yes or no" not in request.prompt
        return json.dumps({"choice": said[answer]})

    use_generators({"values": FunctionGenerator(asked, "values@1")})
    samples = [
        Sample(str(number), question="How much?", generated_answer=answer, expected_answer="2.5", metadata=columns)
        for number, answer in enumerate(said)
    ]
    config = {"options": {"open_answer": {"rule": "mathvista@2024", "fallback": "judge"}}}
    run = evaluate(samples, metrics=["open_answer"], config=config, judge="values")
    assert run["open_answer"]["value"] == 0.5  # 2.5, and 2.49 rounded; 3 is wrong, and nothing was read of the last
    assert run["open_answer"]["warnings"] == {"by_judge": 2, "unread": 1}
    assert "judge_models:values|" in str(run["open_answer"]["signature"])
    assert findings(run).metrics["open_answer"].unreadable == {}
