"""`mmeval clarity`: the scores of the two tasks as runs, with agreement, ceiling and consensus."""

from __future__ import annotations

import json
import re

import krippendorff
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix, f1_score

from multimodal_eval import load_run, resume
from multimodal_eval.contests.clarity.contest import prepare, score_tasks
from multimodal_eval.contests.clarity.labels import CLARITY_LABELS, EVASION_LABELS, EVASION_TO_CLARITY
from multimodal_eval.contests.clarity.scores import evaluate_all, majority_vote_gold
from tests.cli.clarity import DEV, OPINIONS, TEST, copy_data, predicted, scored
from tests.cli.command_line import mmeval
from tests.contests.clarity.make_data import ANNOTATORS, OUTSIDE
from tests.parts import interrupt


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return copy_data(tmp_path, monkeypatch)


# scores


def test_without_annotators_strict_is_official_and_agrees_with_scikit_learn(folder):
    results = scored("dev.csv", "alba.dev.csv", "--task", "evasion", "-o", "run")["evasion"]
    gold, labels = [row["evasion_label"] for row in DEV], predicted("alba.dev.csv")
    report = results["classification"]
    assert report["official"] == "strict"
    strict = report["scores"]["strict"]
    expected = f1_score(gold, labels, labels=EVASION_LABELS, average="macro", zero_division=0)
    assert strict["macro_f1"]["value"] == pytest.approx(expected)
    assert strict["accuracy"]["value"] == pytest.approx(accuracy_score(gold, labels))
    assert strict["confusion_matrix"] == confusion_matrix(gold, labels, labels=EVASION_LABELS).tolist()
    assert list(results["metrics"]) == ["f1_strict"]
    assert results["composite"]["value"] == results["metrics"]["f1_strict"]["value"] == strict["macro_f1"]["value"]


def test_with_annotators_any_match_is_official_and_the_other_scores_are_reported(folder):
    both = scored("test.csv", "alba.csv", "-o", "run")
    assert list(both) == ["clarity", "evasion"]
    report = both["evasion"]["classification"]
    assert report["official"] == "any_match"
    evasion = predicted("alba.csv")
    clarity = predicted("alba.csv", "clarity_pred")
    clarity_gold = [row["clarity_label"] for row in TEST]
    expected = evaluate_all(evasion, clarity, None, clarity_gold, OPINIONS)
    for name, key in (("any_match", "task2_evasion_multiannotator"), ("majority", "task2_evasion_majority_vote")):
        assert report["scores"][name]["macro_f1"]["value"] == pytest.approx(expected[key]["macro_f1"])
        assert report["scores"][name]["accuracy"]["value"] == pytest.approx(expected[key]["accuracy"])
        assert report["scores"][name]["n_skipped"] == expected[key]["n_skipped"] == 2
    clarity_report = both["clarity"]["classification"]
    assert clarity_report["official"] == "strict"
    assert clarity_report["scores"]["strict"]["macro_f1"]["value"] == pytest.approx(
        expected["task1_clarity"]["macro_f1"]
    )
    # soft, by hand: the share of valid labels that equal the predicted one
    shares = [
        sum(label == prediction for label in labels) / len(labels)
        for prediction, opinions in zip(evasion, OPINIONS, strict=True)
        if (labels := [label for label in opinions if label in EVASION_LABELS])
    ]
    assert report["soft"]["value"] == pytest.approx(np.mean(shares))
    assert report["soft"]["n_scored"] == len(shares) == 94
    assert report["scores"]["any_match_all"]["macro_f1"]["value"] < report["scores"]["any_match"]["macro_f1"]["value"]


def test_the_run_and_the_tables_have_the_same_scores(folder):
    both = scored("test.csv", "boreas.csv", "-o", "run", "--group", "interview")
    names = {"strict": "f1_strict", "any_match": "f1_any_match", "majority": "f1_majority"}
    for task in ("clarity", "evasion"):
        report, metrics = both[task]["classification"], both[task]["metrics"]
        for name, metric in names.items():
            figure = report["scores"][name]["macro_f1"]
            for key in ("value", "stderr", "low", "high") if figure else ():
                expected = metrics[metric][key]
                assert figure[key] == (expected and pytest.approx(expected, rel=1e-12)), (task, name, key)
        for key in ("value", "stderr", "low", "high"):
            assert report["soft"][key] == pytest.approx(metrics["soft_score"][key], rel=1e-12)
        assert "24 clusters" in report["scores"]["any_match"]["accuracy"]["method"]


def test_agreement_agrees_with_reference_implementations(folder):
    report = scored("test.csv", "alba.csv", "--task", "evasion", "-o", "run")["evasion"]["classification"]
    table = np.array(
        [[EVASION_LABELS.index(x) if x in EVASION_LABELS else np.nan for x in row] for row in OPINIONS], dtype=float
    )
    figures = {figure["name"]: figure["value"] for figure in report["agreement"]["figures"]}
    expected = krippendorff.alpha(reliability_data=table.T, level_of_measurement="nominal")
    assert figures["Krippendorff's alpha (nominal)"] == pytest.approx(expected)
    for pair in report["agreement"]["pairs"]:
        left, right = (table[:, ANNOTATORS.index(name)] for name in pair["annotators"])
        shared = ~np.isnan(left) & ~np.isnan(right)
        assert pair["kappa"]["value"] == pytest.approx(cohen_kappa_score(left[shared], right[shared]))
        assert pair["kappa"]["low"] < pair["kappa"]["value"] < pair["kappa"]["high"]


def test_the_ceiling_scores_each_annotator_against_the_others(folder):
    report = scored("test.csv", "alba.csv", "--task", "evasion", "-o", "run")["evasion"]["classification"]
    ceiling = report["human_ceiling"]
    accuracies = []
    for place, name in enumerate(ANNOTATORS):
        correct = [
            row[place] in others
            for row in OPINIONS
            if row[place] in EVASION_LABELS
            and (others := {x for i, x in enumerate(row) if i != place and x in EVASION_LABELS})
        ]
        assert ceiling["by_annotator"][name]["accuracy"]["value"] == pytest.approx(np.mean(correct))
        assert ceiling["by_annotator"][name]["n_scored"] == len(correct)
        accuracies.append(np.mean(correct))
    assert ceiling["accuracy"]["value"] == pytest.approx(np.mean(accuracies))


def test_the_consensus_lists_the_rows_in_which_vote_and_model_differ(folder):
    report = scored("test.csv", "alba.csv", "--task", "evasion", "-o", "run")["evasion"]["classification"]
    vote = dict(zip([row["index"] for row in TEST], majority_vote_gold(OPINIONS), strict=True))
    assert report["consensus"]
    assert len(report["consensus"]) == report["agreement"]["consensus"]["differs_from_majority"]
    for row in report["consensus"]:
        assert row["majority"] == vote[row["id"]] != row["dawid_skene"]
        assert row["probability"] > row["probability_of_majority"]


def test_clarity_is_derived_from_evasion_if_it_is_not_predicted(folder):
    results = scored("test.csv", "alba.evasion.zip", "-o", "run")
    derived = [EVASION_TO_CLARITY[label] for label in predicted("alba.csv")]
    gold = [row["clarity_label"] for row in TEST]
    expected = f1_score(gold, derived, labels=CLARITY_LABELS, average="macro", zero_division=0)
    assert results["clarity"]["composite"]["value"] == pytest.approx(expected)
    assert any("derived from the evasion predictions" in note for note in results["clarity"]["classification"]["notes"])


def test_table_and_zip_score_the_same(folder):
    table = scored("test.csv", "boreas.csv", "--task", "evasion", "-o", "a")["evasion"]
    zipped = scored("test.csv", "boreas.evasion.zip", "--task", "evasion", "-o", "b")["evasion"]
    assert table["metrics"] == zipped["metrics"]
    assert table["classification"]["scores"] == zipped["classification"]["scores"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_the_format_of_the_data_does_not_matter(folder, suffix):
    content = [{key: value or None for key, value in row.items()} | {"index": int(row["index"])} for row in TEST]
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(content), "data.parquet")
    else:
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in content))
    results = scored(f"data.{suffix}", "alba.csv", "-o", "a")
    plain = scored("test.csv", "alba.csv", "-o", "b")
    for task in ("clarity", "evasion"):
        assert results[task]["metrics"] == plain[task]["metrics"]


def test_the_order_of_the_predictions_does_not_matter(folder):
    lines = (folder / "alba.csv").read_text().splitlines()
    (folder / "turned.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    plain, turned = (scored("test.csv", name, "-o", name[:-4])["evasion"] for name in ("alba.csv", "turned.csv"))
    assert plain["metrics"] == turned["metrics"]


# runs


def test_a_sample_has_the_labels_in_the_taxonomys_spelling(folder):
    mmeval("clarity", "test.csv", "alba.csv", "-o", "run", "--group", "interview")
    samples = {sample.id: sample for sample in load_run("run/evasion").samples()}
    odd = samples["1011"]
    assert odd.annotations == {
        "annotator1": "Partial/half-answer",
        "annotator2": "Partial/half-answer",
        "annotator3": OUTSIDE,
    }
    assert odd.expected_answer is None
    assert odd.group == "interview-03"
    assert set(odd.metadata) == {"interview_question", "interview_answer"}
    assert {sample.expected_answer for sample in load_run("run/clarity").samples()} == set(CLARITY_LABELS)
    info = load_run("run/evasion").info
    assert [file.path for file in info.input] == ["test.csv", "alba.csv"]
    assert all(len(file.sha256) == 64 for file in info.input)


def test_runs_are_listed_compared_and_rescored(folder):
    for name in ("alba", "boreas"):
        mmeval("clarity", "test.csv", f"{name}.csv", "-o", name, "--group", "interview")
    assert re.search(r"evasion +composite_score +evasion +done +0\.\d{4}", mmeval("ls", "runs", "alba").stdout)
    out = mmeval("compare", "alba/evasion", "boreas/evasion", "--allow-partial", "--format", "json").stdout
    numbers = {number["name"]: number for number in json.loads(out)["numbers"]}
    assert set(numbers) == {"f1_any_match", "f1_majority", "soft_score", "composite_score"}
    assert numbers["f1_any_match"]["pairs"][0]["difference"] < 0
    mmeval("compare", "alba/clarity", "boreas/clarity", "--metrics", "f1_strict")
    (folder / "new.yaml").write_text("options: {f1_any_match: {charge: all}}\n")
    mmeval("rescore", "alba/evasion", "--config", "new.yaml", "-o", "again")
    report = load_run("alba/evasion").folder.read_classification()
    assert report is not None
    again = load_run("again")["f1_any_match"]
    assert again["value"] == pytest.approx(report["scores"]["any_match_all"]["macro_f1"]["value"])
    assert again["low"] == pytest.approx(report["scores"]["any_match_all"]["macro_f1"]["low"])


def test_runs_against_other_annotators_are_not_compared(folder):
    text = (folder / "test.csv").read_text()
    (folder / "other.csv").write_text(text.replace("Dodging,Dodging,Dodging", "Dodging,Dodging,Explicit"))
    mmeval("clarity", "test.csv", "alba.csv", "--task", "evasion", "-o", "a")
    mmeval("clarity", "other.csv", "alba.csv", "--task", "evasion", "-o", "b")
    message = mmeval("compare", "a", "b", "--allow-partial", code=1).stderr
    assert "8 samples with different questions, references or annotations in b than in a" in message


def test_a_single_task_needs_no_subfolder_and_the_default_is_below_runs(folder):
    mmeval("clarity", "test.csv", "alba.csv", "--task", "evasion", "-o", "run")
    assert (folder / "run" / "classification.json").is_file()
    mmeval("clarity", "test.csv", "alba.csv")
    assert sorted(path.name for path in (folder / "runs").iterdir()) == ["alba-clarity", "alba-evasion"]


def test_nothing_is_written_if_one_of_the_folders_exists(folder):
    (folder / "run" / "evasion").mkdir(parents=True)
    (folder / "run" / "evasion" / "file").touch()
    assert "already exists" in mmeval("clarity", "test.csv", "alba.csv", "-o", "run", code=1).stderr
    assert not (folder / "run" / "clarity").exists()


@pytest.mark.parametrize("name", ["Annotator1", "annotator_1", "ANNOTATOR 1"])
def test_spellings_of_annotator_columns(folder, name):
    (folder / "d.csv").write_text(f"index,evasion_label,{name}\n1,Explicit,General\n2,General,General\n")
    (folder / "p.csv").write_text("id,evasion_pred\n1,General\n2,General\n")
    report = scored("d.csv", "p.csv", "--task", "evasion", "-o", "run")["evasion"]["classification"]
    assert report["official"] == "any_match"


def test_an_error_message_counts_as_wrong_and_the_runs_stay_comparable(folder):
    (folder / "d.csv").write_text("index,evasion_label\n1,Explicit\n2,General\n3,Dodging\n")
    for name, label in (("a", "General"), ("b", "[ERROR] x")):
        (folder / f"{name}.csv").write_text(f"id,evasion_pred\n1,{label}\n2,General\n3,Dodging\n")
        mmeval(
            "clarity", "d.csv", f"{name}.csv", "--task", "evasion", "--unknown-labels", "wrong", "-o", f"runs/{name}"
        )
    assert load_run(folder / "runs" / "b")["f1_strict"]["n_scored"] == 3
    mmeval("compare", "runs/a", "runs/b")


def test_runs_of_two_tasks_are_listed(folder):
    mmeval("clarity", "test.csv", "alba.csv", "-o", "runs/alba")
    listed = mmeval("ls", "runs").stdout
    assert "alba/clarity" in listed
    assert "alba/evasion" in listed


def test_a_killed_run_has_its_tables_when_it_is_resumed(folder, monkeypatch):
    whole = scored("dev.csv", "alba.dev.csv", "--task", "evasion", "-o", "whole")["evasion"]["classification"]
    prepared = prepare("dev.csv", "alba.dev.csv", task="evasion")
    with monkeypatch.context() as patch:
        interrupt(patch, "Score")
        with pytest.raises(KeyboardInterrupt):
            score_tasks(prepared, folder / "broken")
    resumed = resume(folder / "broken")
    assert resumed.folder.read_classification() == whole
    assert resumed["f1_strict"] == load_run(folder / "whole")["f1_strict"]


# output


def test_the_tables_fit_into_100_columns(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    out = mmeval("clarity", "test.csv", "boreas.csv", "-o", "run", "-v").stdout
    assert max(len(line.rstrip()) for line in out.splitlines() if re.search(r"\d  |─", line)) <= 100
    assert out.count("★ there are annotations: any-match is the official score") == 1
    assert out.count("★ the official score of the task is strict, against the gold label") == 1
    for text in (
        "any-match ★",
        "majority vote",
        "Dawid-Skene labels",
        "soft: share of annotators",
        "human ceiling, any-match",
        "Krippendorff's alpha (nominal)",
        "Cohen's kappa, annotator1 and annotator2",
        "! 2 annotations are outside the taxonomy and left out: '2.5 Contradictory' (2)",
        "! 2 of 96 rows have no gold label and are skipped",
        "! strict: no row has a gold label of the taxonomy",
        "! fewer than 10 gold examples",
        "f1_any_match|v:1|labels:9@",
        "run folder: run/evasion",
    ):
        assert text in out, text


def test_without_annotators_their_scores_are_not_shown(folder):
    out = mmeval("clarity", "dev.csv", "alba.dev.csv", "-o", "run").stdout
    assert out.count("★ no annotation is a label of the taxonomy: strict is the official score") == 2
    for text in ("any-match", "soft", "Krippendorff", "Dawid-Skene"):
        assert text not in out


def test_help_shows_both_usages(folder):
    out = mmeval("clarity", "--help").stdout
    assert "clarity DATA PREDICTIONS" in out
    assert "clarity check-submission FILE" in out
    assert "--unknown-labels" in out
    assert mmeval("clarity", "score", "dev.csv", "alba.dev.csv", "-o", "a").stdout
    assert mmeval("clarity", "--task", "evasion", "dev.csv", "alba.dev.csv", "-o", "b").stdout
