"""`mmeval clarity`: refused input and exit codes."""

from __future__ import annotations

import json
import re
import zipfile

import pytest

from multimodal_eval import load_run
from tests.cli.clarity import copy_data, predicted, scored
from tests.cli.command_line import mmeval


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return copy_data(tmp_path, monkeypatch)


# refused input


def test_an_unknown_label_is_refused_or_wrong(folder):
    text = (folder / "alba.csv").read_text().replace("1001,Clear Reply,Explicit", "1001,Clear Reply,Explicitly")
    text = text.replace("1002,Ambivalent Reply,Dodging", "1002,Ambivalent Reply,[ERROR] timeout")
    (folder / "odd.csv").write_text(text)
    message = mmeval("clarity", "test.csv", "odd.csv", "-o", "run", code=1).stderr
    assert (
        "odd.csv:2: UNKNOWN_LABEL: `evasion_pred` is 'Explicitly', which is not a label of the task evasion." in message
    )
    assert "Did you mean 'Explicit'? To count it as wrong: --unknown-labels wrong." in message
    assert not (folder / "run").exists()
    results = scored("test.csv", "odd.csv", "-o", "run", "--unknown-labels", "wrong")["evasion"]
    correct = scored("test.csv", "alba.csv", "-o", "fine")["evasion"]
    assert results["metrics"]["f1_any_match"]["n_scored"] == correct["metrics"]["f1_any_match"]["n_scored"] == 94
    report = results["classification"]
    assert report["outside_taxonomy"]["predictions"] == {"Explicitly": 1, "[ERROR] timeout": 1}
    scores = report["scores"]["any_match"]
    assert scores["macro_f1"]["value"] == pytest.approx(results["metrics"]["f1_any_match"]["value"])
    # both rows were correct and no longer are
    before = correct["classification"]["scores"]["any_match"]["accuracy"]["value"]
    assert scores["accuracy"]["value"] == pytest.approx(before - 2 / 94)
    out = mmeval("clarity", "test.csv", "odd.csv", "-o", "shown", "--unknown-labels", "wrong", "-v").stdout
    assert "2 predictions are not labels of the task and count as wrong: 'Explicitly' (1), '[ERROR] timeout' (1)" in out
    assert "none" in out  # their column in the confusion matrix


def test_blank_predictions_can_count_as_wrong(folder):
    with zipfile.ZipFile("blank.zip", "w") as archive:
        archive.writestr("prediction", "\n".join(["", *predicted("alba.csv")[1:]]) + "\n")
    assert "blank.zip/prediction:1: EMPTY_LABEL" in mmeval("clarity", "test.csv", "blank.zip", code=1).stderr
    report = scored("test.csv", "blank.zip", "-o", "run", "--unknown-labels", "wrong")["evasion"]["classification"]
    assert report["blank_predictions"] == 1
    assert report["scores"]["any_match"]["n_scored"] == 94


def test_files_without_the_requested_task(folder):
    mmeval("clarity", "test.csv", "alba.clarity.zip", "-o", "run")
    message = mmeval("clarity", "test.csv", "alba.clarity.zip", "--task", "both", code=1).stderr
    assert "NO_PREDICTION: no label of the task evasion is predicted. The file has clarity labels." in message
    text = (folder / "dev.csv").read_text()
    (folder / "bare.csv").write_text(re.sub(r",(?:Clear|Ambivalent)[^,]*Reply,[^,\n]*,,,$", ",,,,,", text, flags=re.M))
    message = mmeval("clarity", "bare.csv", "alba.dev.csv", code=1).stderr
    for task in ("clarity", "evasion"):
        assert f"NO_GOLD: no row has a label of the task {task}" in message


def test_a_task_without_gold_labels_is_skipped_unless_requested(folder):
    (folder / "half.csv").write_text((folder / "dev.csv").read_text().replace("evasion_label", "elsewhere"))
    assert list(scored("half.csv", "alba.dev.csv", "-o", "run")) == ["clarity"]
    assert "NO_GOLD" in mmeval("clarity", "half.csv", "alba.dev.csv", "--task", "both", code=1).stderr


def test_a_group_that_is_not_a_column(folder):
    message = mmeval("clarity", "test.csv", "alba.csv", "--group", "intervew", code=1).stderr
    assert "UNKNOWN_COLUMN: no column is named 'intervew'. Did you mean 'interview'?" in message


def test_a_data_file_is_checked_too(folder):
    (folder / "twice.csv").write_text(
        (folder / "dev.csv").read_text() + (folder / "dev.csv").read_text().splitlines()[1]
    )
    assert "DUPLICATE" in mmeval("clarity", "twice.csv", "alba.dev.csv", code=1).stderr
    (folder / "typed.jsonl").write_text('{"index": 1, "evasion_label": 3}\n')
    (folder / "p.csv").write_text("id,evasion_pred\n1,Explicit\n")
    assert (
        "TYPE: `evasion_label` must be a label. Got 3 instead."
        in mmeval("clarity", "typed.jsonl", "p.csv", code=1).stderr
    )


def test_annotators_without_shared_rows_have_no_ceiling_and_no_agreement(folder):
    (folder / "apart.jsonl").write_text(
        '{"index": 1, "annotator2": "Explicit"}\n{"index": 2, "annotator10": "Dodging"}\n'
        '{"index": 3, "evasion_label": "General"}\n'
    )
    (folder / "p.csv").write_text("id,evasion_pred\n1,Explicit\n2,General\n3,General\n")
    out = mmeval("clarity", "apart.jsonl", "p.csv", "-o", "run").stdout
    assert "human ceiling" not in out
    assert "Krippendorff's alpha (nominal): no unit has two ratings" in out
    report = load_run("run").folder.read_classification()
    assert report is not None
    assert report["human_ceiling"] is None
    assert report["scores"]["any_match"]["accuracy"]["value"] == 0.5
    assert report["scores"]["strict"]["accuracy"]["value"] == 1.0
    assert list(report["consensus"]) == []
    assert next(sample.annotations for sample in load_run("run").samples()) == {
        "annotator2": "Explicit",
        "annotator10": None,
    }


def test_one_annotator_is_enough(folder):
    (folder / "one.csv").write_text("index,annotator1\n1,Explicit\n2,Dodging\n")
    (folder / "p.csv").write_text("id,evasion_pred\n1,Explicit\n2,General\n")
    out = mmeval("clarity", "one.csv", "p.csv", "-o", "run").stdout
    assert "any-match ★" in out
    assert "annotator agreement" not in out


def test_refused_rows_are_not_reported_as_missing_too(folder):
    lines = (folder / "dev.csv").read_text().splitlines()
    (folder / "torn.csv").write_text("\n".join([*lines[:5], "77", *lines[6:]]) + "\n")
    for predictions in ("alba.dev.csv", "alba.evasion.zip"):
        message = mmeval("clarity", "torn.csv", predictions, code=1).stderr
        assert "torn.csv:6: LENGTH: the row has 1 cells, but the header has 10" in message
        assert "UNMATCHED" not in message
        assert "line i must be" not in message


# exit codes


def test_thresholds(folder):
    mmeval("clarity", "test.csv", "alba.csv", "-o", "a", "--fail-under", "evasion=0.5", "--min-coverage", "0.9")
    message = mmeval("clarity", "test.csv", "alba.csv", "-o", "b", "--fail-under", "evasion=0.99", code=3).stderr
    assert message.startswith("error: evasion: composite_score is 0.")
    message = mmeval(
        "clarity", "test.csv", "alba.csv", "-o", "c", "--fail-under", "evasion.f1_majority=0.99", code=3
    ).stderr
    assert message.startswith("error: evasion: f1_majority is 0.")
    assert "below 0.99" in mmeval("clarity", "test.csv", "alba.csv", "-o", "d", "--min-coverage", "0.99", code=3).stderr
    # one name for both tasks
    message = mmeval("clarity", "test.csv", "alba.csv", "-o", "e", "--fail-under", "soft_score=0.99", code=3).stderr
    assert message.count("soft_score") == 2


def test_wrong_usage(folder):
    assert "Missing argument 'PREDICTIONS'" in mmeval("clarity", "test.csv", code=2).stderr
    assert "does not compute it" in mmeval("clarity", "dev.csv", "alba.dev.csv", "--fail-under", "x=1", code=2).stderr
    mmeval("clarity", "dev.csv", "alba.dev.csv", "--task", "nonsense", code=2)
    mmeval("clarity", "check-submission", code=2)
    message = mmeval(
        "clarity", "dev.csv", "alba.dev.csv", "--task", "clarity", "--fail-under", "evasion=0.1", code=2
    ).stderr
    assert "does not compute it" in message
    message = mmeval("clarity", "test.csv", "alba.csv", "--fail-over", "evasion.soft_score=0.9", code=2).stderr
    assert "evasion.soft_score is higher-is-better: use --fail-under evasion.soft_score=0.9" in message
    assert "finite" in mmeval("clarity", "test.csv", "alba.csv", "--min-coverage", "nan", code=2).stderr
    assert not (folder / "runs").exists()


def test_check_submission(folder):
    out = mmeval("clarity", "check-submission", "alba.evasion.zip", "--data", "test.csv").stdout
    assert "no problems in alba.evasion.zip (zip; answers every row of test.csv once)" in out
    assert "--data DATA" in mmeval("clarity", "check-submission", "alba.csv").stdout
    message = mmeval("clarity", "check-submission", "alba.evasion.zip", "--data", "dev.csv", code=1).stderr
    assert "LENGTH: the submission has 96 lines, but dev.csv has 72 rows" in message
    checked = json.loads(mmeval("clarity", "check-submission", "boreas.clarity.zip", "--format", "json").stdout)
    assert checked["rows"] == 96
    assert sum(checked["labels"]["clarity"].values()) == 96


def zipped(path, *labels):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("prediction", "".join(f"{label}\n" for label in labels))
    return path.name


def test_a_submission_for_the_other_task_is_detected(folder):
    refused = mmeval(
        "clarity", "check-submission", zipped(folder / "z.zip", "Explicit", "General"), "--task", "clarity", code=1
    )
    assert "NO_PREDICTION" in refused.stderr
    assert "It has evasion labels" in refused.stderr
    refused = mmeval("clarity", "check-submission", zipped(folder / "y.zip", "Foo", "Bar"), "--task", "clarity", code=1)
    assert "not a label of the task clarity" in refused.stderr


def test_one_refused_row_does_not_hide_ids_that_are_not_in_the_data(folder):
    (folder / "d.csv").write_text("index,evasion_label\n1,Explicit\n2,General\n")
    (folder / "p.csv").write_text("id,evasion_pred\n1,Explicit\n77,General\n,Dodging\n")
    refused = mmeval("clarity", "check-submission", "p.csv", "--data", "d.csv", code=1).stderr
    assert "MISSING_ID" in refused
    assert "'77'" in refused
