"""Every warning is said once, with all runs and metrics that it is about."""

from __future__ import annotations

import re

import pytest

from multimodal_eval import evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.records import Finding
from multimodal_eval.core.sample import Sample
from multimodal_eval.display.renderer import blocks_of, rendered
from multimodal_eval.display.run_findings import findings_of_runs, lint_findings, warnings_of


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


def section_of(runs, name="warnings"):
    return re.search(rf'<section aria-labelledby="{name}">.*?</section>', page_of(runs), re.DOTALL)[0]


def findings_of(runs):
    return findings_of_runs({run.folder.name: warnings_of(run, explained=True) for run in runs})


def test_what_is_unscored_is_one_warning(scored):
    # Two metrics and the composite lack the same two samples. Lint says so too (2 of 20 is more than 5%), for each
    # metric, and the composite repeats the reasons of its parts: eight lines become one.
    (unscored,) = [each for each in findings_of(scored) if "unscored" in each.what]
    assert unscored.sentence == (
        "boreas: ROUGE-L, exact_match, composite_score: 2 of 20 (10.0%): samples unscored (2 error); most often: "
        "the generator failed: 'timed out'"
    )
    assert unscored.code == "UNSCORED_SHARE"
    assert unscored.why
    assert set(unscored.examples) == {"3", "4"}


def test_blank_answers_are_one_warning_of_both_runs(scored):
    (blank,) = [each for each in findings_of(scored) if each.code == "EMPTY_ANSWER"]
    assert blank.sentence == "alba, boreas: ROUGE-L, exact_match: 1 of 20 (5.0%): blank answer"
    assert blank.examples == ("7",)


def test_no_line_occurs_twice(scored):
    page, section = page_of(scored), section_of(scored)
    assert section.count("samples unscored") == 1
    assert section.count("<bdi>EMPTY_ANSWER<") == section.count("<bdi>UNSCORED_SHARE<") == 1
    outside = page.replace(section, "")
    assert "UNSCORED_SHARE" not in outside
    assert "samples unscored" not in outside


def test_the_terminal_has_the_sentences_of_one_run(scored):
    lines = [each.sentence for each in warnings_of(scored[1])]
    unscored = "samples unscored (2 error); most often: the generator failed: 'timed out'"
    assert f"ROUGE-L, exact_match, composite_score: 2 of 20 (10.0%): {unscored}" in lines
    assert "ROUGE-L, exact_match: 1 of 20 (5.0%): blank answer" in lines
    assert rendered(blocks_of(scored[1]), "table").count("EMPTY_ANSWER") == 1


def finding(code, metric=None, count=3, what="answers with tags"):
    return Finding(code=code, metric=metric, count=count, total=10, share=count / 10, what=what, why="because")


def of_lint(**runs):
    return findings_of_runs({name: list(lint_findings(listed, explained=True)) for name, listed in runs.items()})


def test_the_same_finding_in_two_runs_is_said_once():
    (markup,) = of_lint(a=[finding("MARKUP")], b=[finding("MARKUP")])
    assert (markup.code, markup.why) == ("MARKUP", "because")
    assert markup.sentence == "a, b: 3 of 10 (30.0%): answers with tags"


def test_findings_with_other_figures_are_apart():
    listed = [finding("FLOOR", "x", what="values at the bound 0"), finding("FLOOR", "y", what="values at the bound -1")]
    assert [each.sentence for each in of_lint(a=listed, b=listed[:1])] == [
        "a, b: x: 3 of 10 (30.0%): values at the bound 0",
        "a: y: 3 of 10 (30.0%): values at the bound -1",
    ]


def test_what_all_of_many_runs_have():
    (markup,) = of_lint(a=[finding("MARKUP")], b=[finding("MARKUP")], c=[finding("MARKUP")])
    assert markup.sentence.startswith("all runs: ")


def test_no_warnings(tmp_path):
    samples = [Sample(str(n), references=["a cat sat"], generated_answer=f"a cat sat {n % 2}") for n in range(4)]
    single = evaluate(samples, metrics=["rouge_l"], output=tmp_path / "run", progress=False)
    assert warnings_of(single, ()) == []
