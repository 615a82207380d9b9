"""Tables for papers: which values are bold, marks against a baseline, captions, escapes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Run, evaluate
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, UnknownNameError
from multimodal_eval.display.latex import latex_text, markdown_text
from multimodal_eval.interop.export.registry import export
from tests.cli.command_line import mmeval
from tests.edited_runs import accept_changes, rewrite_json
from tests.run.labelled_samples import judged_samples

SAMPLES = 20
# Every answer of `all` is right, 19 of `most`, 5 of `few`.
# all - most: 1 sample differs, so p = 1. all - few: 15 samples differ, all in one direction: p is about 2 / 2^15.
# most - few: 14 samples differ, all in one direction: p is about 2 / 2^14. Holm multiplies by 3 at most.
RIGHT = {"all": 20, "most": 19, "few": 5}


def answers(right, samples=SAMPLES):
    return [
        {"id": str(i), "references": ["yes"], "generated_answer": "yes" if i < right else "no"} for i in range(samples)
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: evaluate(answers(right), metrics=["exact_match", "wer"], output=folder / name, progress=False)
        for name, right in RIGHT.items()
    }


def several(runs, *names):
    return [runs[name] for name in names or RIGHT]


def latex_rows(text):
    lines = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    return [line.removesuffix(r" \\").split(" & ") for line in lines]


def test_the_best_and_its_ties_are_bold(runs):
    text = export(several(runs), "latex", metrics=["exact_match"]).text
    # standard errors: sqrt(0.95 * 0.05 / 19) = 0.05 and sqrt(0.25 * 0.75 / 19) = 0.0993
    assert latex_rows(text) == [
        [
            r"exact\_match",
            r"\textbf{1.000 $\pm$ 0.000}",
            r"\textbf{0.950 $\pm$ 0.050}",
            r"0.250 $\pm$ 0.099",
        ]
    ]


def test_lower_is_better_for_error_rates(runs):
    text = export(several(runs), "markdown", metrics=["wer"], uncertainty="none").text
    assert text.splitlines()[2] == "| WER ↓ | **0.000** | **0.050** | 0.750 |"
    assert "↓: lower is better." in text


def test_bold_and_ranks_follow_the_correction_for_several_metrics(tmp_path):
    # 5 samples differ, all in one direction: z = sqrt(5), p = .025 for the headline, and 3 x .025 for the 3 others
    metrics = ["exact_match", "contains", "anls", "edit_distance"]
    pair = [evaluate(answers(right), metrics=metrics, output=tmp_path / str(right)) for right in (20, 15)]
    text = export(pair, "markdown", uncertainty="none").text
    assert text.splitlines()[2:6] == [
        r"| exact\_match | **1.000** | 0.750 |",
        "| contains | **1.000** | **0.750** |",
        "| ANLS | **1.000** | **0.750** |",
        r"| edit\_distance ↓ | **0.000** | **0.250** |",
    ]
    assert "after Holm's correction for the 3 metrics other than the headline." in text
    assert export(pair, "markdown", metrics=["contains"], uncertainty="none").text.count("**") == 2
    first, *others = compare_runs(pair).numbers
    assert [system.rank for system in first.systems] == [1, 2]
    assert [[system.rank for system in metric.systems] for metric in others] == [[1, 1]] * 3


def test_a_tie_with_the_best_is_not_bold_without_a_test(runs):
    text = export(several(runs), "markdown", metrics=["exact_match"], uncertainty="none", marks="best").text
    assert text.splitlines()[2] == r"| exact\_match | **1.000** | 0.950 | 0.250 |"
    assert "differences are not tested" in text
    assert "Significance" not in text


def test_no_marks(runs):
    text = export(several(runs), "markdown", uncertainty="none", marks="none").text
    assert "**" not in text
    assert "Bold" not in text


def test_marks_against_the_baseline(runs):
    text = export(several(runs), "latex", metrics=["exact_match"], uncertainty="none", baseline="most").text
    assert latex_rows(text) == [[r"exact\_match", r"\textbf{1.000}", r"\textbf{0.950}", r"0.250$^{\ddagger}$"]]
    text = export(several(runs), "markdown", metrics=["wer"], uncertainty="none", baseline="few").text
    assert text.splitlines()[2] == "| WER ↓ | **0.000†** | **0.050†** | 0.750 |"
    assert "†: significantly better than few; ‡: significantly worse." in text


def test_the_caption_names_the_test_and_its_level(runs):
    text = export(several(runs), "latex", alpha=0.01, rounds=2000, caption="Main results.", label="tab:main").text
    (caption,) = re.findall(r"\\caption\{(.*)\}\n", text)
    assert caption.startswith(
        "Main results. Scores of 3 runs over the samples that all of them have scored; 20 / 20 samples scored. "
        "$\\pm$: standard error."
    )
    assert caption.endswith(
        "Significance: score test for scores of 0 and 1, else paired randomization of samples (2,000 rounds), "
        "p \\textless{} 0.01, "
        "for all pairs of runs together."
    )
    assert "\\label{tab:main}\n" in text
    assert "together" not in export(several(runs, "all", "few"), "latex").text


def test_stored_intervals_of_two_versions_are_not_put_side_by_side(runs, tmp_path):
    old = shutil.copytree(runs["few"].folder.path, tmp_path / "old")
    rewrite_json(old / "run.json", lambda content: content["versions"].pop("statistics"))
    accept_changes(old)
    both = [runs["all"], Run(old)]
    with pytest.raises(ConfigError, match=r"versions of the statistics \(2 and 1\). Compute them again: ") as refused:
        export(both, "latex", marks="best")
    command = str(refused.value).partition("Compute them again: ")[2]
    mmeval(*shlex.split(command)[1:])
    again = export([runs["all"], Run(tmp_path / "old-again")], "latex", marks="best").text
    assert "0.250" in again
    assert "0.250" in export(both, "latex", marks="best", uncertainty="none").text
    assert "0.250" in export(both, "latex").text  # computed again for the test


def test_the_level_decides(runs):
    # 15 samples differ: 10,000 rounds give p of at least 1 / 10,001, so at a level of 1e-5 nothing is significant.
    text = export(several(runs), "markdown", metrics=["exact_match"], uncertainty="none", alpha=1e-5).text
    assert text.splitlines()[2] == r"| exact\_match | **1.000** | **0.950** | **0.250** |"


def test_intervals_and_percentages(runs):
    text = export(several(runs, "most"), "markdown", metrics=["exact_match"], uncertainty="interval", percent=True).text
    entry = runs["most"]["exact_match"]
    low, high = (f"{100 * entry[side]:.1f}" for side in ("low", "high"))
    assert text.splitlines()[2] == rf"| exact\_match | 95.0 \[{low}, {high}\] |"
    assert "All scores: in percent." in text
    with pytest.raises(ConfigError, match="wer is not known to be between 0 and 1, and cannot be a percentage"):
        export(several(runs, "few"), "latex", metrics=["wer"], percent=True)
    mixed = export(several(runs, "few"), "latex", metrics=["wer", "exact_match"], percent=True)
    assert "wer is not known to be between 0 and 1, and cannot be a percentage" in mixed.notes
    text = export(several(runs, "few"), "markdown", uncertainty="none", percent=["wer"]).text
    assert text.splitlines()[2:4] == [r"| exact\_match | 0.250 |", "| WER ↓ | 75.0 |"]
    assert "WER: in percent." in text


def test_runs_as_rows(runs):
    text = export(
        several(runs), "markdown", columns="metrics", uncertainty="none", names=["A & B", "50 %", "x_y"], digits=2
    ).text
    assert text.splitlines()[:5] == [
        r"| run | exact\_match | WER ↓ |",
        "|---|--:|--:|",
        "| A &amp; B | **1.00** | **0.00** |",
        "| 50 % | **0.95** | **0.05** |",
        r"| x\_y | 0.25 | 0.75 |",
    ]


def test_values_of_a_single_run_have_no_marks(runs):
    text = export(runs["few"], "latex", float=False).text
    assert "textbf" not in text
    assert text.splitlines()[1].startswith("% Scores of one run; 20 / 20 samples scored. $\\pm$: standard error.")
    assert "\\begin{table}" not in text


def test_a_metric_that_a_run_lacks_is_a_dash_and_is_not_tested(runs, tmp_path):
    short = evaluate(answers(5), metrics=["exact_match"], output=tmp_path / "short", progress=False)
    done = export([runs["all"], short], "markdown", uncertainty="none")
    assert done.text.splitlines()[2:4] == [r"| exact\_match | **1.000** | 0.250 |", "| WER ↓ | 0.000 | – |"]
    assert done.notes == ("not scored in all runs, and therefore not tested: wer",)


def test_values_are_over_the_samples_that_all_runs_have_scored(runs, tmp_path):
    rows = answers(20)
    rows[19] = {"id": "19", "references": ["yes"], "error": "time-out"}
    partial = evaluate(rows, metrics=["exact_match"], output=tmp_path / "partial", progress=False)
    with pytest.raises(ConfigError, match=r"1 of 20 samples is unscored.*--set allow_partial=true.*marks=none"):
        export([runs["most"], partial], "latex", metrics=["exact_match"])
    done = export([runs["most"], partial], "markdown", metrics=["exact_match"], allow_partial=True, uncertainty="none")
    # the only wrong answer of `most` is the sample that the other run did not score
    assert done.text.splitlines()[2] == r"| exact\_match | **1.000** | **1.000** |"
    assert "19 / 20 samples scored" in done.text
    assert done.notes[0].startswith("exact_match: 1 sample unscored in a run or more")


def test_values_over_other_samples_have_their_counts_and_none_is_bold(runs, tmp_path):
    rows = answers(20)
    rows[19] = {"id": "19", "references": ["yes"], "error": "time-out"}
    partial = evaluate(rows, metrics=["exact_match"], output=tmp_path / "partial", progress=False)
    text = export([runs["few"], partial], "markdown", metrics=["exact_match"], marks="best", uncertainty="none").text
    assert text.splitlines()[2] == r"| exact\_match | 0.250 \(20 / 20\) | 1.000 \(19 / 20\) |"
    assert "Bold" not in text
    assert "scored / total" in text


def test_the_best_of_other_samples_is_not_bold(runs, tmp_path):
    other = evaluate(
        [{**row, "id": f"other {row['id']}"} for row in answers(9)], metrics=["exact_match"], output=tmp_path / "other"
    )
    text = export([runs["few"], other], "markdown", metrics=["exact_match"], marks="best", uncertainty="none").text
    assert "**" not in text


def test_the_best_composite_is_bold_only_among_composites_of_the_same_parts(tmp_path):
    task = {
        "metrics": ["exact_match", "hidden_metric"],
        "weights": {"exact_match": 0.5, "hidden_metric": 0.5},
        "on_missing": "renormalise",
    }
    texts = {}
    for name, perplexity in (("lacks", None), ("has", 50.0)):
        whole, lacking = (
            evaluate(
                [{**row, "perplexity": 2.0 if place else missing} for place, row in enumerate(answers(right))],
                task="mine",
                tasks={"mine": task},
                output=tmp_path / name / str(right),
            )
            for right, missing in ((15, 50.0), (14, perplexity))
        )
        text = export([whole, lacking], "markdown", metrics=["composite"], marks="best", uncertainty="none").text
        texts[name] = text.splitlines()[2]
    assert "**" not in texts["lacks"]
    assert "**" in texts["has"]


def test_the_score_that_labels_correct_is_beside_the_raw_one(tmp_path):
    run = evaluate(judged_samples(), metrics=["exact_match"], human={"exact_match": "rating"}, progress=False)
    entry = run.entries["exact_match"]
    for format_ in ("markdown", "latex"):
        text = export(run, format_, uncertainty="none").text.replace("\\(", "(").replace("\\)", ")")
        name = "exact\\_match"
        between = " | " if format_ == "markdown" else " & "
        assert f"{name}{between}{entry.calibrated.value:.3f} ({entry.calibrated.labels} labels)" in text
        assert f"{name}, uncorrected{between}{entry.value:.3f}" in text
        assert "With labels: corrected by human labels; uncorrected: without them." in text


def test_wrong_options(runs, tmp_path):
    both = several(runs, "all", "few")
    for wrong, message in [
        ({"alpha": 0.0}, "alpha must be"),
        ({"rounds": 1}, "rounds must be"),
        ({"seed": -1}, "seed must be"),
        ({"digits": 99}, "digits must be"),
        ({"names": ["one"]}, "one name per run"),
        ({"names": ["one", "one"]}, "all different"),
        ({"baseline": "fwe"}, "Did you mean 'few'"),
        ({"baseline": "few", "marks": "none"}, "needs the test"),
        ({"label": "a}b"}, "label must"),
        ({"columns": "rows"}, "one of runs, metrics"),
    ]:
        with pytest.raises(MultimodalEvalError, match=message):
            export(both, "latex", **wrong)
    with pytest.raises(UnknownNameError, match="Did you mean 'exact_match'"):
        export(both, "latex", metrics=["exact_macth"])
    with pytest.raises(ConfigError, match="needs another run"):
        export(runs["all"], "latex", baseline="all")
    other = evaluate(answers(5, samples=21), metrics=["exact_match"], output=tmp_path / "other", progress=False)
    with pytest.raises(ConfigError, match=r"different samples(.|\n)*marks=best"):
        export([runs["all"], other], "latex")
    assert export([runs["all"], other], "markdown", marks="none").text


def test_names_that_yaml_reads_as_numbers(runs):
    text = export(several(runs, "all", "few"), "markdown", names=[1.5, 2], baseline=2, uncertainty="none").text
    assert "significantly better than 2;" in text


def test_the_command(runs, tmp_path):
    folders = [str(runs[name].path) for name in RIGHT]
    printed = mmeval("export", *folders, "--to", "latex", "--metrics", "exact_match", "--set", "baseline=most").stdout
    assert r"0.250$^{\ddagger}$" in printed
    target = tmp_path / "table.md"
    mmeval("export", *folders, "--to", "markdown", "-o", str(target), "--set", "marks=none")
    assert target.read_text().startswith("| metric | all | most | few |")


names = st.text(min_size=1, max_size=12)
SPECIAL = re.compile(
    r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar|char34)\{\}|\\[{}$&#%_]"
)


@pytest.mark.property
@given(names)
def test_no_character_keeps_its_meaning_in_latex(text):
    rest = SPECIAL.sub("", latex_text(text))
    assert not re.search(r"[\\{}$&#%_^~<>|\"\x00-\x1f\x7f]", rest.replace("\t", ""))


@pytest.mark.property
@given(names)
def test_a_name_stays_in_its_cell_of_markdown(text):
    cell = markdown_text(text)
    assert "\n" not in cell
    assert not re.search(r"(?<!\\)(\\\\)*\|", cell)
    assert "<" not in cell


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdfLaTeX")
@pytest.mark.parametrize("settings", [{}, {"float": False, "uncertainty": "interval", "columns": "metrics"}])
def test_latex_compiles(runs, tmp_path, settings):
    odd = ["\\input{x} {y} $z$", '#1 & 50 % "q" ^~ <|>', "Café_\x1b[31m ß"]
    export(several(runs), "latex", tmp_path / "t.tex", names=odd, baseline=odd[0], caption="100 % & more.", **settings)
    page = r"\documentclass{article}\usepackage{booktabs,amssymb}\begin{document}\input{t.tex}\end{document}"
    (tmp_path / "page.tex").write_text(page)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=600)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "page.pdf").exists()
