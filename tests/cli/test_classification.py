"""`mmeval score --task classification`: labels and annotators from files."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from multimodal_eval.data.runs.run import load_run
from tests.cli.command_line import mmeval

CSV = """id,expected_answer,generated_answer,annotator1,annotator2,annotator3,annotator_note
1,red,Red,red,blue,red,fine
2,,blue,green,green,,
3,green,green,,,,
4,blue,green,blue,violet,green,odd
"""
ROWS = [
    (["red", "blue", "red"], {"generated_answer": "Red", "expected_answer": "red"}),
    (["green", "green", None], {"generated_answer": "blue"}),
    ([None, None, ""], {"generated_answer": "green", "expected_answer": "green"}),
    (["blue", "violet", "green"], {"generated_answer": "green", "expected_answer": "blue"}),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.yaml").write_text("labels: [red, green, blue]\n")
    (tmp_path / "d.csv").write_text(CSV)
    return tmp_path


def score(*arguments, task="classification", code=0):
    return mmeval("score", *arguments, *(["--task", task] if task else []), code=code)


def values(path):
    run = load_run(path)
    names = ("f1_strict", "f1_any_match", "f1_majority", "soft_score")
    return [(run[name]["value"], run[name]["n_scored"]) for name in names]


def test_annotators_as_columns_lists_and_mappings_score_the_same(here):
    score("d.csv", "--labels", "labels.yaml", "-o", "a", "--annotators", "annotator?")
    with open("list.jsonl", "w") as listed, open("map.jsonl", "w") as mapped:  # noqa: PTH123
        for number, (labels, fields) in enumerate(ROWS, 1):
            listed.write(json.dumps({"id": number, **fields, "annotations": labels}) + "\n")
            named = dict(zip("xyz", labels, strict=True))
            mapped.write(json.dumps({"id": number, **fields, "annotations": named}) + "\n")
    pairs = [[(name, label) for name, label in zip("xyz", labels, strict=True)] for labels, _ in ROWS]
    table = {
        "id": [str(number) for number in range(1, 5)],
        "generated_answer": [fields["generated_answer"] for _, fields in ROWS],
        "expected_answer": [fields.get("expected_answer") for _, fields in ROWS],
        "annotations": pa.array(pairs, pa.map_(pa.string(), pa.string())),
    }
    pq.write_table(pa.table(table), "map.parquet")
    for data in ("list.jsonl", "map.jsonl", "map.parquet"):
        score(data, "--labels", "labels.yaml", "-o", f"run-{data}")
        assert values(f"run-{data}") == values("a")
    # strict: 1 and 3 correct, 4 wrong (blue as green): red 1, green 2/3, blue 0
    # any-match: 1 red; 2 blue for green; 4 green: red 1, green 2/3, blue 0. soft: 2/3, 0, 1/2
    assert values("a") == [
        (pytest.approx(5 / 9), 3),
        (pytest.approx(5 / 9), 3),
        (pytest.approx(1 / 3), 3),
        (pytest.approx(7 / 18), 3),
    ]
    first = next(iter(load_run("a").samples()))
    assert first.annotations == {"annotator1": "red", "annotator2": "blue", "annotator3": "red"}
    assert first.metadata == {"annotator_note": "fine"}


def test_annotators_in_the_data_and_labels_in_the_predictions(here):
    lines = CSV.splitlines()
    (here / "gold.csv").write_text("\n".join(",".join(line.split(",")[:2] + line.split(",")[3:6]) for line in lines))
    (here / "pred.csv").write_text("\n".join(",".join([line.split(",")[0], line.split(",")[2]]) for line in lines))
    for arguments in (["d.csv"], ["gold.csv", "pred.csv"]):
        score(*arguments, "--annotators", "annotator1,annotator2", "-o", arguments[0] + "r")
    assert values("d.csvr") == values("gold.csvr")


def test_a_missing_column(here):
    refused = score("d.csv", "--annotators", "annotator1,people*", code=1).stderr
    assert "UNKNOWN_COLUMN: --annotators names the column 'people*'" in refused
    mmeval("validate", "d.csv", "--annotators", "people*", code=1)
    assert "annotations" in mmeval("validate", "d.csv", "--annotators", "annotator?").stdout


def test_a_duplicate_annotator(here):
    record = {"id": "1", "generated_answer": "red", "annotations": {"ann": "red"}, "ann": "blue"}
    (here / "twice.jsonl").write_text(json.dumps(record) + "\n")
    refused = score("twice.jsonl", "--annotators", "ann", code=1).stderr
    assert "DUPLICATE: `annotations` and a column both contain the labels of 'ann'" in refused


def test_unknown_labels(here):
    (here / "bad.csv").write_text("id,expected_answer,generated_answer\n1,red,rad\n")
    arguments = ("bad.csv", "--metrics", "f1_strict", "--labels", "labels.yaml", "-o", "r")
    refused = score(*arguments, task=None, code=1).stderr
    assert "UNKNOWN_LABEL: the predicted label 'rad' is not in the taxonomy. (id '1')" in refused
    assert "Did you mean 'red'?" in refused
    assert not (here / "r").exists()
    score(*arguments, "--unknown-labels", "wrong", task=None)
    assert load_run("r")["f1_strict"]["value"] == 0.0
