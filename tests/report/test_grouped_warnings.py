"""Every warning is said once, with all runs and metrics that it is about."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from multimodal_eval.cli.report import page_of
from multimodal_eval.core.records import Finding
from multimodal_eval.core.sample import Sample
from multimodal_eval.report.build import content_of
from multimodal_eval.report.run_warnings import Case, grouped_warnings, warnings
from multimodal_eval.run.evaluate import evaluate


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Two runs of twenty samples: both have a blank answer, and the second fails twice."""
    folder = tmp_path_factory.mktemp("warned")
    config = {
        "task": "mine",
        "tasks": {"mine": {"metrics": ["rouge_l", "exact_match"], "weights": {"rouge_l": 0.5, "exact_match": 0.5}}},
    }
    runs = []
    for name, failed in {"alba": (), "boreas": (3, 4)}.items():
        samples = [
            Sample(
                str(number),
                references=[f"a cat number {number}"],
                generated_answer="" if number == 7 else f"a dog number {number}",
                error="timed out" if number in failed else None,
            )
            for number in range(20)
        ]
        runs.append(evaluate(samples, config=config, output=folder / name, progress=False))
    return runs


def test_what_is_unscored_is_one_warning(scored):
    # Two metrics and the composite lack the same two samples. Lint says so too (2 of 20 is more than 5 %), for each
    # metric, and the composite repeats the reasons of its parts: eight lines on the terminal become one.
    (unscored,) = [each for each in content_of(scored, ["alba", "boreas"]).warnings if "without" in each.what]
    assert unscored.cases == [
        Case(
            ("boreas",),
            ("rouge_l", "exact_match", "composite_score"),
            "2 of 20 samples are unscored; most often: the generator failed: 'timed out'",
        )
    ]
    assert unscored.code == "UNSCORED_SHARE"
    assert [finding.metric for _, finding in unscored.findings] == ["rouge_l", "exact_match", "composite_score"]


def test_blank_answers_are_one_warning_of_both_runs(scored):
    (blank,) = [each for each in content_of(scored, ["alba", "boreas"]).warnings if each.code == "EMPTY_ANSWER"]
    # The runs have 20 and 18 answers, so that their shares differ.
    assert blank.cases == [
        Case(("alba",), ("rouge_l", "exact_match"), "1 of 20 (5.0 %)"),
        Case(("boreas",), ("rouge_l", "exact_match"), "1 of 18 (5.6 %)"),
    ]


def test_no_line_occurs_twice(scored):
    page = page_of(scored)
    section = re.search(r'<section aria-labelledby="warnings">.*?</section>', page, re.DOTALL)[0]
    assert section.count("samples are unscored") == 1
    assert section.count("<bdi>EMPTY_ANSWER<") == section.count("<bdi>UNSCORED_SHARE<") == 1
    outside = page.replace(section, "")
    assert "UNSCORED_SHARE" not in outside
    assert "samples are unscored" not in outside


def test_the_terminal_and_the_viewer_have_the_lines_of_one_run(scored):
    lines = warnings(scored[1])
    assert (
        "rouge_l, exact_match: 2 of 20 samples unscored (2 error); most often: the generator failed: 'timed out'"
        in lines
    )
    assert "rouge_l, exact_match: 1 × blank answer" in lines


def run(name, findings=(), notes=()):
    """A replacement for a run with findings and notes only."""
    info = SimpleNamespace(
        input_notes=[],
        counts=None,
        signatures={},
        config=SimpleNamespace(judges={}),
        judging={},
        unrecorded=lambda _: None,
    )
    stored = SimpleNamespace(info=info, entries={}, outcome=SimpleNamespace(notes=list(notes)))
    return SimpleNamespace(name=name, run=stored, entries={}, findings=list(findings))


def finding(code, metric=None, count=3, what="answers with tags"):
    return Finding(code=code, metric=metric, count=count, total=10, share=count / 10, what=what, why="because")


def test_the_same_finding_in_two_runs_is_said_once():
    (markup,) = grouped_warnings([run("a", [finding("MARKUP")]), run("b", [finding("MARKUP")])], is_compared=True)
    assert (markup.code, markup.what, markup.why) == ("MARKUP", "answers with tags", "because")
    assert markup.cases == [Case(("a", "b"), (), "3 of 10 (30.0 %)")]


def test_findings_with_other_figures_are_cases_of_one_warning():
    findings = [
        finding("FLOOR", "x", what="values at the bound 0"),
        finding("FLOOR", "y", what="values at the bound -1"),
    ]
    (floor,) = grouped_warnings([run("a", findings), run("b", findings[:1])], is_compared=True)
    assert floor.what == ""
    assert floor.cases == [
        Case(("a", "b"), ("x",), "3 of 10 (30.0 %): values at the bound 0"),
        Case(("a",), ("y",), "3 of 10 (30.0 %): values at the bound -1"),
    ]


def test_notes_of_two_runs():
    noted = grouped_warnings([run("a", notes=["n", "m"]), run("b", notes=["n"])], is_compared=True)
    assert [warning.cases[0] for warning in noted] == [Case(("a", "b"), (), "n"), Case(("a",), (), "m")]


def test_no_warnings(tmp_path):
    samples = [Sample(str(n), references=["a cat sat"], generated_answer=f"a cat sat {n % 2}") for n in range(4)]
    single = evaluate(samples, metrics=["rouge_l"], output=tmp_path / "run", progress=False)
    lint_free = content_of([single], ["run"], with_samples=False)
    assert lint_free.warnings == []
