"""`mmeval clarity`: columns with other names, files without ids, other spellings, few annotated rows."""

from __future__ import annotations

import csv
import json

import pytest

from multimodal_eval import load_run
from tests.cli.clarity import DEV, TEST, copy_data, rows, scored
from tests.cli.command_line import mmeval


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return copy_data(tmp_path, monkeypatch)


@pytest.fixture
def official(folder):
    """The official scores of the original files."""
    return values(scored("test.csv", "alba.csv", "-o", "original"))


def values(results):
    return {task: result["composite"]["value"] for task, result in results.items()}


def notes(results, task="evasion"):
    return results[task]["classification"]["notes"]


def write(name, records, **renamed):
    """Write records as CSV, with columns renamed; None leaves a column out."""
    columns = {column: renamed.get(column, column) for column in records[0]}
    with open(name, "w", newline="") as file:  # noqa: PTH123
        writer = csv.writer(file)
        writer.writerow(filter(None, columns.values()))
        writer.writerows([row[column] for column, new in columns.items() if new] for row in records)


def test_columns_named_with_map(official):
    write("data.csv", TEST, index="row", clarity_label="Clarity", evasion_label="Evasion", question="Q")
    write("answers.csv", rows("alba.csv"), id="row", clarity_pred="first", evasion_pred="second")
    mapping = "id=row clarity_label=Clarity evasion_label=Evasion question=Q clarity_pred=first evasion_pred=second"
    options = [part for name in mapping.split() for part in ("--map", name)]
    assert values(scored("data.csv", "answers.csv", "-o", "run", *options)) == official
    sample = next(iter(load_run("run/clarity").samples()))
    assert sample.question == TEST[0]["question"]
    assert sample.expected_answer == TEST[0]["clarity_label"]


def test_the_id_column_may_differ_in_one_file(official):
    write("answers.csv", rows("alba.csv"), id="row")
    assert values(scored("test.csv", "answers.csv", "-o", "run", "--map", "id=row")) == official


def test_one_file_with_gold_labels_and_predictions(folder):
    joined = [row | prediction for row, prediction in zip(DEV, rows("alba.dev.csv"), strict=True)]
    write("all.csv", joined, id=None, evasion_pred="answer", clarity_pred=None)
    expected = values(scored("dev.csv", "alba.dev.csv", "--task", "evasion", "-o", "original"))
    options = ("--map", "evasion_pred=answer", "--task", "evasion")
    assert values(scored("all.csv", "all.csv", "-o", "run", *options)) == expected


def test_gold_labels_are_not_taken_for_predictions(folder):
    message = mmeval("clarity", "dev.csv", "dev.csv", "-o", "run", code=1).stderr
    assert "DATA and PREDICTIONS are the same file, and `clarity_label` is its gold label." in message
    assert "--map evasion_pred=COLUMN" in message


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--map=id=rwo", "no column is named 'rwo'."),
        ("--map=evasion_label=evasion_lable", "no column is named 'evasion_lable'. (field"),
        (
            "--map=evasion_pred=pred",
            "alba.csv: UNKNOWN_COLUMN: no column is named 'pred'. Known: ",
        ),
        ("--map=evasion=pred", "no field of CLARITY's files is named 'evasion'. Did you mean 'evasion_pred'?"),
        ("--annotators=rater*", "test.csv: UNKNOWN_COLUMN: no column is named 'rater*'."),
    ],
)
def test_a_wrong_name_is_refused(folder, option, message):
    shown = mmeval("clarity", "test.csv", "alba.csv", "-o", "run", option, code=1).stderr
    assert message.partition(" (field")[0] in shown
    assert not (folder / "run").exists()


def test_a_field_named_twice_is_wrong_usage(folder):
    message = mmeval("clarity", "test.csv", "alba.csv", "--map", "id=a", "--map", "id=b", code=2).stderr
    assert "--map names a field twice: id" in message


def test_annotators_with_other_names(official):
    write("data.csv", TEST, annotator1="ann_kim", annotator2="ann_lee", annotator3="ann_joe")
    for annotators in ("ann_kim,ann_lee,ann_joe", "ann_*"):
        results = scored("data.csv", "alba.csv", "-o", annotators[:6], "--annotators", annotators)
        assert values(results) == official
        ceiling = results["evasion"]["classification"]["human_ceiling"]
        assert ceiling["by_annotator"].keys() == {"ann_kim", "ann_lee", "ann_joe"}


def test_annotators_can_be_ignored(folder):
    records = [row | {"evasion_label": row["annotator1"] or "General"} for row in TEST]
    write("data.csv", records)
    result = scored("data.csv", "alba.csv", "-o", "run", "--annotators", "none")["evasion"]
    assert result["classification"]["official"] == "strict"
    assert list(result["metrics"]) == ["f1_strict"]


def test_data_without_an_index(official):
    write("data.csv", TEST, index=None)
    predictions = rows("alba.csv")
    for first in (0, 1):  # the predictions count from 0, as pandas does, or from 1
        counted = [row | {"id": str(number)} for number, row in enumerate(predictions, first)]
        write("answers.csv", counted[::-1])
        results = scored("data.csv", "answers.csv", "-o", f"from{first}")
        assert values(results) == official
        assert "data.csv has no column `index`: its rows are counted, as in answers.csv" in notes(results)
    assert "data.csv has no column" not in json.dumps(values(scored("data.csv", "alba.evasion.zip", "-o", "zip")))


def test_neither_file_has_ids(official):
    write("data.csv", TEST, index=None)
    write("answers.csv", rows("alba.csv"), id=None)
    results = scored("data.csv", "answers.csv", "-o", "run")
    assert values(results) == official
    assert "answers.csv has no column `id`: row i is the prediction for row i of the data" in notes(results)
    assert next(iter(load_run("run/evasion").samples())).id == "1"


def test_rows_without_ids_must_be_as_many(folder):
    write("answers.csv", rows("alba.csv")[1:], id=None)
    message = mmeval("clarity", "test.csv", "answers.csv", "-o", "run", code=1).stderr
    assert "LENGTH: the submission has 95 rows, but test.csv has 96 rows: without a column `id`" in message
    mmeval("clarity", "check-submission", "answers.csv", "--data", "test.csv", code=1)


def test_ids_that_are_not_row_numbers(folder):
    write("data.csv", TEST, index=None)
    message = mmeval("clarity", "data.csv", "alba.csv", "-o", "run", code=1).stderr
    assert "UNMATCHED: 96 of 96 ids of data.csv have no prediction" in message
    assert "The data has no column `index`: its rows are counted. Name another column: --map id=COLUMN." in message


def test_a_first_record_without_an_id_is_not_a_file_without_ids(folder):
    records = [{"index": None if number == 0 else row["index"], **row} for number, row in enumerate(TEST)]
    del records[0]["index"]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    message = mmeval("clarity", "data.jsonl", "alba.csv", "-o", "run", code=1).stderr
    assert "data.jsonl:1: MISSING_ID: the sample has no `id`. Name its column with --map id=COLUMN" in message


@pytest.mark.parametrize("name", ["{}_label", "{}_prediction", "{}"])
def test_predictions_in_columns_with_similar_names(official, name):
    write("answers.csv", rows("alba.csv"), clarity_pred=name.format("clarity"), evasion_pred=name.format("evasion"))
    results = scored("test.csv", "answers.csv", "-o", "run")
    assert values(results) == official
    told = "predictions are read from the column `evasion_label` of answers.csv" in notes(results)
    assert told == (name == "{}_label")


def test_the_column_of_predictions_comes_before_a_copy_of_the_gold_labels(official):
    write("answers.csv", [row | {"evasion_label": "Explicit"} for row in rows("alba.csv")])
    assert values(scored("test.csv", "answers.csv", "-o", "run")) == official


def test_an_unknown_label_is_reported_with_the_name_of_its_column(folder):
    write("answers.csv", [row | {"evasion_pred": "Dogding"} for row in rows("alba.csv")], evasion_pred="evasion_label")
    message = mmeval("clarity", "test.csv", "answers.csv", "-o", "run", code=1).stderr
    assert "answers.csv:2: UNKNOWN_LABEL: `evasion_label` is 'Dogding'" in message


def test_labels_with_underscores(official):
    predictions = [
        {
            name: value.lower().replace(" ", "_").replace("/", "_") if name != "id" else value
            for name, value in row.items()
        }
        for row in rows("alba.csv")
    ]
    assert any(row["evasion_pred"] == "claims_ignorance" for row in predictions)
    write("answers.csv", predictions)
    assert values(scored("test.csv", "answers.csv", "-o", "run")) == official


def test_few_annotated_rows_are_reported(folder):
    annotators = ("annotator1", "annotator2", "annotator3")
    blank = dict.fromkeys(annotators, "")
    # Of the first 40 rows, one has no label.
    few = [row | (blank if number >= 40 else {}) for number, row in enumerate(TEST)]
    write("data.csv", [row | {"evasion_label": "General"} for row in few])
    told = notes(scored("data.csv", "alba.csv", "-o", "share"))
    assert told[0] == (
        "any-match, the official score, is computed from only 39 of 96 rows: the others have no annotator's label. "
        "For the strict score of 96 rows instead: --annotators none"
    )
    write("data.csv", few[:12])
    write("answers.csv", rows("alba.csv")[:12])
    assert notes(scored("data.csv", "answers.csv", "-o", "count"))[0] == (
        "any-match, the official score, is computed from only 12 of 12 rows"
    )
    assert not any("computed from only" in note for note in notes(scored("test.csv", "alba.csv", "-o", "many")))


def test_a_submission_is_checked_with_the_same_columns(folder):
    write("data.csv", TEST, index="row")
    write("answers.csv", rows("alba.csv"), id="row", evasion_pred="answer", clarity_pred=None)
    options = ("--data", "data.csv", "--map", "id=row", "--map", "evasion_pred=answer")
    assert "answers every row of data.csv once" in mmeval("clarity", "check-submission", "answers.csv", *options).stdout
