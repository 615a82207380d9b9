"""What the terminal says about the judges of a run, under its table."""

from __future__ import annotations

import json

from multimodal_eval.analysis.preferences import preference_of
from multimodal_eval.cli.finish import print_blocks, print_result, show
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import (
    Agreement,
    Flips,
    JudgeFindings,
    Length,
    Rate,
    Variance,
)
from multimodal_eval.display.of_judges import judge_lines, preference_of_run_blocks
from tests.judges.scripted import judged, pair

FIGURE = Figure(value=0.5, stderr=0.1, low=0.3, high=0.7, method="t")


def rate(count, total):
    return Rate(count=count, total=total, value=count / total if total else None, low=None, high=None)


def test_one_line_of_counts_and_one_of_changes():
    known = JudgeFindings(
        form="pairwise",
        models=["openai:a", "openai:b"],
        questions=4000,
        unreadable={"no JSON": 12, "no number": 3},
        failed={"refused": 2},
        injections=1,
        flips=Flips(flips=rate(129, 1000), disagreements=rate(200, 1000), first=rate(560, 1000)),
        length=Length(longer_wins=rate(680, 1000), effect=FIGURE, win_rate=FIGURE, controlled=FIGURE),
        agreement=[Agreement(between="judges", level="nominal", alpha=FIGURE, units=1000)],
        # 3^2 / (3^2 + 4^2) = 36%
        variance=Variance(samples=1, judges=1, repeats=None, stderr_of_samples=0.04, stderr_of_judge=0.03),
    )
    assert list(judge_lines("preference", known)) == [
        "preference: 4,000 verdicts of openai:a, openai:b; 15 unreadable; 2 failed; 1 answer addresses the judge",
        "  verdicts that turn around with the order: 12.9% (129 of 1,000)",
        "  verdicts for the answer shown first: 56.0% (560 of 1,000)",
        "  pairs that the longer answer wins: 68.0% (680 of 1,000)",
        "  Krippendorff's alpha between judges, nominal: 0.50 [0.30, 0.70] (1,000 units)",
        "  36% of the squared standard error is the judge's",
    ]


def test_a_single_judge_has_one_line():
    known = JudgeFindings(form="scale", models=["openai:a"], questions=5)
    assert list(judge_lines("quality", known)) == ["quality: 5 verdicts of openai:a"]


def test_nothing_decided_is_not_listed():
    flips = Flips(flips=rate(0, 2), disagreements=rate(0, 2), first=rate(0, 0))
    known = JudgeFindings(form="pairwise", models=["a"], questions=4, flips=flips)
    assert list(judge_lines("p", known))[1:] == ["  verdicts that turn around with the order: 0.0% (0 of 2)"]


def test_lines_and_warnings_are_under_the_table(tmp_path, capsys):
    pairs = [pair(number, f"a {number}", "b", system="claude-3", baseline_system="x") for number in range(8)]
    run = judged(pairs, {"claude-4": lambda *place: {"verdict": "1"}}, output=tmp_path / "run", form="pairwise")
    print_result(run, "table")
    shown = capsys.readouterr().out
    assert shown.index("★ headline") < shown.index("quality: 16 verdicts of ")
    # The lower ends are those of Wilson: 8 / (8 + 3.8415), and with 8 pairs as clusters 58.9%.
    assert "  verdicts that turn around with the order: 100.0% [67.6%, 100.0%] (8 of 8)" in shown
    assert "  verdicts for the answer shown first: 100.0% [58.9%, 100.0%] (16 of 16)" in shown
    assert "! quality: the judge prefers the answer that is shown first: 100.0% of 16 decided verdicts" in shown
    assert "are of the family claude" in shown


def test_warnings_are_under_the_table_of_a_comparison(tmp_path, capsys):
    pairs = [pair(number, f"a {number}", "b", system="claude-3", baseline_system="x") for number in range(8)]
    run = judged(pairs, {"claude-4": lambda *place: {"verdict": "1"}}, output=tmp_path / "run", form="pairwise")
    print_blocks(preference_of_run_blocks(run, preference_of(run, "quality")))
    shown = capsys.readouterr().out
    assert shown.index("win rate of A") < shown.index("! quality: the judge ")


def test_the_json_of_a_run_has_what_is_known_about_its_judges(tmp_path, capsys):
    pairs = [pair(number, f"a {number}", "b") for number in range(4)]
    run = judged(pairs, {"j": lambda *place: {"verdict": "1"}}, output=tmp_path / "run", form="pairwise")
    show(run, {"jsonl": False, "wants_report": False, "format_": "json"})
    shown = json.loads(capsys.readouterr().out)
    assert shown["judges"]["metrics"]["quality"]["flips"]["flips"]["count"] == 4
