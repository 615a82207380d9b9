"""`mmeval agree`: three input layouts, one report."""

from __future__ import annotations

import gzip
import json

import krippendorff
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import cohen_kappa_score

from tests.cli.command_line import mmeval

# unit, group, gold, and the labels of three annotators
ROWS = [
    ("u1", "g1", "yes", "yes", "yes", "yes"),
    ("u2", "g1", "no", "no", "no", "yes"),
    ("u3", "", "no", "no", "yes", ""),
    ("u4", "", "yes", "yes", "yes", "no"),
    ("u5", "g3", "no", "no", "no", "no"),
    ("u6", "g3", "", "", "", "yes"),
    ("u7", "", "", "", "", ""),
]
NAMES = ("ann1", "ann2", "ann3")
WIDE = [dict(zip(("item", "doc", "truth", *NAMES), row, strict=True)) for row in ROWS]
LONG = [
    {"item": row[0], "doc": row[1], "truth": row[2], "who": name, "label": label}
    for row in ROWS
    for name, label in zip(NAMES, row[3:], strict=True)
]
NESTED = [
    {"item": row[0], "annotations": {name: label or None for name, label in zip(NAMES, row[3:], strict=True)}}
    for row in ROWS
]


def csv_text(rows, delimiter=","):
    lines = [delimiter.join(rows[0])] + [delimiter.join(str(cell) for cell in row.values()) for row in rows]
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wide.csv").write_text(csv_text(WIDE))
    (tmp_path / "long.tsv").write_text(csv_text(LONG, "\t"))
    (tmp_path / "nested.jsonl").write_text("".join(json.dumps(row) + "\n" for row in NESTED))
    return tmp_path


def report(*arguments):
    return json.loads(mmeval("agree", *arguments, "--format", "json").stdout)


def figures(result):
    return {figure["name"]: figure for figure in result["figures"]}


def numeric(labels):
    return [{"": np.nan, "no": 0, "yes": 1}[label] for label in labels]


def test_the_report_agrees_with_reference_implementations(folder):
    result = report("wide.csv", "--annotators", "ann*", "--gold", "truth")
    alpha = figures(result)["Krippendorff's alpha (nominal)"]
    data = np.array([numeric(row[3:]) for row in ROWS]).T
    assert alpha["value"] == pytest.approx(krippendorff.alpha(reliability_data=data, level_of_measurement="nominal"))
    assert alpha["low"] < alpha["value"] < alpha["high"]
    assert result["units"] == {"total": 7, "no_rating": 1, "one_rating": 1, "compared": 5, "unanimous": 2}
    assert result["labels"] == {"yes": 8, "no": 7}
    first = result["pairs"][0]
    assert first["annotators"] == ["ann1", "ann2"]
    pair = list(zip(*[row[3:5] for row in ROWS if row[3]], strict=True))
    assert first["kappa"]["value"] == pytest.approx(cohen_kappa_score(*pair))
    mean = figures(result)["mean Cohen's kappa"]["value"]
    assert mean == pytest.approx(np.mean([pair["kappa"]["value"] for pair in result["pairs"]]))
    # 13 pairs of ratings: 3 + 3 + 1 + 3 + 3, of which 3 + 1 + 0 + 1 + 3 are equal
    assert figures(result)["percent agreement"]["value"] == pytest.approx(8 / 13)
    assert "alpha allows missing ratings" in figures(result)["Fleiss' kappa"]["reason"]
    people = {person["name"]: person for person in result["annotators"]}
    assert people["ann3"]["labels"] == {"no": 2, "yes": 3}
    # ann3 is compared in four units with two others each: 2 + 0 + 0 + 2 of 8 are equal
    assert people["ann3"]["agreement"]["value"] == pytest.approx(4 / 8)
    # u1 and u5 of u1, u2, u4, u5 are correct; u6 has no gold label
    assert people["ann3"]["gold_accuracy"]["value"] == pytest.approx(2 / 4)
    assert people["ann1"]["gold_accuracy"]["value"] == 1
    assert 0 < people["ann3"]["estimated_accuracy"]["value"] < people["ann1"]["estimated_accuracy"]["value"] <= 1
    consensus = result["consensus"]
    # The vote is tied in u3 and goes to "no", the alphabetically first label, which is correct.
    assert (consensus["n_units"], consensus["majority_ties"]) == (6, 1)
    assert consensus["majority_gold_accuracy"]["value"] == 1


def test_three_layouts_of_the_same_labels(folder):
    wide = report("wide.csv", "--annotators", "ann1,ann2,ann3")
    assert report("long.tsv", "--unit", "item", "--annotator", "who", "--label", "label") == wide
    assert report("nested.jsonl", "--annotations", "annotations") == wide
    table = pa.Table.from_pylist(NESTED)
    pq.write_table(table, folder / "nested.parquet")
    assert report("nested.parquet", "--annotations", "annotations", "--unit", "item") == wide
    keys = pa.map_(pa.string(), pa.string())
    maps = pa.array([list(row["annotations"].items()) for row in NESTED], type=keys)
    pq.write_table(pa.table({"annotations": maps}), folder / "map.parquet")
    assert report("map.parquet", "--annotations", "annotations") == wide
    cells = [{"item": row["item"], "annotations": json.dumps(row["annotations"]).replace('"', '""')} for row in NESTED]
    text = "item,annotations\n" + "".join(f'{row["item"]},"{row["annotations"]}"\n' for row in cells)
    (folder / "nested.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert report("nested.csv.gz", "--annotations", "annotations") == wide
    lists = [{"labels": list(row["annotations"].values())} for row in NESTED]
    (folder / "lists.json").write_text(json.dumps(lists))
    listed = report("lists.json", "--annotations", "labels")
    assert listed["figures"] == wide["figures"]
    assert [person["name"] for person in listed["annotators"]] == ["1", "2", "3"]


def test_groups_and_seed_change_the_interval_only(folder):
    plain = figures(report("wide.csv", "--annotators", "ann*"))
    grouped = figures(report("wide.csv", "--annotators", "*", "--unit", "item", "--group", "doc", "--gold", "truth"))
    other = figures(report("wide.csv", "--annotators", "ann*", "--seed", "1"))
    name = "Krippendorff's alpha (nominal)"
    assert grouped[name]["value"] == plain[name]["value"] == other[name]["value"]
    assert "resamples of 4 groups" in grouped[name]["method"]
    assert "resamples of 5 units" in plain[name]["method"]
    assert other[name]["stderr"] != plain[name]["stderr"]
    assert figures(report("wide.csv", "--annotators", "ann*", "--resamples", "0"))[name]["low"] is None


def test_levels(folder):
    (folder / "stars.jsonl").write_text('{"a": 1, "b": 2}\n{"a": 3, "b": 3}\n{"a": 10, "b": 4.5}\n{"a": 2, "b": 2}\n')
    data = [[1, 3, 10, 2], [2, 3, 4.5, 2]]
    for level in ("nominal", "ordinal", "interval", "ratio"):
        result = report("stars.jsonl", "--annotators", "a,b", "--level", level)
        expected = krippendorff.alpha(reliability_data=data, level_of_measurement=level)
        assert result["figures"][0]["value"] == pytest.approx(expected)
        assert (result["consensus"] is None) == (level in ("interval", "ratio"))
    (folder / "stars.csv").write_text("a,b\n1,2\n3,3\n10,4.5\n2,2\n")
    assert report("stars.csv", "--annotators", "a,b", "--level", "ratio") == result
    labels = report("stars.jsonl", "--annotators", "a,b", "--level", "ordinal")["labels"]
    assert labels == {"2": 3, "3": 2, "1": 1, "10": 1, "4.5": 1}
    # Numeric labels are sorted as numbers, not as text: 10 is last.
    tied = report("stars.jsonl", "--annotators", "a,b")["consensus"]["priors"]
    assert list(tied) == ["1", "2", "3", "4.5", "10"]


def test_ordinal_words_and_weights(folder):
    (folder / "words.csv").write_text("a,b\nlow,mid\nmid,mid\nhigh,mid\nlow,low\nhigh,high\n")
    arguments = ["words.csv", "--annotators", "a,b", "--level", "ordinal", "--order", "low,mid,high"]
    a, b = [0, 1, 2, 0, 2], [1, 1, 1, 0, 2]
    assert report(*arguments)["figures"][0]["value"] == pytest.approx(
        krippendorff.alpha(reliability_data=[a, b], level_of_measurement="ordinal")
    )
    for weights in (None, "none", "linear"):
        option = ["--weights", weights] if weights else []
        expected = cohen_kappa_score(a, b, weights={None: "quadratic", "none": None}.get(weights, weights))
        assert report(*arguments, *option)["pairs"][0]["kappa"]["value"] == pytest.approx(expected)


def test_the_table(folder):
    out = mmeval("agree", "wide.csv", "--annotators", "ann*", "--gold", "truth").stdout
    for text in (
        "agreement, 7 units, 3 annotators, nominal labels",
        "Krippendorff's alpha (nominal)",
        "Fleiss' kappa (undefined)",
        "mean Cohen's kappa",
        "ann1 and ann3",
        "majority vote",
        "Dawid-Skene",
        "units: 5 compared, 2 of them unanimous; excluded: 1 with one label, 1 with none",
        "units have 1 to 3 ratings, but Fleiss' kappa needs the same number for every unit",
        "95% Bayesian bootstrap, 1,000 resamples of 5 units",
    ):
        assert text in out
    assert "kappa and Dawid-Skene need labels" in mmeval("agree", *numbers_file(folder)).stdout


def numbers_file(folder):
    (folder / "numbers.csv").write_text("a,b\n1,2\n2,2\n")
    return ["numbers.csv", "--annotators", "a,b", "--level", "interval"]


def test_hostile_names_are_shown_as_text(folder):
    (folder / "odd.jsonl").write_text('{"[bold]a[/]": "[red]\\u001b[31m", "b": "x"}\n{"[bold]a[/]": "x", "b": "x"}\n')
    out = mmeval("agree", "odd.jsonl", "--annotators", "[[]bold*,b").stdout
    assert "[bold]a[/]" in out
    assert "[red]" in out
    assert "\x1b[31m" not in out


def test_many_labels_and_annotators_stay_readable(folder):
    rows = [{f"a{who}": f"label {unit}" for who in range(25)} for unit in range(220)]
    (folder / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = mmeval("agree", "many.jsonl", "--annotators", "a*", "--resamples", "20").stdout
    assert "200 rarer labels are not shown" in out
    assert "no pairs: 25 annotators" in out
    assert "no Dawid-Skene: 220 labels" in out
    assert "1.0000" in out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--annotators", "ann*", "--annotations", "x"],
        ["--annotator", "who", "--label", "label"],
        ["--unit", "item", "--annotator", "who"],
        ["--annotators", "ann*", "--order", "no,yes"],
        ["--annotators", "ann*", "--level", "ordinal", "--order", "no,no"],
        ["--annotators", "ann*", "--level", "ordinal", "--order", "no"],
        ["--annotators", "ann*", "--level", "interval", "--gold", "truth"],
        ["--annotators", "ann*", "--weights", "linear"],
        ["--annotators", "ann*", "--level", "nominl"],
        ["--annotators", "ann*", "--resamples", "-1"],
    ],
)
def test_wrong_usage_exits_2(folder, arguments):
    assert mmeval("agree", "wide.csv", *arguments, code=2).stdout == ""


@pytest.mark.parametrize(
    ("content", "arguments", "messages"),
    [
        ("a,b\nx,y\n", ["--annotators", "a,bb"], ["UNKNOWN_COLUMN: no column is named 'bb'", "Did you mean 'b'?"]),
        ("a,b\nx,y\n", ["--annotators", "c*"], ["no column is named 'c*'"]),
        (
            "a,b\nx,y\n",
            ["--annotators", "a,b", "--gold", "c", "--group", "d"],
            ["named 'c'", "named 'd'", "2 problems"],
        ),
        ("a,b\nx,y\n", ["--annotators", "a"], ["ANNOTATORS: agreement needs two annotators. Got only 'a'."]),
        ("a,b\n,\n , \n", ["--annotators", "a,b"], ["EMPTY: no annotator gave a label"]),
        ("a,b\n", ["--annotators", "a,b"], ["EMPTY: the input has no records"]),
        (
            "a,b\n1,x\n2,y\n",
            ["--annotators", "a,b", "--level", "interval"],
            [":2: TYPE: `b` must be a number at the level 'interval'. Got 'x' instead.", ":3: TYPE", "2 problems"],
        ),
        ("a,b\nx,y\n", ["--annotators", "a,b", "--level", "ordinal"], ["need an order: --order"]),
        ("a,b\n1,nan\n", ["--annotators", "a,b", "--level", "interval"], ["NONFINITE: `b` is nan"]),
        ("a,b\n1,-2\n", ["--annotators", "a,b", "--level", "ratio"], ["RANGE", "use the level interval"]),
        (
            "a,b\nlow,hgih\nmd,low\n",
            ["--annotators", "a,b", "--level", "ordinal", "--order", "low,mid,high"],
            [":2: UNKNOWN_LABEL", "Did you mean 'high'?", ":3: UNKNOWN_LABEL", "Did you mean 'mid'?"],
        ),
        (
            "u,w,l,g\n1,a,x,p\n1,a,y,p\n1,b,x,q\n,a,x,p\n2,,x,p\n",
            ["--unit", "u", "--annotator", "w", "--label", "l", "--group", "g"],
            [
                "DUPLICATE: 'a' rated the unit '1' twice, in lines 2 and 3",
                ":4: CONFLICT: `g` has different values for one unit",
                ":5: MISSING_ID: `u` is empty",
                ":6: MISSING_ID: `w` is empty",
                "4 problems",
            ],
        ),
        ("u,a,b\n1,x,y\n1,x,y\n", ["--annotators", "a,b", "--unit", "u"], ["occurs twice, in lines 2 and 3"]),
        ("a,b\n1,2,3\n", ["--annotators", "a,b"], ["LENGTH"]),
        ("n\nx\n[1\n", ["--annotations", "n"], [":2: SYNTAX: `n` must be JSON here", ":3: SYNTAX"]),
        ("n\n5\n", ["--annotations", "n"], ["TYPE: `n` must be an object annotator -> label, or a list of labels"]),
    ],
)
def test_bad_input_exits_1_with_every_problem(folder, content, arguments, messages):
    (folder / "bad.csv").write_text(content)
    done = mmeval("agree", "bad.csv", *arguments, code=1)
    for message in messages:
        assert message in done.stderr
    assert done.stdout == ""


def test_an_unknown_column_is_reported_before_its_consequences(folder):
    (folder / "bad.csv").write_text("unit,who,label\n" + "1,a,x\n" * 30)
    done = mmeval("agree", "bad.csv", "--unit", "item", "--annotator", "who", "--label", "label", code=1)
    assert done.stderr.startswith("error: bad.csv: UNKNOWN_COLUMN: no column is named 'item'")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"a": "x", "b": 1}', "TYPE: the labels mix types: 'x' (text) and 1 (number) in `b`"),
        ('{"a": "x", "b": ["y"]}', "TYPE: `b` must be a label. Got ['y'] instead."),
        ('{"a": "x", "b": "y\\u0000"}', "CONTROL_CHAR"),
        ('{"a": "x", "b": NaN}', "NONFINITE"),
    ],
)
def test_bad_labels_in_json(folder, record, message):
    (folder / "bad.jsonl").write_text(record + "\n")
    assert message in mmeval("agree", "bad.jsonl", "--annotators", "a,b", code=1).stderr


def test_numeric_text_is_not_a_number_in_json(folder):
    (folder / "bad.jsonl").write_text('{"a": "1", "b": 2}\n')
    message = "TYPE: `a` must be a number at the level 'interval'. Got '1' instead."
    assert message in mmeval("agree", "bad.jsonl", "--annotators", "a,b", "--level", "interval", code=1).stderr


def test_spellings_of_the_same_label(folder):
    (folder / "same.csv").write_text("a,b\nyes, yes \nno,no\nJose\u0301,José\n", encoding="utf-8")
    assert report("same.csv", "--annotators", "a,b")["figures"][0]["value"] == 1
    (folder / "same.jsonl").write_text('{"a": 1, "b": 1.0}\n{"a": 2, "b": 2}\n')
    assert report("same.jsonl", "--annotators", "a,b")["labels"] == {"1": 2, "2": 2}
    (folder / "same.jsonl").write_text('{"a": true, "b": true}\n{"a": false, "b": true}\n')
    assert report("same.jsonl", "--annotators", "a,b")["labels"] == {"true": 3, "false": 1}


def test_gold_labels_that_nobody_gave_change_only_the_accuracy(folder):
    rows = [(1, 1, 3), (1, 2, 3), (2, 5, 4), (5, 5, 4), (2, 2, 2), (5, 2, 1), (1, 5, 1)]
    (folder / "gold.csv").write_text("a,b,truth\n" + "".join(f"{a},{b},{gold}\n" for a, b, gold in rows))
    for level in ("nominal", "ordinal"):
        arguments = ["gold.csv", "--annotators", "a,b", "--level", level, "--resamples", "50"]
        without, result = report(*arguments), report(*arguments, "--gold", "truth")
        assert result["figures"] == without["figures"]
        assert result["pairs"] == without["pairs"]
        assert result["labels"] == without["labels"] == {"2": 5, "5": 5, "1": 4}
        assert result["consensus"]["priors"] == without["consensus"]["priors"]
        # Of seven units, `a` is correct in the fifth (2) and the last (1); nobody gives 3 or 4.
        assert [person["gold_accuracy"]["value"] for person in result["annotators"]] == pytest.approx([2 / 7, 1 / 7])


def test_an_order_fixes_the_set_of_labels_with_and_without_gold(folder):
    (folder / "gold.csv").write_text("a,b,truth\nlow,low,mid\nhigh,low,low\nhigh,high,mid\n")
    arguments = [
        "gold.csv",
        "--annotators",
        "a,b",
        "--level",
        "ordinal",
        "--order",
        "low,mid,high",
        "--resamples",
        "50",
    ]
    without, result = report(*arguments), report(*arguments, "--gold", "truth")
    assert result["figures"] == without["figures"]
    assert result["annotators"][1]["gold_accuracy"]["value"] == pytest.approx(1 / 3)


def test_a_folder_is_not_a_file(folder):
    (folder / "labels").mkdir()
    message = mmeval("agree", "labels", "--annotators", "a,b", code=1).stderr
    assert "labels: FORMAT: this is a folder, but a file is needed" in message
    assert "no such file" not in message
