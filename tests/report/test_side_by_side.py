"""Several runs in the columns of one table: scores, parts of the composite, generation, judges, rules."""

from __future__ import annotations

import re
from html import unescape

import pytest

from multimodal_eval.cli.report import page_of
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.run.evaluate import evaluate
from tests.judges.scripted import judged, pair


def rows(page: str, caption: str) -> list[list[str]]:
    """The texts of the cells of the table with this caption."""
    table = next(each for each in re.findall(r"<table.*?</table>", page, re.DOTALL) if f">{caption}<" in each)
    lines = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    return [[text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line, re.DOTALL)] for line in lines]


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_scores_of_two_runs(runs):
    table = rows(page_of(runs), "Every metric with its interval, runs side by side")
    assert table[0] == ["Metric", "Kind", "good", "bad"]
    assert table[1] == ["Score", "95 % interval", "Scored"] * 2
    good, bad = (run.entries["rouge_l"] for run in runs)
    figures = [(f"{entry.value:.4f}", f"{entry.low:.4f} … {entry.high:.4f}") for entry in (good, bad)]
    assert table[2] == ["rouge_l", "mean", *figures[0], "30 / 30", *figures[1], "29 / 30"]


def test_scores_of_many_runs_have_one_column_each(runs, tmp_path):
    many = [run.save(tmp_path / f"{number}") for number, run in enumerate((*runs, *runs))]
    table = rows(page_of(many), "Every metric with its interval, runs side by side")
    assert table[0] == ["Metric", "Kind", "0", "1", "2", "3"]
    bad = runs[1].entries["rouge_l"]
    assert table[1][3] == f"{bad.value:.4f} {bad.low:.4f} … {bad.high:.4f} 29 / 30"


def test_parts_of_the_composite_as_they_enter(runs):
    table = rows(page_of(runs), "The parts of the composite as they enter")
    assert table[0] == ["Part, as it enters", "Weight", "good", "bad"]
    assert table[1] == ["Normalised value", "Contribution"] * 2
    (name, weight, *values), (_, _, *others), total = table[2:]
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
    table = {cells[0]: cells[1:] for cells in rows(page, "What the models answered, runs side by side")}
    assert table["Answered"] == ["4 of 4", "3 of 4"]
    assert table["Failed"] == ["none", "1 refused"]
    assert (table["Tokens in"], table["Tokens out"]) == (["4,000", "3,000"], ["80", "120"])
    assert table["Cost"] == ["not known", "not known"]
    assert table["Latency, median"][0].endswith(" s")


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
    table = {cells[0]: cells[1:] for cells in rows(page_of([first, second]), "The judges side by side")}
    assert table["Judge"] == ["preference , first", "preference , second"]
    assert table["Verdicts"] == ["12", "12"]
    assert table["Flips with the order"][0].startswith("100.0 %")
    assert table["Verdicts for the first answer"][1].startswith("100.0 %")
    assert table["Corrected by human labels"] == ["–", "–"]


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
    table = rows(page_of(crossed), "Scores of exact_match by rule, runs side by side")
    # By the strict rule, every second or fourth answer is wrong.
    assert table[0] == ["rule", "2", "4"]
    assert [cells[0] for cells in table[1:]] == ["none@1", "squad@1.1"]
    assert [cell.split()[0] for cell in table[1][1:]] == ["0.5000", "0.7500"]
    assert [cell.split()[0] for cell in table[2][1:]] == ["1.0000", "1.0000"]
