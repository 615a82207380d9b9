"""What a comparison says, with the arithmetic of each sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from multimodal_eval.analysis.compare import Carrier
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.comparison_verdict import of_comparison
from tests.report.verdict.comparisons import all_pairs, comparison, metric, pair


def answers(compared, main="composite_score"):
    return {verdict.question: verdict for verdict in of_comparison(compared, main)}


def test_the_first_sentence_says_which_run_is_worse_and_by_how_much():
    # The difference is B - A = -0.025, so B is worse by 0.025, between 0.010 and 0.040. Half the interval is 0.015:
    # two digits of it are three decimals. 50 samples are scored in both, 10 are not.
    verdicts = answers(comparison(metric("composite_score", [pair(-0.025, -0.040, -0.010)])))
    verdict = verdicts["Which run is better?"]
    assert verdict.answer == (
        "B is worse than A by 0.025 [0.010, 0.040] on composite_score, p = 0.0020; 50 of 60 samples are scored in both."
    )
    assert verdict.tone == "bad"


def test_if_lower_is_better_a_higher_value_is_worse():
    verdicts = answers(comparison(metric("wer", [pair(3.0, 1.0, 5.0, verdict="worse")], direction="lower")), "wer")
    assert verdicts["Which run is better?"].answer.startswith("B is worse than A by 3.0 [1.0, 5.0] on WER, p = 0.0020;")


def test_a_better_run():
    verdicts = answers(comparison(metric("m", [pair(0.025, 0.010, 0.040)], left_out=0)), "m")
    verdict = verdicts["Which run is better?"]
    assert (
        verdict.answer
        == "B is better than A by 0.025 [0.010, 0.040] on m, p = 0.0020; 50 of 50 samples are scored in both."
    )
    assert verdict.tone == "good"


def test_a_difference_that_is_not_shown_keeps_its_sign():
    verdicts = answers(comparison(metric("m", [pair(-0.01, -0.03, 0.01, p=0.3)])), "m")
    verdict = verdicts["Which run is better?"]
    assert verdict.answer.startswith(
        "No difference between A and B is shown on m: B minus A is -0.010 [-0.030, +0.010], p = 0.3000;"
    )
    assert verdict.tone == ""


def test_human_labels_correct_the_difference():
    judge = Figure(value=-0.025, stderr=0.0075, low=-0.040, high=-0.010, method="t")
    score = Figure(value=0.5, stderr=0.01, low=0.48, high=0.52, method="t")

    def verdict(value, low, high, p):
        pairs = [pair(value, low, high, p=p, uncorrected=judge)]
        return answers(comparison(metric("m", pairs, uncorrected=score)), "m")["Which run is better?"]

    shown = verdict(-0.05, -0.07, -0.03, 0.002)
    assert shown.answer.startswith(
        "B is worse than A by 0.050 [0.030, 0.070] on m, corrected by human labels, p = 0.0020; uncorrected, the "
        "difference is -0.025 [-0.040, -0.010];"
    )
    assert shown.tone == "bad"
    # The judge alone sees a difference that people do not see.
    not_shown = verdict(0.01, -0.03, 0.05, 0.6)
    assert not_shown.answer.startswith(
        "No difference between A and B is shown on m, corrected by human labels: B minus A is +0.010 [-0.030, +0.050], "
        "p = 0.6000; uncorrected, the difference is -0.025 [-0.040, -0.010];"
    )
    assert not_shown.tone == ""


@pytest.mark.parametrize(
    ("difference", "p", "expected", "tone"),
    [
        (-0.025, 0.002, "0.025, is at least as large.", ""),
        (-0.010, 0.3, "0.010, is smaller, and would need about 43 samples.", "warning"),
        (-0.010, 0.01, "0.010, is smaller, and would need about 43 samples.", ""),  # shown all the same
    ],
)
def test_whether_the_samples_can_show_such_a_difference(difference, p, expected, tone):
    # 50 samples detect 0.021.
    verdicts = answers(comparison(metric("m", [pair(difference, difference - 0.015, difference + 0.015, p=p)])), "m")
    verdict = verdicts["Are there enough samples?"]
    assert verdict.answer == (
        f"50 samples detect a true difference of 0.021 or more with 80% probability; the observed one, {expected}"
    )
    assert verdict.tone == tone


def test_too_few_samples_for_a_test():
    few = metric("m", [pair(-0.1, p=1.0, detectable=None, p_value=None)], samples=3)
    verdict = answers(comparison(few), "m")["Are there enough samples?"]
    assert (verdict.answer, verdict.tone) == ("3 samples are too few for a test.", "warning")


def test_a_sample_that_carries_the_difference_is_named():
    carried = pair(-0.025, -0.040, -0.010, carried_by=Carrier("x7", 0.4, -0.015))
    answer = answers(comparison(metric("m", [carried])), "m")["Which run is better?"].answer
    assert "; the sample x7 accounts for 40% of the difference, which is -0.015" in answer


def test_a_composite_that_no_part_supports_says_so():
    composite = replace(metric("composite_score", [pair(0.025, 0.010, 0.040)]), parts=("bleu", "wer"))
    question, sentence = "Which run is better?", "; no part of the composite shows this difference"
    without = [metric("bleu", [pair(0.1, p=0.3)]), metric("wer", [pair(2.0, p=0.01)], direction="lower")]
    assert sentence in answers(comparison(composite, *without), "composite_score")[question].answer
    with_bleu = [metric("bleu", [pair(0.1, p=0.01)]), without[1]]
    assert sentence not in answers(comparison(composite, *with_bleu), "composite_score")[question].answer


def test_of_several_runs_it_names_those_without_support():
    # C is better than A and B by the composite; bleu shows the difference from A alone.
    values = {"A": 0.5, "B": 0.6, "C": 0.7}
    composite = replace(
        metric("composite_score", all_pairs(values, [{"A", "C"}, {"B", "C"}]), values=values), parts=("bleu",)
    )
    bleu = metric("bleu", [replace(each, p_value=0.01 if each.first == "A" else 0.3) for each in composite.pairs])
    answer = answers(comparison(composite, bleu, runs=values), "composite_score")["Which run is best?"].answer
    assert "; no part of the composite shows the difference from B;" in answer


def test_identical_runs():
    same = pair(0.0, p=1.0, stderr=0.0, detectable=None, needed=None)
    verdicts = answers(comparison(metric("m", [same])), "m")
    assert verdicts["Which run is better?"].answer == "A and B are identical by m; 50 of 60 samples are scored in both."
    assert verdicts["Are there enough samples?"].answer.startswith("All paired differences are equal")


def test_the_other_metrics_are_counted_by_the_run_that_they_favour():
    # B is worse by the headline. Of five others, bleu, wer (lower is better) and rouge also favour A, two beyond
    # chance; cider favours B; equal is equal.
    metrics = [
        metric("m", [pair(-0.025, -0.040, -0.010)]),
        metric("bleu", [pair(-0.1, p=0.01)]),
        metric("rouge", [pair(-0.1, p=0.6)]),
        metric("wer", [pair(2.0, p=0.01, verdict="worse")], direction="lower"),
        metric("cider", [pair(0.1, p=0.3)]),
        metric("equal", [pair(0.0, p=1.0)]),
    ]
    verdict = answers(comparison(*metrics), "m")["Do the metrics agree?"]
    assert verdict.answer == (
        "Of the 5 other metrics, 3 (BLEU-4, rouge and WER) favour A, 2 of them beyond chance; "
        "1 (CIDEr) favours B, not beyond chance; 1 metric is equal (after Holm's correction for the 5 metrics)."
    )
    assert verdict.tone == ""
    metrics[4] = metric("cider", [pair(0.1, p=0.01)])
    assert answers(comparison(*metrics), "m")["Do the metrics agree?"].tone == "warning"


@pytest.mark.parametrize(
    ("difference", "p", "expected", "tone"),
    [
        (-0.1, 0.01, "The other metric, BLEU-4, also favours A, beyond chance.", ""),
        (0.1, 0.3, "The other metric, BLEU-4, favours B, not beyond chance.", ""),
        (0.1, 0.01, "The other metric, BLEU-4, favours B, beyond chance.", "warning"),
        (0.0, 1.0, "On the other metric, BLEU-4, the runs are equal.", ""),
    ],
)
def test_one_other_metric(difference, p, expected, tone):
    metrics = [metric("m", [pair(-0.025, -0.040, -0.010)]), metric("bleu", [pair(difference, p=p)])]
    verdict = answers(comparison(*metrics), "m")["Do the metrics agree?"]
    assert (verdict.answer, verdict.tone) == (expected, tone)


def test_equal_differences_show_nothing_about_other_samples():
    verdicts = answers(comparison(metric("m", [pair(-0.1, -0.15, -0.05, stderr=0.0, detectable=None)])), "m")
    assert verdicts["Are there enough samples?"].answer.startswith("All paired differences are equal")


def test_the_best_of_several_runs():
    # C is best. It is better than A beyond chance, and no difference to B is shown.
    values = {"A": 0.60, "B": 0.69, "C": 0.70}
    pairs = all_pairs(values, [{"A", "C"}])
    verdicts = answers(comparison(metric("m", pairs, values=values), runs=values), "m")
    assert verdicts["Which run is best?"].answer == (
        "C has the best m, 0.700 [0.680, 0.720]; it is better than A (p ≤ 0.0100); no difference to B is shown; "
        "50 of 60 samples are scored in all runs."
    )
    # The closest run is B, 0.010 below.
    assert "the observed one between B and C, 0.010, is smaller" in verdicts["Are there enough samples?"].answer


def test_the_best_by_the_other_metrics_of_several_runs():
    values = {"A": 0.60, "B": 0.69, "C": 0.70}
    pairs = all_pairs(values, [])
    others = {"bleu": {"A": 0.1, "B": 0.2, "C": 0.3}, "rouge": {"A": 0.4, "B": 0.2, "C": 0.3}}
    metrics = [metric("m", pairs, values=values)]
    metrics += [metric(name, all_pairs(scores, []), values=scores) for name, scores in others.items()]
    metrics.append(metric("wer", all_pairs(values, []), values=values, direction="lower"))
    verdict = answers(comparison(*metrics, runs=values), "m")["Do the metrics agree?"]
    assert verdict.answer == "C is also best by 1 of the 3 other metrics; A by rouge and WER."
    assert verdict.tone == "warning"
    for second, expected in (
        (metrics[1], "C is also best by the other metric."),
        (metrics[2], "C is best by no other metric; A by rouge."),
    ):
        verdict = answers(comparison(metrics[0], second, runs=values), "m")["Do the metrics agree?"]
        assert verdict.answer == expected


def test_without_the_headline_nothing_is_concluded():
    assert answers(comparison(metric("m", [pair(0.1)])), "other") == {}


def test_long_names_are_shortened():
    verdicts = answers(comparison(metric("m", [pair(-0.1, -0.2, -0.05, first="a" * 3000, second="b\u202e")])), "m")
    answer = verdicts["Which run is better?"].answer
    assert len(answer) < 300
    assert "b[U+202E] is worse than aaaa" in answer
