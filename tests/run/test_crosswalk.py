"""The same answers under every rule of a metric."""

from __future__ import annotations

import json
import re

import pytest

from multimodal_eval import Sample, crosswalk, evaluate
from multimodal_eval.analysis.crosswalk import crosswalk_of, is_crosswalk
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.rules import rules_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.build import content_of
from tests.cli.command_line import mmeval

# Readings measured with the origins: "**B**" and "\boxed{B}" make lmms-eval's MMMU rule draw a letter, "Answer: B.
# Because A is wrong" is A there and unread by VLMEvalKit's rules.
ANSWERS = {"1": "**B**", "2": "Answer: B. Because A is wrong", "3": "B", "4": "C"}
SAMPLES = [
    {"id": name, "prediction": answer, "choices": ["red", "green", "blue"], "expected_answer": "B"}
    for name, answer in ANSWERS.items()
]
THREE = ["mmeval@1", "lmms-eval@0.7.3/mmmu", "vlmevalkit@e8e78f05/can_infer"]


def test_scores_differences_and_disagreements_by_hand(tmp_path):
    run = crosswalk(SAMPLES, metric="multiple_choice", rules=THREE, output=tmp_path / "run")
    content = crosswalk_of(run)
    ours, lmms, vlm = content.rules
    assert [rule.rule for rule in content.rules] == THREE
    # ours: B B B C; lmms-eval: drawn, A, B, C; VLMEvalKit: B, unread, B, C
    assert ours.score.value == 3 / 4
    assert (lmms.score.value, lmms.unscored, lmms.compared) == (1 / 3, 1, 3)
    assert lmms.difference.value == pytest.approx(1 / 3 - 2 / 3)
    assert (vlm.score.value, vlm.unread) == (2 / 4, 1)
    assert vlm.difference.value == pytest.approx(-1 / 4)
    assert content.disagreements == ((0, 2, 1), (2, 0, 1), (1, 1, 0))
    assert content.differing == 2
    readings = {sample.id: sample.readings for sample in content.examples}
    assert readings == {"1": ("B", "unscored", "B"), "2": ("B", "A", "unread")}
    assert json.loads(json.dumps(content.to_dict()))["rules"][0]["score"]["value"] == 0.75


def test_every_column_equals_a_run_with_that_rule(tmp_path):
    run = crosswalk(SAMPLES, metric="multiple_choice", output=tmp_path / "run")
    for rule in rules_of("choice"):
        alone = evaluate(SAMPLES, metrics=["multiple_choice"], options={"multiple_choice": {"rule": rule}})
        (name,) = (name for name, options in run.info.config.options.items() if options["rule"] == rule)
        together, separate = run.results["metrics"][name], alone.results["metrics"]["multiple_choice"]
        assert together == separate
        assert together["signature"].startswith(f"multiple_choice|v:1|rule:{rule}|")


def test_the_samples_of_a_run_are_used(tmp_path):
    first = evaluate(SAMPLES, metrics=["multiple_choice"], output=tmp_path / "first")
    assert not is_crosswalk(first)
    run = crosswalk(first, metric="multiple_choice", rules=THREE, output=tmp_path / "second")
    assert is_crosswalk(Run(tmp_path / "second"))
    assert [rule.score.value for rule in crosswalk_of(run).rules] == [3 / 4, 1 / 3, 2 / 4]
    with pytest.raises(ConfigError, match="not a crosswalk"):
        crosswalk_of(first)


def test_options_of_the_metric_apply_to_every_rule(tmp_path):
    run = crosswalk(
        SAMPLES, metric="multiple_choice", rules=THREE, options={"random": "expected"}, output=tmp_path / "r"
    )
    lmms = crosswalk_of(run).rules[1]
    assert (lmms.unscored, lmms.score.value) == (0, pytest.approx((1 / 3 + 0 + 1 + 0) / 4))


def test_captions_by_tokenizer():
    captions = [
        {"id": str(n), "prediction": answer, "references": references}
        for n, (answer, references) in enumerate(
            [
                ("A dog runs.", ["a dog runs", "the dog"]),
                ("two Cats", ["two cats", "cats sleep"]),
                ("a bus", ["a bus!"]),
            ]
        )
    ]
    content = crosswalk_of(crosswalk(captions, metric="bleu"))
    assert content.option == "tokenizer"
    scores = {rule.rule: rule.score.value for rule in content.rules}
    assert list(scores) == ["ptb", "13a", "whitespace", "unicode", "evalscope"]
    assert scores["ptb"] == scores["evalscope"] > scores["whitespace"]


def test_wrong_names_are_refused():
    with pytest.raises(UnknownNameError, match="anls"):
        crosswalk(SAMPLES, metric="anlss")
    with pytest.raises(ConfigError, match="neither rules nor tokenizers"):
        crosswalk(SAMPLES, metric="perplexity")
    with pytest.raises(UnknownNameError, match="mmmu-pro@2025"):
        crosswalk(SAMPLES, metric="multiple_choice", rules=["mmeval@1", "mmmu-pro@2024"])
    with pytest.raises(ConfigError, match="at least two"):
        crosswalk(SAMPLES, metric="multiple_choice", rules=["mmeval@1"])
    with pytest.raises(ConfigError, match="the name of a metric"):
        evaluate(SAMPLES, metrics=["anls"], variants={"anls": "multiple_choice"})


def test_rules_with_the_same_column_name_get_numbers():
    run = crosswalk(SAMPLES, metric="multiple_choice", rules=["mmeval@1", "lmms-eval@0.7.3/mmmu"])
    assert run.metrics == ["mmeval@1", "lmms-eval@0_7_3_mmmu"]
    assert run.headline == "mmeval@1"
    captions = [Sample(id=str(n), generated_answer="a dog", references=["a dog runs"]) for n in range(2)]
    assert crosswalk(captions, metric="bleu", rules=["ptb", "13a"]).metrics == ["ptb", "r13a"]


def test_samples_without_any_disagreement():
    same = [Sample(id=str(n), generated_answer="B", choices=["x", "y"], expected_answer="B") for n in range(3)]
    content = crosswalk_of(crosswalk(same, metric="multiple_choice", rules=THREE))
    assert content.differing == 0
    assert content.examples == ()
    assert content.disagreements == ((0, 0, 0),) * 3


@pytest.fixture
def answers(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(sample) + "\n" for sample in SAMPLES), encoding="utf-8")
    return file


def test_the_command_shows_tables_and_stores_a_run(answers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = mmeval("crosswalk", str(answers), "--metrics", "multiple_choice", "-o", "rules").stdout
    assert "vlmevalkit@e8e78f05/can_infer" in shown
    assert "unread" in shown
    assert re.search(r"\d of 4 \([\d.]+%\): samples are not scored equally by all rules", shown)
    page = (tmp_path / "rules" / "report.html").read_text(encoding="utf-8")
    assert "The same answers under different rules" in page
    assert "samples that the rules read differently" in page
    again = json.loads(
        mmeval("crosswalk", "rules", "--metrics", "multiple_choice", "-o", "again", "--format", "json").stdout
    )
    assert again["metric"] == "multiple_choice"
    assert len(again["rules"]) == len(rules_of("choice"))


def test_the_card_of_a_crosswalk_is_that_of_the_metric(tmp_path):
    run = crosswalk(SAMPLES, metric="multiple_choice", rules=THREE, output=tmp_path / "run")
    content = content_of([run], ["run"])
    assert list(content.cards) == ["multiple_choice"]
    assert content.cards["multiple_choice"]
