"""Several runs in the columns of one table: scores, parts of the composite, generation, judges, rules."""

from __future__ import annotations

import re

import pytest

from multimodal_eval import evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.generate.protocol import Answer
from tests.judges.scripted import judged, pair
from tests.report.tables import table_of


def test_scores_of_two_runs(runs):
    table = table_of(page_of(runs), section="numbers")
    assert table[0] == ["metric", "run", "", "score", "kind", "std. error", "95% interval", "scored"]
    good, bad = (run.entries["rouge_l"] for run in runs)
    for row, entry, names in zip(table[1:3], (good, bad), (["ROUGE-L", "good"], ["", "bad"]), strict=True):
        interval = f"{entry.low:.4f} … {entry.high:.4f}"
        scored = f"{entry.n_scored} / 30"
        assert row == [*names, "", f"{entry.value:.4f}", "mean", f"{entry.stderr:.4f}", interval, scored]


def test_parts_of_the_composite_as_they_enter(runs):
    page = page_of(runs)
    (table,) = re.findall(r"<details><summary><bdi>The parts of the composite.*?</details>", page, re.DOTALL)
    (heads, (name, weight, *values), (_, _, *others), total) = table_of(table)
    assert heads == [
        "part, as it enters",
        "weight",
        *(f"{run}: {what}" for run in ("good", "bad") for what in ("mean", "contribution")),
    ]
    assert (name, weight) == ("rouge_l", "0.75")
    for run, mean, part, other, composite in zip(
        runs, values[::2], values[1::2], others[1::2], total[3::2], strict=True
    ):
        # The contributions of the parts add up to the composite.
        assert float(part) == pytest.approx(0.75 * float(mean), abs=1e-4)
        assert float(part) + float(other) == pytest.approx(run.entries["composite_score"].value, abs=2e-4)
        assert composite == f"{run.entries['composite_score'].value:.4f}"


def test_generation_of_two_runs(tmp_path):
    def model(tokens, refused):
        def asked(request):
            if request.id == refused:
                return Answer("I must not", finish="refusal")
            return Answer("a cat", input_tokens=1000, output_tokens=tokens)

        return asked

    samples = [Sample(f"s{number}", question="what?", references=["a cat"]) for number in range(4)]
    generated = [
        evaluate(
            samples,
            metrics=["rouge_l"],
            model=model(*settings),
            output=tmp_path / name,
            generation={"use_cache": False},
            progress=False,
        )
        for name, settings in {"first": (20, ""), "second": (40, "s2")}.items()
    ]
    page = page_of(generated)
    table = {cells[0]: cells[1:] for cells in table_of(page, caption="models and settings")}
    assert table[""] == ["first", "second"]
    assert table["answered"] == ["4 of 4", "3 of 4"]
    assert table["failed"] == ["none", "1 refused"]
    assert table["tokens"] == ["4,000 in, 80 out", "3,000 in, 120 out"]
    assert table["cost"] == ["not known", "not known"]
    assert " s (median)" in table["latency"][0]


def test_judges_of_two_runs(tmp_path):
    pairs = [pair(number, "long " * 3, "short") for number in range(6)]
    first = judged(
        pairs,
        {"a": lambda *place: {"reason": "", "verdict": "1"}},  # always the answer that is shown first
        output=tmp_path / "first",
        name="preference",
        form="pairwise",
        explain=True,
    )
    second = Run(tmp_path / "first").save(tmp_path / "second")
    table = table_of(page_of([first, second]), caption="the judges side by side")
    flips = "verdicts that turn around with the order"
    assert [row[:2] for row in table[1:3]] == [[flips, "preference, first"], ["", "preference, second"]]
    assert [row[3] for row in table[1:3]] == ["1.0000"] * 2
    assert [row[-1] for row in table[1:3]] == ["6 / 6"] * 2
    (place,) = [place for place, row in enumerate(table) if row[0] == "verdicts for the answer shown first"]
    assert [row[3] for row in table[place : place + 2]] == ["1.0000"] * 2


def test_rules_in_two_runs(tmp_path):
    rules = {"strict": {"rule": "none@1"}, "loose": {"rule": "squad@1.1"}}
    crossed = [
        evaluate(
            [
                Sample(str(number), references=["yes"], generated_answer="yes" if number % every else "Yes.")
                for number in range(8)
            ],
            metrics=list(rules),
            variants=dict.fromkeys(rules, "exact_match"),
            options=rules,
            output=tmp_path / str(every),
            progress=False,
        )
        for every in (2, 4)
    ]
    table = table_of(page_of(crossed), caption="exact_match by rule, runs side by side")
    # By the strict rule, every second or fourth answer is wrong.
    assert [row[:2] for row in table[1:5]] == [["none@1", "2"], ["", "4"], ["squad@1.1", "2"], ["", "4"]]
    assert [row[3] for row in table[1:5]] == ["0.5000", "0.7500", "1.0000", "1.0000"]
