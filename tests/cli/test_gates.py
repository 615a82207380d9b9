"""Limits of scores for CI: `--fail-under`, `--fail-over` and `--min-coverage`. None of them passes by mistake."""

from __future__ import annotations

import json
import re

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.cli.main import cli
from multimodal_eval.core.display import number_beside
from tests.cli.command_line import mmeval
from tests.generate.counting_model import CountingModel, offered

# Six words for two: two substitutions and four insertions; then one word of one. 6 errors in 3 words are a WER of 2.
ROWS = [
    {"id": "a", "references": ["blue cat"], "generated_answer": "a red dog runs here now", "cost": 3.0},
    {"id": "b", "references": ["two"], "generated_answer": "two", "cost": 5.0},
]
CONFIG = """
metrics: [wer, exact_match, cost]
variants: {cost: recorded}
options: {cost: {column: cost, direction: lower}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "run.yaml").write_text(CONFIG)
    (tmp_path / "asr.yaml").write_text("task: asr\ntasks: {asr: {metrics: [wer, cer], headline: wer}}\n")
    return tmp_path


def score(*arguments, config="run.yaml", code=0):
    return mmeval("score", "data.jsonl", "--config", config, "--no-report", *arguments, code=code)


@pytest.mark.parametrize(
    ("gate", "direction", "right", "config"),
    [
        ("--fail-under wer=0.1", "lower", "--fail-over wer=0.1", "run.yaml"),
        ("--fail-over exact_match=0.5", "higher", "--fail-under exact_match=0.5", "run.yaml"),
        ("--fail-under cost=1.0", "lower", "--fail-over cost=1.0", "run.yaml"),  # by an option of a recorded score
        ("--fail-under composite=0.1", "lower", "--fail-over composite=0.1", "asr.yaml"),  # is the wer
    ],
)
def test_a_limit_on_the_wrong_side_is_refused_with_the_right_flag(folder, gate, direction, right, config):
    name = gate.split()[1].partition("=")[0]
    message = f"{gate}: {name} is {direction}-is-better: use {right}"
    assert message in score(*gate.split(), config=config, code=2).stderr
    assert not (folder / "runs").exists()


def test_a_metric_that_cannot_run_has_its_direction(folder):
    model = ("--option", "perplexity.source=model", "--option", "perplexity.model=nowhere/model")
    arguments = ("score", "data.jsonl", "--metrics", "perplexity", *model, "--skip-unavailable", "--no-report")
    assert "use --fail-over perplexity=9.0" in mmeval(*arguments, "--fail-under", "perplexity=9", code=2).stderr
    done = mmeval(*arguments, "--fail-over", "perplexity=9", code=3)
    assert "perplexity is unscored, and --fail-over perplexity=9.0 needs a score" in done.stderr
    assert "Commonest reason: unavailable: " in done.stderr
    assert "perplexity ↓" in done.stdout


def test_a_ceiling(folder):
    score("--fail-over", "wer=2", "--fail-over", "cost=4")
    done = score("--fail-over", "wer=0.1", "--fail-over", "cost=3.9", "--fail-under", "exact_match=0.9", code=3)
    assert done.stderr.splitlines() == [
        "error: exact_match is 0.5000, below 0.9",
        "wer is 2.0000, above 0.1",
        "cost is 4.0000, above 3.9",
    ]
    assert "composite is 2.0000, above 0.1" in score("--fail-over", "composite=0.1", config="asr.yaml", code=3).stderr


def test_a_part_declares_no_direction_and_accepts_both(folder):
    score("--fail-under", "wer.hits=0.3", "--fail-over", "wer.hits=0.4")  # 1 of 3 words
    assert "wer.hits is 0.3333, below 0.5" in score("--fail-under", "wer.hits=0.5", code=3).stderr
    assert "wer.hits is 0.3333, above 0.3" in score("--fail-over", "wer.hits=0.3", code=3).stderr
    done = score("--fail-over", "wer.hit=9", code=3)
    assert "wer.hit is unscored: wer has no part 'hit'. It has hits, substitutions," in done.stderr


def test_what_has_no_score_passes_no_gate(folder):
    (folder / "data.jsonl").write_text('{"id": "a", "generated_answer": "x"}\n')
    for gate in ("--fail-over wer=9", "--fail-under exact_match=0"):
        done = mmeval("score", "data.jsonl", "--metrics", "wer,exact_match", "--allow-empty", *gate.split(), code=3)
        name = gate.split()[1].partition("=")[0]
        assert f"{name} is unscored, and" in done.stderr
        assert "Commonest reason: no references" in done.stderr
    # Metrics that a task computes only for samples with references are not in these results.
    done = mmeval("score", "data.jsonl", "--task", "vqa", "--skip-unavailable", "--allow-empty", *gate.split(), code=3)
    assert "exact_match is unscored: the run did not compute it. It computed" in done.stderr


@pytest.mark.parametrize("gate", ["wer=nan", "wer=inf", "wer=-inf", "wer=", "wer", "=1", "nothing=1"])
def test_a_limit_that_means_nothing_is_wrong_usage(folder, gate):
    score("--fail-over", gate, code=2)
    score("--fail-under", gate, code=2)
    assert not (folder / "runs").exists()


def test_nothing_is_asked_before_a_gate_is_refused(folder):
    with offered(CountingModel()) as model:
        arguments = ("run", "data.jsonl", "--model", "counting:x", "--metrics", "wer", "--no-cache", "-o", "run")
        assert "use --fail-over wer=0.1" in mmeval(*arguments, "--fail-under", "wer=0.1", code=2).stderr
        assert not model.calls
    mmeval("score", "data.jsonl", "--metrics", "wer", "--no-report", "-o", "run")
    assert "use --fail-over" in mmeval("score", "--resume", "run", "--fail-under", "wer=0.1", code=2).stderr
    assert "above 0.1" in mmeval("score", "--resume", "run", "--fail-over", "wer=0.1", code=3).stderr


def test_every_command_with_a_floor_has_a_ceiling():
    def commands(command):
        yield command
        for each in command.commands.values() if isinstance(command, click.Group) else ():
            yield from commands(each)

    options = [{option.name for option in command.params} for command in commands(cli)]
    with_floor = [names for names in options if "fail_under" in names]
    assert len(with_floor) >= 8
    assert all({"fail_over", "min_coverage"} <= names for names in with_floor)


def test_coverage_that_is_nearly_enough(folder):
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, [*ROWS, {"id": "c", "references": ["x"]}])))
    arguments = ("score", "data.jsonl", "--metrics", "exact_match", "--no-report")
    done = mmeval(*arguments, "--min-coverage", "0.6667", code=3)
    assert "exact_match is scored for 0.66667 of the samples, below 0.6667" in done.stderr


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        (2.0, 0.1, "2.0000"),
        (0.09999, 0.1, "0.09999"),  # four digits would be 0.1000, which is not below 0.1
        (0.1 + 1e-17, 0.2, "0.1000"),
        (0.30000000000000004, 0.3, "0.30000000000000004"),
        (1e-20, 0.0, "1e-20"),
    ],
)
def test_as_many_digits_as_show_the_failure(value, limit, shown):
    assert number_beside(value, limit) == shown


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_the_printed_number_is_on_the_side_of_the_value(value, limit):
    printed = float(number_beside(value, limit))
    assert (printed < limit, printed > limit) == (value < limit, value > limit)


def test_worse_than_a_baseline_by_a_composite_that_is_a_lower_is_better_metric(folder):
    for name, answer in (("good", "one two"), ("bad", "three four")):
        rows = [{"id": str(i), "references": ["one two"], "generated_answer": answer} for i in range(12)]
        (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
        score("-o", name, config="asr.yaml")
    arguments = ("--metrics", "composite_score", "--fail-if-worse")
    mmeval("compare", "bad", "good", *arguments)
    assert (
        "bad is worse than good in composite_score: +1.0000"
        in mmeval("compare", "good", "bad", *arguments, code=3).stderr
    )


def test_a_comparison_that_cannot_fail_says_so(folder):
    score("-o", "old")
    score("-o", "new")
    done = mmeval("compare", "old", "new", "--metrics", "wer", "--fail-if-worse")
    assert re.search(r"^! --fail-if-worse cannot fail for wer: too few samples", done.stderr, re.MULTILINE)
