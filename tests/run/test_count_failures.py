"""Both conventions for failed answers: left out, or counted as the worst value."""

from __future__ import annotations

import pytest

from multimodal_eval import Run, compare_runs, evaluate, rescore
from multimodal_eval.core.errors import ConfigError
from tests.cli.command_line import mmeval

# 10 answers: 5 right, 1 wrong, 1 without an answer, 1 that failed, 1 with an error message, 1 without a reference.
SAMPLES = [
    *({"id": f"r{number}", "references": ["yes"], "generated_answer": "yes", "kind": "a"} for number in range(5)),
    {"id": "w", "references": ["yes"], "generated_answer": "no", "kind": "a"},
    {"id": "none", "references": ["yes"], "generated_answer": None, "kind": "b"},
    {"id": "failed", "references": ["yes"], "error": "time-out", "kind": "b"},
    {"id": "message", "references": ["yes"], "generated_answer": "[ERROR] 500", "kind": "a"},
    {"id": "gold", "generated_answer": "yes", "kind": "a"},
]
SETTINGS = {"metrics": ["exact_match", "bleu"], "progress": False, "skip_lint": True}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    left_out = evaluate(SAMPLES, output=folder / "left-out", by=["kind"], **SETTINGS)
    counted = evaluate(SAMPLES, output=folder / "counted", by=["kind"], count_failures="wrong", **SETTINGS)
    return left_out, counted


def test_the_score_with_the_failures_and_the_possible_scores_are_beside_the_score(runs):
    figure = runs[0].entries["exact_match"]
    assert (figure.value, figure.n_scored, figure.n_total, figure.failed) == (5 / 6, 6, 10, 3)
    assert figure.with_failures.value == 5 / 9  # the sample without a reference counts against nobody
    assert figure.with_failures.method == "95% Wilson interval, 9 samples"
    assert (figure.lowest, figure.highest) == (5 / 9, 8 / 9)
    assert figure.without_failures is None
    bleu = runs[0].entries["bleu"]
    assert (bleu.failed, bleu.lowest, bleu.highest) == (3, None, None)  # of a corpus score they are not known


def test_a_corpus_score_counts_failures_as_blank_answers(runs):
    answers = [{**sample, "error": None} for sample in SAMPLES[:9]]
    for sample in answers[6:]:
        sample["generated_answer"] = ""
    blank = evaluate(answers, metrics=["bleu"], progress=False)
    assert runs[0].entries["bleu"].with_failures.value == blank.entries["bleu"].value
    assert runs[1].entries["bleu"].value == blank.entries["bleu"].value


def test_failures_can_be_the_headline_and_keep_their_status(runs):
    left_out, counted = runs
    before, after = left_out.entries["exact_match"], counted.entries["exact_match"]
    assert (after.value, after.n_scored, after.unscored) == (5 / 9, 6, before.unscored)
    assert after.without_failures.bare == before.bare
    assert after.with_failures is None
    assert before.signed + "|failures:worst" == after.signed
    assert counted.entries["bleu"].signed.endswith("|failures:blank")
    assert counted.scores(["exact_match"]).equals(left_out.scores(["exact_match"]))  # no failure gets a score
    cut = counted.outcome.slices["kind"]["b"].metrics["exact_match"]
    assert (cut.value, cut.n_scored, cut.n_total) == (0.0, 0, 2)


def test_a_run_is_rescored_without_new_scores(runs, tmp_path):
    again = rescore(runs[0], {"count_failures": "wrong"}, output=tmp_path / "again", progress=False)
    assert again.entries == runs[1].entries
    assert Run(tmp_path / "again").outcome.slices == runs[1].outcome.slices


def test_comparisons_count_failures_as_the_runs_do(runs, tmp_path):
    with pytest.raises(ConfigError, match="failures is not set in left-out and 'worst' in counted"):
        compare_runs(runs)
    better = [{**sample, "error": None, "generated_answer": "yes"} for sample in SAMPLES]
    settings = {**SETTINGS, "count_failures": "wrong"}
    other = evaluate(better, output=tmp_path / "better", **settings)
    plain = evaluate([{**s, "kind": None} for s in SAMPLES], output=tmp_path / "plain", **settings)
    (metric, *_) = compare_runs([plain, other], metrics=["exact_match"], allow_partial=True, rounds=100).numbers
    assert metric.samples == 9
    assert metric.pairs[0].difference == pytest.approx(4 / 9)


def test_metrics_without_a_worst_value_are_refused_before_anything_is_scored(tmp_path):
    with pytest.raises(ConfigError, match=r"wer has no worst value .* choose other metrics than wer"):
        evaluate(SAMPLES, metrics=["exact_match", "wer"], count_failures="wrong", output=tmp_path / "no")
    assert not (tmp_path / "no").exists()
    entry = evaluate(SAMPLES, metrics=["wer"], progress=False).entries["wer"]
    assert (entry.with_failures, entry.highest) == (None, None)


def test_without_failures_nothing_is_added(runs):
    entry = evaluate(SAMPLES[:6], progress=False, metrics=["exact_match"]).entries["exact_match"]
    assert (entry.failed, entry.with_failures, entry.lowest) == (None, None, None)


def test_the_table_and_the_command(tmp_path, monkeypatch, runs):
    monkeypatch.chdir(tmp_path)
    out = mmeval("rescore", str(runs[0].folder.path), "--count-failures", "wrong", "-o", "new").stdout
    assert "6 + 3 / 10 scored" in out
    assert "3 left out; 0.556 … 0.889" in out
    assert "exact_match, 3 failed as wrong" in repr(runs[0])
    assert "3 as wrong; 0.556 … 0.889" in runs[0]._repr_html_()
