"""Results of every class that has a display, made from a few samples by the functions that make them for people."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from multimodal_eval import Run, Sample, calibrate, crosswalk, evaluate, plan_labels, power, suite
from multimodal_eval.analysis.classification import classification_of
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.composite import sensitivity
from multimodal_eval.analysis.crosswalk import crosswalk_of
from multimodal_eval.analysis.judge_calibration import calibration_of
from multimodal_eval.analysis.leaderboard import leaderboard
from multimodal_eval.analysis.meta import MetaSuite
from multimodal_eval.contests.clarity.dataset import Checked
from multimodal_eval.contests.dialogue.report import DialogueReport, TypeReport
from multimodal_eval.core.figure import Figure
from multimodal_eval.interop.coco import caption_scores
from multimodal_eval.interop.list_scores import answer_scores, label_scores
from multimodal_eval.run.meta import Request, meta_evaluate
from multimodal_eval.run.reproduction import Reproduction, reproduce
from multimodal_eval.run.why import why
from multimodal_eval.stats.agreement_report import Settings, agreement_report
from multimodal_eval.stats.ratings import Ratings
from tests.report.displays.results import of_every_class
from tests.run.labelled_samples import judged_samples

TASK = {"mine": {"metrics": ["rouge_l", "exact_match", "wer"], "weights": {"rouge_l": 0.5, "exact_match": 0.5}}}


def answers(right: int) -> list[Sample]:
    """12 samples: some answers are right, the others nearly so, and one is missing."""
    texts = ["a dog runs" if n < right else "a dog sleeps" for n in range(12)]
    return [
        Sample(str(n), generated_answer=text if n != 11 else None, references=["a dog runs"], metadata={"score": n % 4})
        for n, text in enumerate(texts)
    ]


def runs_of(folder: Path) -> list[Run]:
    """Three runs over the same samples."""
    every = {"few": 3, "some": 7, "most": 10}
    return [
        evaluate(answers(right), task="mine", tasks=TASK, output=folder / name, progress=False)
        for name, right in every.items()
    ]


def no_progress(*_: object) -> None:
    pass


def reproduced(folder: Path) -> Reproduction:
    """A ledger of two figures, one of which is another unit's."""
    (folder / "said.csv").write_text("id,gold,response,verdict\n1,A,A,1\n2,B,A,0\n")
    figures = "[{correct: 1, total: 2}, {figure: gold=A, value: 1}]"
    (folder / "ledger.yaml").write_text(f"- {{recipe: mmstar, answers: said.csv, published: {figures}}}\n")
    return reproduce(folder / "ledger.yaml")


def small_results(folder: Path) -> list[object]:
    """One result of every class; those of a judge and of a contest are small records."""
    runs = runs_of(folder)
    two = compare_runs(runs[:2], allow_partial=True, rounds=200)
    labelled = evaluate(
        judged_samples(),
        metrics=["exact_match"],
        human={"exact_match": "rating"},
        output=folder / "judged",
        progress=False,
    )
    choices = [
        {"id": str(n), "choices": ["cat", "dog"], "expected_answer": "A", "generated_answer": answer}
        for n, answer in enumerate(["A", "B", "the answer is A", "cat"] * 3)
    ]
    rules = crosswalk(choices, metric="multiple_choice", output=folder / "rules", progress=False)
    labels = [{"id": str(n), "expected_answer": "ab"[n % 2], "generated_answer": "ab"[n // 2 % 2]} for n in range(12)]
    classified = evaluate(labels, metrics=["f1_strict"], output=folder / "labels", progress=False)
    codes = Ratings(
        np.array([[0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]]), np.array(["no", "yes"]), ordered=False
    )
    figure = Figure(0.5, 0.1, 0.3, 0.7, "95% t interval, 11 clusters in 4 strata")
    kind = TypeReport("Text2Text", 3, 5, 0.1, figure, figure, figure, 0.05)
    judged = meta_evaluate(folder / "most", Request(human=("score",), allow_partial=True), progress=no_progress)
    made = [
        *runs[:1],
        two,
        compare_runs(runs, allow_partial=True, rounds=200),
        two.numbers[0],
        power(rates=(0.6, 0.7), effect=0.1),
        leaderboard(folder, [run.folder.name for run in runs], by="rouge_l", allow_partial=True),
        sensitivity(runs, draws=200, allow_partial=True),
        why(runs[0], runs[1], metrics=["rouge_l"]),
        suite([run.folder.path for run in runs], rounds=200, baseline="few"),
        crosswalk_of(rules),
        calibration_of(labelled, "exact_match"),
        *calibrate([labelled], "rating"),
        plan_labels(labelled, human="rating", labels=5),
        runs[0].lint_report(),
        runs[0].worst("rouge_l", 2),
        runs[0].worst("rouge_l", 2)[0],
        classification_of(classified),
        agreement_report(codes, ["ann", "bob", "cas"], Settings(resamples=100)),
        judged,
        MetaSuite([judged]),
        answer_scores(["yes", "no"], [["yes"], ["yes"]]),
        label_scores(["a", "b", "b"], ["a", "b", "a"]),
        caption_scores(["a dog runs", "two cats"], [["a dog is running"], ["two cats sleep"]], meteor=False),
        Checked("sent.csv", "table", 4, {"evasion": {"Explicit": 3, "Dodging": 1}}, None, ["a note"]),
        DialogueReport(figure, figure, figure, [kind], []),
        reproduced(folder),
    ]
    shown = {type(result).__name__ for result in made}
    return made + [each for each in of_every_class("text") if type(each).__name__ not in shown]
