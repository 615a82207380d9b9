"""What a failed answer counts as: for means, corpus scores, composites and judges, in runs of any order."""

from __future__ import annotations

from typing import Any

import pytest

from multimodal_eval import evaluate
from multimodal_eval.analysis.failures import rule_of
from multimodal_eval.analysis.leaderboard import leaderboard
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.metrics_registry import resolve
from tests.generate.server import Behaviour, Reply
from tests.judges.server import judge_server
from tests.run.judging.judged_runs import judge

FAILED = "Error: 429 Too Many Requests"
COUNT = 12


def samples(failed=(), wrong=()):
    """Right answers, but for the numbers of some."""
    texts = [FAILED if n in failed else "wrong" if n in wrong else f"word {n} of all" for n in range(COUNT)]
    return [
        Sample(f"s{n}", generated_answer=text, references=[f"word {n} of all"], metadata={"kind": "ab"[n % 2]})
        for n, text in enumerate(texts)
    ]


def test_rows_are_found_in_runs_of_another_order(tmp_path):
    evaluate(samples(wrong=[3]), metrics=["exact_match"], output=tmp_path / "a")
    evaluate(samples(failed=[3, 4])[::-1], metrics=["exact_match"], output=tmp_path / "b")
    evaluate(
        samples(failed=[11], wrong=[3])[5:] + samples(wrong=[3])[:5], metrics=["exact_match"], output=tmp_path / "c"
    )
    board = leaderboard(tmp_path, ["a", "b", "c"])
    by_name = {row.name: row for row in board.standings}
    assert {name: row.value for name, row in by_name.items()} == {
        "a": 11 / 12,
        "b": 10 / 12,  # 3 and 4 failed
        "c": 10 / 12,  # 3 is wrong and 11 failed
    }
    assert [(each.other, each.value) for each in by_name["b"].differences if each.other == "c"] == [("c", 0)]
    assert {name: row.failures for name, row in by_name.items()} == {
        "a": {},
        "b": {"error_message": 2},
        "c": {"error_message": 1},
    }


def test_a_composite_counts_zero(tmp_path):
    config = {
        "task": "mine",
        "tasks": {"mine": {"metrics": ["rouge_l", "exact_match"], "weights": {"rouge_l": 0.5, "exact_match": 0.5}}},
    }
    evaluate(samples(failed=[0, 1, 2]), config=config, output=tmp_path / "a")
    board = leaderboard(tmp_path, ["a"])
    assert (board.number, board.standings[0].value) == ("composite_score", pytest.approx(9 / 12))
    assert board.standings[0].numbers == pytest.approx(
        dict.fromkeys(("rouge_l", "exact_match", "composite_score"), 0.75)
    )


def test_within_strata(tmp_path):
    config = {"metrics": ["rouge_l"], "strata": {"by": "kind", "weights": {"a": 0.25, "b": 0.75}}}
    evaluate(samples(failed=[0, 2]), config=config, output=tmp_path / "a")
    board = leaderboard(tmp_path, ["a"])
    assert board.standings[0].value == pytest.approx(0.25 * 4 / 6 + 0.75)


def test_labels_are_wrong(tmp_path):
    labels = [("yes", "no")[n % 2] for n in range(COUNT)]

    def labelled(answers):
        return [Sample(f"s{n}", generated_answer=answers[n], expected_answer=labels[n]) for n in range(COUNT)]

    config: dict[str, Any] = {"metrics": ["f1_strict"], "skip_lint": True}
    evaluate(labelled([FAILED, *labels[1:]]), config=config, output=tmp_path / "failed")
    evaluate(labelled(["", *labels[1:]]), config=config, output=tmp_path / "blank")
    first, second = leaderboard(tmp_path, ["failed", "blank"]).standings
    # yes: 5 of 6 are found, F1 = 2 * 5 / (5 + 6); no: all
    assert first.value == second.value == pytest.approx((10 / 11 + 1) / 2)
    assert (first.stderr, first.low, first.high) == (second.stderr, second.low, second.high)


def test_a_failure_of_the_judge_is_nobodys_fault(tmp_path):
    def script(body: dict[str, Any], attempt: int) -> Reply:
        return Reply("no idea" if "word 7" in str(body) and "unlucky" in str(body) else '{"score": 5}')

    with judge_server() as server:
        server.behaviour = Behaviour(script=script)
        unlucky = samples()
        unlucky[7] = Sample("s7", generated_answer="unlucky word 7", references=["word 7 of all"])
        for name, rows in (("a", samples(failed=[0])), ("b", unlucky)):
            evaluate(rows, metrics=[judge(server)], output=tmp_path / name, progress=False)
    board = leaderboard(tmp_path, ["a", "b"])
    assert [(row.name, row.value, row.failures) for row in board.standings] == [
        ("a", pytest.approx((11 * 5 + 1) / 12), {"error_message": 1})  # the scale is 1 to 5
    ]
    (refused,) = board.refused
    assert refused.name == "b"
    assert "a judge gave no verdict on 1 answers, which is not a mistake of the submission" in refused.public_reason
    assert leaderboard(tmp_path, ["a", "b"], failed_answers="left-out", allow_partial=True).left_out == 2


@pytest.mark.parametrize(
    ("name", "part", "worst"),
    [("rouge_l", "", 0), ("chair_s", "", 1), ("cider_d", "", 0), ("spice", "recall", 0), ("clipscore", "", 0)],
)
def test_the_worst_value_is_the_bound(name, part, worst):
    rule = rule_of(resolve(name), name, part)
    assert (rule.label, rule.value) == ("worst", worst)


@pytest.mark.parametrize("name", ["wer", "cer", "ter", "perplexity", "recorded"])
def test_without_a_finite_bound_there_is_no_rule(name):
    with pytest.raises(ConfigError, match=f"{name} has no worst value"):
        rule_of(resolve(name), name)


@pytest.mark.parametrize("name", ["bleu", "chair_i", "chrf", "mer", "sacrebleu", "wer", "wil", "ter", "cer"])
def test_corpus_scores_count_a_blank_answer(tmp_path, name):
    for folder, text in (("failed", FAILED), ("blank", "")):
        rows = [
            Sample(f"s{n}", generated_answer=f"a dog and cat {n}", references=[f"a dog, a cat {n}"]) for n in range(6)
        ]
        rows[2] = Sample("s2", generated_answer=text, references=["a dog, a cat 2"])
        evaluate(rows, metrics=[name], output=tmp_path / folder, config={"skip_lint": True})
    first, second = leaderboard(tmp_path, ["failed", "blank"], failed_answers="blank").standings
    assert (first.value, first.low, first.high, first.place) == (second.value, second.low, second.high, second.place)
