"""`mmeval compare` and `mmeval sensitivity`."""

from __future__ import annotations

import json

import pytest

from tests.cli.command_line import mmeval

RUNS = {"good": "a red dog number {} runs on the beach", "bad": "some cats sleep"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.yaml").write_text(
        "task: mine\ntasks:\n  mine: {metrics: [rouge_l, cider], weights: {rouge_l: 0.5, cider: 0.5}}\n"
    )
    for name, answer in RUNS.items():
        rows = [
            {"id": str(i), "references": [f"a red dog number {i} runs"], "generated_answer": answer.format(i)}
            for i in range(12)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        mmeval("score", f"{name}.jsonl", "--config", "task.yaml", "-o", name)
    return tmp_path


def test_compare_shows_the_difference(folder):
    out = mmeval("compare", "bad", "good").stdout
    assert "A = bad, B = good, 12 samples" in out
    assert "▲" in out
    assert "12 / 0 / 0" in out
    assert "10,000 rounds, seed 0" in out


def test_compare_as_json(folder):
    result = json.loads(mmeval("compare", "bad", "good", "--format", "json", "--metrics", "composite").stdout)
    (number,) = result["numbers"]
    assert number["name"] == "composite_score"
    assert number["pairs"][0]["verdict"] == "better"
    assert number["signature"].startswith("composite_score|")


def test_fail_if_worse(folder):
    mmeval("compare", "bad", "good", "--fail-if-worse")
    done = mmeval("compare", "good", "bad", "--fail-if-worse", code=3)
    assert "bad is worse than good in rouge_l" in done.stderr


def test_several_runs_get_a_ranking(folder):
    mmeval("score", "good.jsonl", "--config", "task.yaml", "-o", "again")
    out = mmeval("compare", "bad", "good", "again", "--metrics", "rouge_l").stdout
    assert "p (Holm)" in out
    rows = [[cell.strip() for cell in line.split("│")] for line in out.splitlines() if line.startswith("│")]
    assert {(row[2], row[1]) for row in rows[:3]} == {("good", "1"), ("again", "1"), ("bad", "3")}


def test_wrong_usage(folder):
    assert "at least two" in mmeval("compare", "good", code=2).stderr
    assert "not a run folder" in mmeval("compare", "good", "nothing", code=1).stderr
    assert "Did you mean" in mmeval("compare", "good", "bad", "--metrics", "rouge", code=1).stderr
    assert "names no metric" in mmeval("compare", "good", "bad", "--metrics", ",", code=2).stderr
    for wrong in ("nan", "inf", "0", "-1", "1e-200", "x"):
        mmeval("compare", "good", "bad", "--effect", wrong, code=2)
        mmeval("sensitivity", "good", "--concentration", wrong, code=2)
    mmeval("sensitivity", "good", "--seed", "-1", code=2)


def test_sensitivity(folder):
    out = mmeval("sensitivity", "good", "bad").stdout
    assert "effective weight" in out
    assert "good and bad swap ranks in 0.0% of the draws" in out
    result = json.loads(mmeval("sensitivity", "good", "--format", "json").stdout)
    assert result["weights"] == {"rouge_l": 0.5, "cider": 0.5}


def test_a_metric_option_on_the_command_line(folder):
    out = mmeval("score", "good.jsonl", "--metrics", "meteor", "--option", "meteor.variant=2005").stdout
    assert "meteor|v:1|variant:2005|" in out
    wrong = mmeval("score", "good.jsonl", "--metrics", "meteor", "--option", "meteor=2005", code=2)
    assert "METRIC.OPTION=VALUE" in wrong.stderr


def test_a_preset_names_the_metrics_it_omits(folder):
    out = mmeval("score", "good.jsonl", "--metrics", "coco").stdout
    assert "coco without meteor, which could not run here" in out
    assert "mmeval fetch meteor-1.5-en" in " ".join(mmeval("ls", "metrics").stdout.replace("│", " ").split())


def test_a_preset_checks_its_metrics_with_their_options(folder):
    out = mmeval("score", "good.jsonl", "--metrics", "coco", "--option", "meteor.variant=fmean").stdout
    assert "meteor|v:1|variant:fmean" in out
    assert "without meteor" not in out
    heading = next(line for line in out.splitlines() if "Bleu_4" in line)
    assert "METEOR" not in heading  # coco-caption prints another variant
