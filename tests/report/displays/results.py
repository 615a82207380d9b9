"""One result of every class that notebooks show, with ordinary or hostile texts in every field."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from multimodal_eval import CalibratedRun, LabelPlan, power
from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison, System
from multimodal_eval.analysis.composite import PartWeight, RunSensitivity, Sensitivity
from multimodal_eval.analysis.crosswalk import Crosswalk, DifferingSample, RuleScore
from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable
from multimodal_eval.analysis.leaderboard import Leaderboard, Refused, Standing
from multimodal_eval.analysis.meta import CoefficientFigure, LeftOut, MetaEvaluation, MetricPair
from multimodal_eval.analysis.preferences import Failure, Preference
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import (
    Agreement,
    Calibration,
    CurvePoint,
    Flips,
    JudgeFindings,
    JudgesReport,
    Length,
    PanelMember,
    Rate,
)
from multimodal_eval.core.records import Finding, LintReport
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.interop.accumulator import ScoreValue
from multimodal_eval.interop.coco import CaptionScores, caption_scores
from multimodal_eval.interop.list_scores import AnswerScores, LabelScores, answer_scores, label_scores
from multimodal_eval.run.label_plan import Forecast


def figure(text: str) -> Figure:
    return Figure(value=0.5, stderr=0.1, low=0.3, high=0.7, method=text)


def calibrated(text: str) -> Figure:
    return Figure(value=0.4, stderr=0.1, low=-0.3, high=-0.1, method=text, labels=7, column=text, signature=text)


RATE = Rate(count=1, total=2, value=0.5, low=0.1, high=0.9)


def calibration(text: str) -> Calibration:
    known = figure(text)
    return Calibration(
        column=text,
        labels=20,
        samples=100,
        judge=known,
        human=known,
        corrected=figure(text),
        power=0.5,
        worth=30.0,
        agreement=RATE,
        kappa=known,
        correlation=known,
        sensitivity=RATE,
        specificity=RATE,
        classical=known,
        rogan_gladen=known,
        curve=[CurvePoint(judge=0.0, human=0.1, low=0.0, high=0.2, n=5)],
        notes=[text],
    )


def metric_comparison(text: str, runs: tuple[str, ...]) -> MetricComparison:
    systems = tuple(System(run, 0.5, 0.1, 0.3, 0.7, text, 1, labels=8, uncorrected=figure(text)) for run in runs)
    pairs = tuple(
        Pair(a, b, 0.1, 0.02, 0.06, 0.14, text, 0.01, 0.02, 5, 1, 2, 0.05, 40, verdict, calibrated(text))
        for a, b, verdict in zip(runs, runs[1:], ("better", text), strict=False)
    )
    return MetricComparison(text, "lower", text, 8, 1, None, systems, pairs)


def comparison(text: str, count: int = 2) -> RunComparison:
    runs = tuple(f"{number} {text}" for number in range(count))
    return RunComparison(runs, 9, 100, 0, 0.95, (metric_comparison(text, runs),), (text,), text)


def of_every_class(text: str) -> list[object]:
    """Results without a run folder. The text is in every field that is text."""
    known = figure(text)
    first = Standing(
        text, 1, (text,), 1, 0.5, 0.1, 0.3, 0.7, 0.1, 0.01, {text: 0.5, "b" + text: None}, calibrated(text)
    )
    findings = JudgeFindings(
        form=text,
        models=[text],
        questions=3,
        unreadable={text: 1},
        failed={text + "2": 1},
        injections=1,
        flips=Flips(flips=RATE, disagreements=RATE, first=RATE),
        length=Length(longer_wins=RATE, effect=known, win_rate=known, controlled=known),
        panel=[PanelMember(model=text, mean=known)],
        agreement=[Agreement(between=text, level=text, alpha=known, units=3)],
        calibration=calibration(text),
        warnings=[text],
    )
    forecast = Forecast(
        labels=9, half_width=0.1, uniform=0.1, alone=0.2, worth=12, calls_per_label=3.0, correlation=0.5, needed=8
    )
    varied = RunSensitivity(text, 0.5, 0.1, 0.4, 0.6, (PartWeight(text, 0.5, 0.4, 0.3, 0.2),), ())
    rated = RatedSystem(text, 1500, 1, 1, 2, 1, 2, 3, 1, 1)
    return [
        power(rates=(0.6, 0.7), effect=0.1),
        comparison(text),
        comparison(text, 3),
        metric_comparison(text, ("a" + text, "b" + text)),
        Leaderboard(text, "lower", text, 9, 1, text, 0.95, (first,), (Refused(text, text, text),), text),
        calibration(text),
        CalibratedRun(text, None, {text: calibration(text)}, {}, 3),  # type: ignore[arg-type]
        LabelPlan(metric=text, samples=9, known=3, drawn=2, half_width=0.1, forecast=forecast, notes=[text]),
        findings,
        JudgesReport(metrics={text: findings}),
        RatingTable(text, text, "elo", text, text, (rated,), (), 9, 1, 0, None, (text,)),
        Preference(
            metric=text,
            system=text,
            baseline=text,
            pairs=9,
            scored=8,
            wins=4,
            ties=1,
            losses=3,
            identical=0,
            win_rate=known,
            length_controlled=known,
            flips=known,
            first=known,
            p_value=0.01,
            better=text,
            failures=[Failure(text, text)],
        ),
        Sensitivity({text: 1.0}, 9, 1, 50, 100, 0, (varied,), ((text, text, 0.2),)),
        Crosswalk(
            text,
            text,
            9,
            (RuleScore(text, text, known, 9, 1, 0, known, 8),),
            ((0,),),
            2,
            (DifferingSample(1, text, text, text, (text,), (0.5,)),),
        ),
        MetaEvaluation(
            9,
            8,
            7,
            [LeftOut(text, 2)],
            [text],
            0.95,
            {text: {text: CoefficientFigure(value=0.5, stderr=0.1, low=0.1, high=0.9, method=text)}},
            {text: text},
            text,
            [
                MetricPair(
                    metric=text,
                    other=text,
                    difference=0.1,
                    stderr=0.1,
                    low=0.0,
                    high=0.2,
                    p_value=0.1,
                    p_holm=0.1,
                    better=text,
                    detectable=0.1,
                    method=text,
                )
            ],
        ),
        LintReport(
            1, 9, [Finding(code=text, metric=text, count=1, total=9, share=0.1, what=text, why=text, examples=[text])]
        ),
        sample(text),
        Score(0.5, "ok", text, None, {text: 0.1}, {text: text}, text),
        Score(None, "error", text),
        _score_value(text),
        *_list_scores(text),
    ]


def sample(text: str) -> Sample:
    return Sample(
        text,
        image=text,
        images=[text, text, text],
        audio=text,
        video=text,
        question=text,
        prompt=text,
        references=[text, "2" + text, "3" + text, "4" + text],
        generated_answer=text,
        choices={text: text},
        error=text,
    )


def _score_value(text: str) -> ScoreValue:
    score = ScoreValue(0.5)
    score.method, score.low, score.high, score.n_scored, score.n_total = text, 0.1, 0.9, 3, 4
    return score


def _list_scores(text: str) -> list[object]:
    answers = answer_scores(["yes", "no"], [["yes"], ["yes"]])
    labels = label_scores(["a", "b", "b"], ["a", "b", "a"])
    return [
        AnswerScores(
            {text: answers.per_sample["exact_match"]},
            {text: 0.5},
            {text: answers._rows["exact_match"]},
        ),
        LabelScores(
            labels.per_sample,
            labels.corpus,
            labels._rows,
            (text, "b" + text),
            {text: labels.per_class["a"]},
            np.array([[1, 1], [0, 1]]),
        ),
        _captions(text),
    ]


def _captions(text: str) -> CaptionScores:
    scores = caption_scores(["a dog runs", "two cats"], [["a dog is running"], ["two cats sleep"]], meteor=False)
    return CaptionScores(
        {text: scores.per_image["ROUGE_L"]}, {text: scores.corpus["ROUGE_L"]}, {text: scores.estimates["ROUGE_L"]}
    )


def of_a_run(folder: Path) -> list[object]:
    """The run, a part of its samples, and one of them."""
    from tests.report.hostile import hostile_run

    run = hostile_run(folder)
    rows = run.worst("meteor", 40)
    return [run, rows, rows[0]]
