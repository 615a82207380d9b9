"""The commands that take the name of a benchmark: ls, card, score, crosswalk, run --suite."""

from __future__ import annotations

import json

import pytest

from multimodal_eval.benchmarks.recipes import recipe
from multimodal_eval.benchmarks.sample import write_sample
from multimodal_eval.benchmarks.suites import suite, suite_names
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.runs.run import Run
from tests.captured_call import captured_call


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """A folder with copies of the data of two benchmarks, as the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("mmmu-val", "blink-val"):
        write_sample(recipe(name), tmp_path / "data" / name)
    return tmp_path


def called(*words):
    call = captured_call(*words)
    return call.status, call.out.decode(), call.err.decode()


def test_ls_and_card():
    status, out, _ = called("ls", "benchmarks")
    assert status == 0
    assert "blink-val" in out
    assert "1,901" in out
    status, out, _ = called("card", "mmmu-val")
    assert status == 0
    for words in ("MMMU/MMMU, files */validation-*.parquet", "(D) dark yellow", "rule mmmu@2024/seed42", "330 of 900"):
        assert words in " ".join(out.split())


def test_answers_are_scored_and_read_under_the_rules_that_the_recipe_names(copies):
    answers = {
        "validation_Accounting_1": "The USA is in debt",  # lmms-eval reads A; the official rule draws it, too
        "validation_Accounting_2": "B",
        "validation_Art_1": "(C)",
        "validation_Electronics_1": "4.2 A",
        "validation_Physics_1": "0.5",
        "validation_Physics_2": "green light",
        "validation_Sociology_1": "C",
    }
    lines = (json.dumps({"id": name, "prediction": said}) for name, said in answers.items())
    (copies / "answers.jsonl").write_text("\n".join(lines))
    data = ("--data", "data/mmmu-val", "--allow-partial", "--no-report")
    status, out, err = called("score", "mmmu-val", "answers.jsonl", *data, "-o", "scored")
    assert status == 0, err
    assert out.startswith(
        "MMMU, validation (mmmu-val, version 1): verdicts equal those of the benchmark's authors. Its figure: 71.43 %\n"
    )
    assert Run(copies / "scored")["open_answer"]["value"] == pytest.approx(5 / 7)
    status, out, err = called("crosswalk", "mmmu-val", "answers.jsonl", *data, "-o", "rules", "--format", "json")
    assert status == 0, err
    scores = {name: figure.value for name, figure in Run(copies / "rules").entries.items()}
    assert scores == pytest.approx(
        {
            "mmmu@2024_seed42": 5 / 7,  # random.seed(42) draws A
            "mmmu@2024": 4 / 6,
            "lmms-eval@0_7_3_mmmu": 5 / 7,
            "mmeval@1": 3 / 7,  # not the question about green light, and not "USA"
        }
    )


def test_three_types_of_vsi_bench_are_one_task_of_its_mean(copies):
    write_sample(recipe("vsi-bench"), copies / "data" / "vsi-bench")
    # 9 of 10 objects: 0.9. Direction: (1 + 1 + 0) / 3.
    answers = {"1": "9", "2": "B", "3": "A.", "4": "left"}
    lines = (json.dumps({"id": name, "prediction": said}) for name, said in answers.items())
    (copies / "answers.jsonl").write_text("\n".join(lines))
    status, _, err = called(
        *("score", "vsi-bench", "answers.jsonl", "--data", "data/vsi-bench", "--no-report", "-o", "scored")
    )
    assert status == 0, err
    results = Run(copies / "scored")
    assert results["open_answer"]["value"] == pytest.approx((0.9 + 2 / 3) / 2)
    groups = {row.metadata["question_type"]: row.metadata["task_of_eight"] for row in results.samples()}
    assert groups["object_rel_direction_hard"] == "object_rel_direction"
    assert groups["object_counting"] == "object_counting"


def test_a_benchmark_whose_figure_is_a_part_of_the_metric(copies):
    """A table shows F1 for POPE and the sum of points for MME, not the share of right answers.

    The questions themselves are yes for POPE: once rightly, so that F1 is 2 / 3. For MME they are neither.
    """
    figures = {"pope-random": ("yes_no.f1", "0.6667"), "mme": ("yes_no.score", "0.0 points of 2800")}
    for name, (figure, shown) in figures.items():
        write_sample(recipe(name), copies / "data" / name)
        options = ("--data", f"data/{name}", "--model", "echo", "--allow-partial", "--no-report", "-o", f"all/{name}")
        status, out, err = called("run", name, *options)
        assert status == 0, err
        assert f"Its figure is {figure}: {shown}\n" in out
    table = json.loads(called("table", "all", "--format", "json")[1])
    assert [column["metric"] for column in table["columns"]] == ["yes_no.score", "yes_no.f1"]


def test_a_misspelt_name(copies):
    status, _, err = called("score", "mmmuval", "answers.jsonl")
    assert status == 1
    assert "mmmuval is neither a file nor a benchmark. Did you mean mmmu-val? All names: mmeval ls benchmarks" in err
    assert "no such file" in called("score", "nothing.jsonl")[2]


def test_a_suite_runs_every_benchmark_once(copies):
    command = ("run", "--suite", "multi-image", "--model", "echo", "--data", "data", "--allow-partial", "--no-report")
    status, out, err = called(*command, "-o", "all")
    assert status == 0, err
    assert out.endswith("2 of 2 benchmarks are in all. Compare: mmeval table all\n")
    assert {path.parent.name for path in (copies / "all").glob("*/run.json")} == {"mmmu-val", "blink-val"}
    status, out, err = called(*command, "-o", "all")
    assert (status, out) == (0, "2 of 2 benchmarks are in all. Compare: mmeval table all\n")
    table = called("table", "all")[1]
    assert "1 model, 2 tasks" in table
    assert "blink-val" in table
    assert err.count("already in all/") == 2


def test_a_benchmark_of_a_suite_that_fails_does_not_stop_the_others(copies):
    (copies / "data" / "mmmu-val").rename(copies / "elsewhere")
    command = ("run", "--suite", "multi-image", "--model", "echo", "--data", "data", "--allow-partial", "--no-report")
    status, out, err = called(*command, "-o", "all")
    assert status == 1
    assert out.endswith("1 of 2 benchmarks are in all. Compare: mmeval table all\n")
    assert "! failed: mmmu-val. The same command continues with them" in err


def test_suites_name_benchmarks_and_do_not_lead_back(tmp_path):
    for name in suite_names():
        assert suite(name)
    (tmp_path / "a.yaml").write_text("- blink-val\n- b.yaml\n")
    (tmp_path / "b.yaml").write_text("title: B\nbenchmarks: [multi-image, blink-val]\n")
    assert suite(tmp_path / "a.yaml") == ["blink-val", "mmmu-val"]
    (tmp_path / "b.yaml").write_text("[a.yaml]\n")
    with pytest.raises(ConfigError, match=r"`benchmarks` leads back to this suite: a.yaml -> b.yaml -> a.yaml"):
        suite(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("[../out.yaml]\n")
    with pytest.raises(ConfigError, match=r"`benchmarks\[0\]` must be in the folder of the suite"):
        suite(tmp_path / "b.yaml")
    (tmp_path / "b.yaml").write_text("[blnk-val]\n")
    with pytest.raises(ConfigError, match=r"neither a benchmark nor a suite: 'blnk-val'. Did you mean 'blink-val'"):
        suite(tmp_path / "b.yaml")
