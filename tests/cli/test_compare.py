"""`mmeval compare`, also with --vary-weights."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import pytest

from multimodal_eval import power
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
    out = mmeval("compare", "bad", "good", "-v").stdout
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
    assert "identical on 12 samples" in mmeval("compare", "good", "again", "--metrics", "rouge_l").stdout
    out = mmeval("compare", "bad", "good", "again", "--metrics", "rouge_l").stdout
    assert "for all pairs of runs together (max-T)" in out
    ranked = re.findall(r"^(\d(?: \(1 … 2\))?) +(good|again|bad) ", out, re.MULTILINE)
    assert set(ranked[:3]) == {("1 (1 … 2)", "good"), ("1 (1 … 2)", "again"), ("3", "bad")}


def test_wrong_usage(folder):
    assert "at least two" in mmeval("compare", "good", code=2).stderr
    assert "not a run folder" in mmeval("compare", "good", "nothing", code=1).stderr
    assert "Did you mean" in mmeval("compare", "good", "bad", "--metrics", "rouge", code=1).stderr
    assert "names no metric" in mmeval("compare", "good", "bad", "--metrics", ",", code=2).stderr
    for wrong in ("nan", "inf", "0", "-1", "1e-200", "x"):
        mmeval("compare", "good", "bad", "--effect", wrong, code=2)
        mmeval("compare", "good", "--vary-weights", "--concentration", wrong, code=2)
    mmeval("compare", "good", "--vary-weights", "--seed", "-1", code=2)


def test_sensitivity(folder):
    out = mmeval("compare", "good", "bad", "--vary-weights").stdout
    assert "effective weight" in out
    assert "good and bad swap ranks in 0.0% of the draws" in out
    result = json.loads(mmeval("compare", "good", "--vary-weights", "--format", "json").stdout)
    assert result["weights"] == {"rouge_l": 0.5, "cider": 0.5}


def test_a_metric_option_on_the_command_line(folder):
    out = mmeval("score", "good.jsonl", "--metrics", "meteor", "--option", "meteor.variant=2005", "-v").stdout
    assert "meteor|v:1|variant:2005|" in out
    wrong = mmeval("score", "good.jsonl", "--metrics", "meteor", "--option", "meteor=2005", code=2)
    assert "METRIC.OPTION=VALUE" in wrong.stderr


def test_a_preset_names_the_metrics_it_omits(folder):
    out = mmeval("score", "good.jsonl", "--metrics", "coco").stdout
    assert "coco without meteor" in out
    assert "mmeval fetch meteor-1.5-en" in " ".join(mmeval("ls", "metrics").stdout.split())


def test_a_preset_checks_its_metrics_with_their_options(folder):
    out = mmeval("score", "good.jsonl", "--metrics", "coco", "--option", "meteor.variant=fmean", "-v").stdout
    assert "meteor|v:1|variant:fmean" in out
    assert "without meteor" not in out
    heading = next(line for line in out.splitlines() if "Bleu_4" in line)
    assert "METEOR" not in heading  # coco-caption prints another variant


def test_slices_margin_and_simpsons_paradox(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Treatment b is worse on easy and on hard samples, but it is asked more easy ones: all samples are the same in both
    # runs, so that the paradox needs an unweighted majority of small slices.
    kinds = ["easy"] * 40 + ["hard"] * 8 + ["odd"] * 8
    for name, wrong in (("a", {"easy": 9, "hard": 1, "odd": 1}), ("b", {"easy": 0, "hard": 2, "odd": 2})):
        seen, rows = dict.fromkeys(wrong, 0), []
        for index, kind in enumerate(kinds):
            seen[kind] += 1
            answer = "no" if seen[kind] <= wrong[kind] else "yes"
            rows.append({"id": str(index), "references": ["yes"], "generated_answer": answer, "kind": kind})
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        mmeval("score", f"{name}.jsonl", "--metrics", "exact_match", "-o", name)
    done = mmeval("compare", "a", "b", "--by", "kind", "--margin", "0.5")
    assert "exact_match by kind: b - a, for all slices together" in done.stdout
    assert "2 of 3 slices have the opposite sign (Simpson's paradox)" in done.stdout.replace("\n", " ")
    assert "the difference is shown to be smaller than the margin" in done.stdout
    result = json.loads(mmeval("compare", "a", "b", "--by", "kind", "--format", "json").stdout)
    (sliced,) = result["slices"]
    assert [(each["value"], each["samples"]) for each in sliced["slices"]] == [("easy", 40), ("hard", 8), ("odd", 8)]
    assert sliced["slices"][0]["difference"] == pytest.approx(9 / 40)
    # 9:0 has z = 3, p = .0027; corrected for three slices, .0081
    assert sliced["slices"][0]["p_value"] == pytest.approx(3 * 0.0026998, rel=1e-3)
    assert "no column of the samples is named 'kin'" in mmeval("compare", "a", "b", "--by", "kin", code=1).stderr


def test_a_gate_on_the_end_of_an_interval(folder):
    mmeval("score", "good.jsonl", "--metrics", "exact_match", "-o", "g1", "--fail-under", "exact_match=0.0")
    done = mmeval("score", "good.jsonl", "--metrics", "rouge_l", "-o", "g2", "--fail-under", "rouge_l.low=0.99", code=3)
    assert "rouge_l.low is " in done.stderr
    mmeval("score", "good.jsonl", "--metrics", "rouge_l", "-o", "g3", "--fail-under", "rouge_l.low=0.1")
    wrong = mmeval("score", "good.jsonl", "--metrics", "rouge_l", "-o", "g4", "--fail-over", "rouge_l.low=0.1", code=2)
    assert "higher-is-better" in wrong.stderr


def test_power(folder):
    out = mmeval("power", "--rates", "0.70,0.74", "--effect", "0.04").stdout
    # psi = 2 * .7 * .26 + .04: n = (1.959964 sqrt(psi) + .841621 sqrt(psi - .0016))^2 / .0016 = 1,980
    assert "1,980 samples detect a difference of 0.04 with 80% probability" in out
    result = json.loads(mmeval("power", "--sd", "0.3", "--samples", "500", "--format", "json").stdout)
    assert [point["samples"] for point in result["points"]] == [125, 250, 500, 1000, 2000]
    # (1.9647 + .8426) * .3 / sqrt(500)
    assert result["points"][2]["detectable"] == pytest.approx(0.03766, abs=2e-5)
    rows = [(folder / f"{name}.jsonl").read_text().splitlines() for name in ("good", "bad")]
    (folder / "mixed.jsonl").write_text("\n".join([*rows[0][:6], *rows[1][6:]]))
    mmeval("score", "mixed.jsonl", "--config", "task.yaml", "-o", "mixed")
    pilot = ["power", "mixed", "good", "--metrics", "rouge_l", "--effect", "0.1", "--format", "json"]
    spread = json.loads(mmeval(*pilot).stdout)["spread"]
    assert asdict(power("mixed", "good", metric="rouge_l", effect=0.1).spread) == spread
    groups = power(sd=0.3, samples=500, group_size=5, group_correlation=0.4)
    grouped = ["power", "--sd", "0.3", "--samples", "500", "--group-size", "5", "--group-correlation", "0.4"]
    assert list(groups.to_dict()["points"]) == json.loads(mmeval(*grouped, "--format", "json").stdout)["points"]
    # 500 samples with the design effect 1 + 4 * .4 are worth 192.3: (1.9724 + .8434) * .3 / sqrt(192.3)
    assert groups.points[2].detectable == pytest.approx(0.06092, abs=1e-4)
    assert spread["source"] == "rouge_l of mixed and good, 12 samples"
    # six differences of 0 and six of d: s = d sqrt(12 / 11) / 2, d being the ROUGE-L of a good answer
    good = json.loads((folder / "good" / "results.json").read_text())["metrics"]["rouge_l"]["value"]
    assert spread["deviation"] == pytest.approx(good * (12 / 11) ** 0.5 / 2)
    equal = mmeval("power", "bad", "good", "--effect", "0.1", code=1).stderr
    assert "all differences of the pilot runs are equal" in equal
    assert "name two pilot runs" in mmeval("power", "--effect", "0.1", code=2).stderr
    assert "name --effect" in mmeval("power", "--sd", "1", code=2).stderr


@pytest.fixture
def two_rules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = ["red", "Red", "it is blue", "green"]
    rows = [
        {"id": str(n), "references": [text.split()[-1].lower()], "generated_answer": text}
        for n, text in enumerate(texts)
    ]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name, rule in (("strict", "none@1"), ("lower", "lower@1")):
        option = f"exact_match.rule={rule}"
        mmeval("score", "answers.jsonl", "--metrics", "exact_match", "--option", option, "-o", name)
    return tmp_path


def test_why_two_numbers_differ(two_rules):
    out = mmeval("compare", "--why", "strict", "lower").stdout
    expected = "lower is 25.00 points above strict: +25.00 from reading: rule none@1 → lower@1 (1 sample, certain)"
    assert out.splitlines()[0] == expected
    assert "exactly the difference" in out
    result = json.loads(mmeval("compare", "--why", "strict", "lower", "--format", "json").stdout)
    assert (result["exact_difference"], result["sum_error"], result["settled"]) == ("25", "0", 1.0)
    (part,) = (part for part in result["parts"] if part["value"])
    assert (part["name"], part["exact"], part["ids"], part["confidence"]) == ("reading", "25", ["1"], "certain")
    markdown = mmeval("compare", "--why", "strict", "lower", "--format", "markdown").stdout
    assert "| reading | rule none@1 → lower@1 | \\+25.00 |" in markdown
    assert "<details><summary>moved by reading</summary>" in markdown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["strict"], "--why explains the difference of two numbers. Got 1"),
        (["strict", "lower", "--margin", "0.1"], "--margin has no effect with --why"),
    ],
)
def test_wrong_use_of_why(two_rules, arguments, message):
    assert message in mmeval("compare", "--why", *arguments, code=2).stderr
