"""The sentences of whole reports: one run, two runs, judged, generated, imported, under several rules."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from multimodal_eval import evaluate, import_log
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.composite import RunSensitivity, Sensitivity, sensitivity
from multimodal_eval.analysis.judge_ratings import RatedSystem
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.report.build import content_of
from multimodal_eval.report.one_run import Comparisons
from multimodal_eval.report.verdict import of_ratings, of_weights
from tests.data.logs.fixture_logs import LM_EVAL, log_of
from tests.judges.scripted import judged, pair


def sentences(runs, names, **more):
    return {verdict.question: verdict for verdict in content_of(runs, names, **more).verdicts}


def answered(answers, **more):
    return [
        Sample(str(number), references=["yes"], generated_answer=answer, **more)
        for number, answer in enumerate(answers)
    ]


def test_one_run(tmp_path):
    # 6 of 8 answers are right: 0.75. Wilson's interval for 6 of 8 is 0.409 to 0.929; half of it is 0.26: 2 decimals.
    run = evaluate(answered(["yes"] * 6 + ["no"] * 2), metrics=["exact_match"], output=tmp_path / "run")
    verdicts = sentences([run], ["mine"])
    assert verdicts["What is the score?"].answer == (
        "exact_match of mine is 0.75 [0.41, 0.93], on a scale from 0 to 1 (higher is better); "
        "8 of 8 samples are scored."
    )
    assert verdicts["How precise is it?"].answer == (
        "With 95% confidence, the score over all samples like these is between 0.41 and 0.93; to halve this interval "
        "takes four times as many, 32 samples."
    )
    assert verdicts["How much is unscored?"].answer == "Nothing: every metric has a score for every sample."
    assert next(iter(verdicts)) == "What is the score?"


def test_one_run_without_a_score(tmp_path):
    run = evaluate(answered(["yes"], error="boom"), metrics=["exact_match"], output=tmp_path / "run", allow_empty=True)
    verdict = sentences([run], ["mine"])["What is the score?"]
    assert (verdict.answer, verdict.tone) == ("exact_match has no value: none of 1 sample is scored.", "warning")


def test_two_runs(runs):
    compared = compare_runs(runs, allow_partial=True, rounds=1000)
    verdicts = sentences(
        runs, list(compared.runs), comparison=compared, sensitivity=sensitivity(runs, allow_partial=True, draws=100)
    )
    # Of 30 samples the second run failed on one.
    first = verdicts["Which run is better?"].answer
    assert first.startswith("bad is worse than good by 0.")
    assert first.endswith("29 of 30 samples are scored in both.")
    assert verdicts["Do the metrics agree?"].answer == (
        "Of the 2 other metrics, 2 (ROUGE-L and exact_match) favour good, all of them beyond chance; none favours bad "
        "(after Holm's correction for the 2 metrics)."
    )
    assert verdicts["Does it depend on the weights?"].answer == (
        "good has the highest composite in 100% of 100 random weights around the configured ones."
    )
    # The difference is -0.2 over 29 samples: 29 * 0.2 > 1 * 1, so that one sample cannot reverse it.
    assert verdicts["How much is unscored?"].answer == (
        "On composite_score, 1 of 30 samples of bad; whatever scores these had, the difference would keep its sign."
    )


def test_unscored_samples_that_could_reverse_the_difference(tmp_path):
    # 6 of 8 against 5 of 8 are right, and one of the wrong ones failed: d = 1/7 over 7 samples, and the eighth could
    # add 1: 7 * 1/7 = 1 is not more than 1 * 1.
    first = evaluate(answered(["yes"] * 6 + ["no"] * 2), metrics=["exact_match"], output=tmp_path / "first")
    samples = answered(["yes"] * 5 + ["no"] * 3)
    samples[7] = msgspec.structs.replace(samples[7], error="boom")
    second = evaluate(samples, metrics=["exact_match"], output=tmp_path / "second")
    compared = compare_runs([first, second], allow_partial=True, rounds=100)
    verdict = sentences([first, second], ["first", "second"], comparison=compared)["How much is unscored?"]
    assert verdict.answer == (
        "On exact_match, 1 of 8 samples of second; their scores could reverse the sign of the difference."
    )
    assert verdict.tone == "warning"


def test_weights_that_change_the_order():
    runs = (
        RunSensitivity("A", 0.6, 0.1, 0.5, 0.7, (), (0.8, 0.2)),
        RunSensitivity("B", 0.5, 0.1, 0.4, 0.6, (), (0.2, 0.8)),
    )
    (verdict,) = of_weights(Sensitivity({}, 10, 0, 50.0, 1000, 0, runs, (("A", "B", 0.2),)))
    assert verdict.answer == "A has the highest composite in 80.0% of 1,000 random weights around the configured ones."
    assert verdict.tone == "warning"
    (alone,) = of_weights(Sensitivity({}, 10, 0, 50.0, 1000, 0, runs[:1], ()))
    assert alone.answer.endswith("the composite is between 0.50 and 0.70.")


def rated(name, rating, best, worst):
    return RatedSystem(name, rating, 10.0, rating - 20, rating + 20, best, worst, 5.0, 0.0, 3.0)


@pytest.mark.parametrize(
    ("second_best", "expected"),
    [
        (2, "alba is first of 2 systems by j, with 95% confidence: its rating is 1,050; the next is boreas with 990."),
        (
            1,
            "alba and boreas can be first of 2 systems by j, with 95% confidence: the comparisons do not decide "
            "between them.",
        ),
    ],
)
def test_rated_systems(second_best, expected):
    board = SimpleNamespace(
        systems=(rated("alba", 1050.0, 1, 3 - second_best), rated("boreas", 990.0, second_best, 2)), scale="elo"
    )
    (verdict,) = of_ratings(None, Comparisons("j", "", False, ratings=board))
    assert verdict.answer == expected


def test_a_judge_that_compares_two_systems(tmp_path):
    pairs = [pair(number, "long " * 3, "short", system="gpt", baseline_system="llama") for number in range(12)]
    judges = {"j": lambda sample, repetition, order: {"reason": "", "verdict": "1" if order == 0 else "2"}}
    run = judged(pairs, judges, output=tmp_path / "run", name="preference", form="pairwise", explain=True)
    verdicts = sentences([run], ["run"])
    # gpt wins all 12 pairs.
    answer = verdicts["Which system is better?"].answer
    assert answer.startswith("Win rate of A = gpt against B = llama, preference: 1")
    assert "gpt is better, by this judge (p = 0.000" in answer
    assert answer.endswith("12 of 12 pairs are scored.")
    turned = "verdicts that turn around with the order: 0.0% [0.0%, 24.2%] (0 of 12)"  # Wilson: 3.8415 / 15.8415
    assert turned in verdicts["How consistent is the judge?"].answer


def test_labels_of_people(tmp_path):
    rows = [
        {"id": str(n), "generated_answer": "yes" if n % 3 else "no", "references": ["yes"], "rating": n % 2}
        for n in range(60)
    ]
    run = evaluate(
        rows, metrics=["exact_match"], human={"exact_match": "rating"}, output=tmp_path / "run", progress=False
    )
    score = run.calibrated("exact_match")
    answer = sentences([run], ["run"])["What would people say?"].answer
    assert answer.startswith(f"By 60 human labels, people would give run {score.value:.2f} [{score.low:.2f}")
    assert "without labels it is 0.67" in answer


def test_what_a_model_answered(tmp_path):
    def asked(request):
        return (
            Answer("I must not", finish="refusal")
            if request.id == "2"
            else Answer("yes", input_tokens=1000, output_tokens=20)
        )

    samples = [Sample(str(number), question="?", references=["yes"]) for number in range(4)]
    run = evaluate(
        samples, metrics=["exact_match"], model=asked, output=tmp_path / "run", generation={"use_cache": False}
    )
    verdict = sentences([run], ["run"])["Did the model answer?"]
    assert " answered 3 of 4 samples (1 refused), 3,000 tokens in and 60 out, a median of " in verdict.answer
    assert verdict.tone == "warning"


def test_rules_that_read_answers_differently(tmp_path):
    rules = {"strict": {"rule": "none@1"}, "loose": {"rule": "squad@1.1"}}
    samples = answered(["yes", "Yes.", "no", "no"])
    run = evaluate(
        samples,
        metrics=list(rules),
        variants=dict.fromkeys(rules, "exact_match"),
        options=rules,
        output=tmp_path / "run",
    )
    # By the strict rule 1 of 4 is right; squad ignores case and points, so that 2 of 4 are.
    assert sentences([run], ["run"])["Does the rule matter?"].answer == (
        "exact_match is between 0.2500 (none@1) and 0.5000 (squad@1.1); 1 of 4 samples are not scored equally by all "
        "2 rules."
    )


def test_means_that_a_harness_reports(tmp_path):
    run = import_log(log_of(LM_EVAL, "toy_word"), output=tmp_path / "run", progress=False).run
    # Two results; the perplexity of lm-eval is exp(-mean).
    verdict = sentences([run], ["run"])["Do the imported scores match?"]
    assert verdict.answer == "1 of 2 means equals the results of lm-eval; different: lm-eval.loglikelihood."
