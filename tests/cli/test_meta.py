"""`mmeval meta`: metrics against human judgments, from any input."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from multimodal_eval import evaluate
from multimodal_eval.cli import meta as command
from multimodal_eval.evaluation.metrics.cider import cider_d
from multimodal_eval.stats.correlation import COEFFICIENTS
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from tests.cli.command_line import mmeval
from tests.data.readers.flickr8k_folder import CAPTIONS, EXPERT, make_folder

ANSWERS = [
    ("a dog runs", "a dog runs on the beach", 5, 4, 0.9, 0.2),
    ("a dog", "a dog runs on the beach", 3, 3, 0.4, 0.5),
    ("a cat on a chair", "a cat sleeps on a chair", 4, 4, 0.8, 0.3),
    ("the sea", "a cat sleeps on a chair", 1, 1, 0.2, 0.7),
    ("a red train", "a train in the snow", 2, 3, 0.5, 0.4),
    ("a train in snow", "a train in the snow", 4, 5, 0.6, 0.1),
    ("two people", "two people walk in a park", 3, 2, 0.3, 0.6),
    ("a park", "two people walk in a park", 2, 2, 0.1, 0.8),
]


def rows(**changes):
    records = [
        {
            "id": str(number),
            "generated_answer": answer,
            "references": [reference],
            "group": reference,
            "ann": ann,
            "bob": bob,
            "good": good,
            "loss": loss,
        }
        for number, (answer, reference, ann, bob, good, loss) in enumerate(ANSWERS)
    ]
    for place, change in changes.items():
        records[int(place.removeprefix("row"))].update(change)
    return records


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, rows())
    return tmp_path


def write(folder, records):
    (folder / "judged.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def results(*arguments):
    return json.loads(mmeval("meta", *arguments, "--format", "json").stdout)


def test_columns_of_scores(folder):
    result = results("judged.jsonl", "--human", "ann", "--scores", "good,loss", "--lower", "loss")
    ann, good, loss = (np.array([row[name] for row in rows()]) for name in ("ann", "good", "loss"))
    assert result["n_judgments"] == 8
    assert result["n_clusters"] == 4
    assert result["metrics"]["good"]["tau_b"]["value"] == pytest.approx(stats.kendalltau(ann, good).statistic)
    assert result["metrics"]["loss"]["pearson"]["value"] == pytest.approx(-stats.pearsonr(ann, loss).statistic)
    assert result["metrics"]["good"]["tau_b"]["low"] < result["metrics"]["good"]["tau_b"]["value"]
    assert result["comparison"]["coefficient"] == "tau_b"
    (pair,) = result["comparison"]["pairs"]
    assert (pair["metric"], pair["other"]) == ("good", "loss")
    difference = result["metrics"]["good"]["tau_b"]["value"] - result["metrics"]["loss"]["tau_b"]["value"]
    assert pair["difference"] == pytest.approx(difference)


def test_every_annotator_is_a_judgment(folder):
    result = results("judged.jsonl", "--human", "ann,bob", "--scores", "good", "--coefficient", "spearman")
    human = [row[name] for row in rows() for name in ("ann", "bob")]
    good = [row["good"] for row in rows() for _ in range(2)]
    assert result["n_judgments"] == 16
    assert result["n_samples"] == 8
    assert result["metrics"]["good"]["spearman"]["value"] == pytest.approx(stats.spearmanr(human, good).statistic)
    assert result["comparison"] == {"coefficient": "spearman", "correction": "Holm", "pairs": []}


def test_judgments_of_one_sample_are_dependent(folder):
    # Without groups each sample is a cluster: a second annotator with the same scores adds no information.
    alone = [{key: value for key, value in row.items() if key != "group"} for row in rows()]
    write(folder, [{**row, "bob": row["ann"]} for row in alone])
    once = results("judged.jsonl", "--human", "ann", "--scores", "good")
    twice = results("judged.jsonl", "--human", "ann,bob", "--scores", "good")
    assert twice["n_clusters"] == 8
    errors = [result["metrics"]["good"]["pearson"]["stderr"] for result in (once, twice)]
    assert errors[1] == pytest.approx(errors[0])


def test_metrics_are_computed(folder):
    result = results("judged.jsonl", "--human", "ann", "--metrics", "bleu,bleu.bleu_1,cider_d", "--scores", "good")
    assert list(result["metrics"]) == ["good", "bleu", "bleu.bleu_1", "cider_d"]
    assert result["metrics"]["bleu.bleu_1"]["signature"] == "bleu|v:1|tokenizer:ptb|errors:default@2"
    corpus = DocumentFrequencies.of([row["references"] for row in rows()])  # one image per judged sample
    values = [cider_d(row["generated_answer"], row["references"], corpus) for row in rows()]
    expected = stats.kendalltau([row["ann"] for row in rows()], values).statistic
    assert result["metrics"]["cider_d"]["tau_b"]["value"] == pytest.approx(expected)
    assert len(result["comparison"]["pairs"]) == 6


def test_options_reach_the_metric(folder):
    arguments = ("judged.jsonl", "--human", "ann", "--metrics", "rouge_l", "--option", "rouge_l.tokenizer=unicode")
    assert results(*arguments)["metrics"]["rouge_l"]["signature"] == "rouge_l|v:1|tokenizer:unicode|errors:default@2"


def test_a_metric_for_which_lower_is_better(folder):
    (folder / "own.py").write_text(
        "from multimodal_eval import metric\n\n"
        '@metric("distance", needs=("generated_answer",), direction="lower", version="1")\n'
        "def compute_distance(sample):\n"
        "    return sample.metadata['loss']\n"
    )
    result = results(
        "judged.jsonl", "--human", "ann", "--metrics", "distance", "--plugin", "own.py", "--scores", "loss"
    )
    assert result["metrics"]["distance"]["tau_b"]["value"] == -result["metrics"]["loss"]["tau_b"]["value"] > 0
    assert result["notes"] == ["lower values of distance are better; their sign is reversed"]


def test_a_run_folder(folder):
    evaluate(folder / "judged.jsonl", metrics=["rouge_l", "bleu"], output=folder / "run")
    result = results("run", "--human", "ann")
    assert list(result["metrics"]) == ["rouge_l", "bleu"]
    direct = results("judged.jsonl", "--human", "ann", "--metrics", "rouge_l,bleu")
    assert result["metrics"] == direct["metrics"]
    done = mmeval("meta", "run", "--human", "ann", "--metrics", "cider_d", code=1)
    assert "no metric of the run is named 'cider_d'. Known: bleu" in done.stderr


def test_csv_cells_are_read_as_numbers(folder):
    with (folder / "judged.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "group", "ann", "good"])
        writer.writerows([row["id"], row["group"], row["ann"], row["good"]] for row in rows())
    result = results("judged.csv", "--human", "ann", "--scores", "good")
    assert result == results("judged.jsonl", "--human", "ann", "--scores", "good")


@pytest.mark.parametrize(("column", "kind"), [("ann", str), ("ann", bool), ("good", str)])
def test_scores_that_are_not_numbers(folder, column, kind):
    write(folder, [{**row, column: kind(row[column])} for row in rows()])
    done = mmeval("meta", "judged.jsonl", "--human", "ann", "--scores", "good", code=1)
    assert f"judged.jsonl: TYPE: `{column}` must be a number." in done.stderr
    assert "8 problems" in done.stderr


def test_a_csv_cell_that_is_not_a_number(folder):
    (folder / "judged.csv").write_text("id,ann,good\na,1,0.5\nb,x,0.7\nc,inf,0.1\n")
    done = mmeval("meta", "judged.csv", "--human", "ann", "--scores", "good", code=1)
    assert "judged.csv: TYPE: `ann` must be a number. Got 'x' instead. (id 'b')" in done.stderr
    assert "judged.csv: NONFINITE: `ann` is inf (id 'c')" in done.stderr


def test_missing_human_scores_are_counted(folder):
    write(folder, rows(row1={"ann": None}, row3={"ann": None}))
    result = results("judged.jsonl", "--human", "ann,bob", "--scores", "good")
    assert result["n_judgments"] == 14
    assert result["left_out"] == [{"reason": "no human score", "judgments": 2}]


def test_unscored_judgments_are_excluded_for_all_metrics(folder):
    write(folder, rows(row1={"generated_answer": None}, row4={"good": None}))
    arguments = ("judged.jsonl", "--human", "ann", "--metrics", "rouge_l", "--scores", "good")
    done = mmeval("meta", *arguments, code=1)
    assert "UNSCORED: 2 of 8 judgments cannot be used" in done.stderr
    assert "--allow-partial" in done.stderr
    result = results(*arguments, "--allow-partial")
    kept = [row for number, row in enumerate(rows()) if number not in (1, 4)]
    expected = stats.kendalltau([row["ann"] for row in kept], [row["good"] for row in kept]).statistic
    assert result["n_judgments"] == 6
    assert result["metrics"]["good"]["tau_b"]["value"] == pytest.approx(expected)
    assert result["left_out"] == [
        {"reason": "a metric has no value (by metric: good 1, rouge_l 1)", "judgments": 2},
    ]


def test_one_in_a_hundred_may_be_unscored(folder):
    many = [{**row, "id": f"{copy}-{row['id']}"} for copy in range(13) for row in rows()]
    many[5]["good"] = None
    write(folder, many)
    result = results("judged.jsonl", "--human", "ann", "--scores", "good")
    assert (result["n_judgments"], result["left_out"][0]["judgments"]) == (103, 1)


def test_a_constant_metric_is_undefined(folder):
    write(folder, [{**row, "good": 0.5} for row in rows()])
    out = mmeval("meta", "judged.jsonl", "--human", "ann", "--scores", "good,loss").stdout
    assert "good: undefined: the metric's values are all 0.5 (tau-b, tau-c, Spearman, Pearson)" in out
    result = results("judged.jsonl", "--human", "ann", "--scores", "good,loss")
    assert result["metrics"]["good"]["tau_b"]["value"] is None
    (pair,) = result["comparison"]["pairs"]
    assert (pair["difference"], pair["p_holm"], pair["better"]) == (None, None, None)


def test_the_table(folder):
    write(folder, [{**row, "copy": row["good"]} for row in rows()])
    out = mmeval("meta", "judged.jsonl", "--human", "ann", "--scores", "good,copy,loss").stdout
    assert "agreement with 8 human judgments of 8 samples in 4 clusters" in out
    for head in ("tau-b", "tau-c", "Spearman", "Pearson", "acc_eq", "epsilon"):
        assert head in out
    assert "tau-b of A minus that of B" in out
    assert re.search(r"1\.0000 *$", out, re.MULTILINE)  # the p-value of a metric and its copy


def test_the_better_metric_is_named(folder):
    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, 300)
    close, far = human + rng.normal(size=300), human + 6 * rng.normal(size=300)
    records = [
        {"id": str(number), "ann": int(h), "close": float(c), "far": float(f)}
        for number, (h, c, f) in enumerate(zip(human, close, far, strict=True))
    ]
    write(folder, records)
    result = results("judged.jsonl", "--human", "ann", "--scores", "far,close")
    (pair,) = result["comparison"]["pairs"]
    assert pair["better"] == "close"
    assert pair["p_holm"] == pair["p_value"] < 0.001
    assert 0 < pair["detectable"] < -pair["difference"]
    table = mmeval("meta", "judged.jsonl", "--human", "ann", "--scores", "far,close").stdout
    assert re.search(rf"{re.escape(format(pair['difference'], '+.4f'))} .*▼", table)  # A is worse


def test_the_same_input_gives_the_same_bytes(folder):
    arguments = ("meta", "judged.jsonl", "--human", "ann", "--metrics", "cider_d,bleu", "--format", "json")
    assert mmeval(*arguments).stdout == mmeval(*arguments).stdout


def test_flickr8k_experts(folder):
    make_folder(folder / "flickr8k", crowd=None)
    result = results("flickr8k", "--metrics", "bleu.bleu_1,cider_d")
    kept = [row for row in EXPERT if not row[1].startswith(row[0])]
    human = [int(score) for row in kept for score in row[2:]]
    assert result["n_judgments"] == len(human) == 21
    assert result["left_out"] == [{"reason": "the judged caption is one of the image's own captions", "judgments": 6}]
    assert result["comparison"]["coefficient"] == "tau_c"
    corpus = DocumentFrequencies.of([CAPTIONS[row[0]] for row in kept])
    judged = [(CAPTIONS[row[1].split("#")[0]][int(row[1][-1])], CAPTIONS[row[0]]) for row in kept]
    values = [cider_d(caption, references, corpus) for caption, references in judged for _ in range(3)]
    expected = stats.kendalltau(human, values, variant="c").statistic
    assert result["metrics"]["cider_d"]["tau_c"]["value"] == pytest.approx(expected)


def test_flickr8k_names_the_metrics_it_cannot_compute(folder):
    make_folder(folder / "flickr8k")
    out = mmeval("meta", "flickr8k", "--format-in", "flickr8k-cf").stdout
    assert "agreement with 5 human judgments" in out
    assert "BLEU-1" in out
    assert "meteor is left out." in out
    assert "mmeval fetch meteor-1.5-en" in out


def test_flickr8k_with_meteor(folder, meteor_data):
    make_folder(folder / "flickr8k", crowd=None)
    result = results("flickr8k")
    assert list(result["metrics"]) == ["bleu.bleu_1", "bleu", "meteor", "rouge_l", "cider_d"]
    assert [note.partition(" ")[0] for note in result["notes"]] == ["spice", "spider"]  # their parser is not fetched


def test_a_folder_with_both_kinds_of_judgments_needs_a_choice(folder):
    make_folder(folder / "flickr8k")
    done = mmeval("meta", "flickr8k", code=1)
    assert "Choose with --format-in flickr8k-expert or flickr8k-cf." in done.stderr
    (folder / "empty").mkdir()
    assert "neither run.json nor" in mmeval("meta", "empty", code=1).stderr


def test_bad_lines_exit_1(folder):
    make_folder(folder / "flickr8k", expert=[*EXPERT, ("dog.jpg", "cat.jpg#1", "7", "1", "1")], crowd=None)
    done = mmeval("meta", "flickr8k", code=1)
    assert "ExpertAnnotations.txt:10: RANGE" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["judged.jsonl", "--scores", "good"], 2, "name the column of human scores"),
        (["judged.jsonl", "--human", "ann"], 2, "name metrics (--metrics cider_d) or columns of scores"),
        (["judged.jsonl", "--human", "an", "--scores", "good"], 1, "no sample has a column 'an'. Did you mean 'ann'?"),
        (["judged.jsonl", "--human", "ann", "--scores", "good", "--lower", "loss"], 1, "--lower loss"),
        (["judged.jsonl", "--human", "ann", "--metrics", "bleu.bleu_7"], 1, "no metric of the run is named"),
        (["judged.jsonl", "--human", "ann", "--metrics", "cidr"], 1, "no metric is named 'cidr'"),
        (["judged.jsonl", "--format-in", "flickr8k-cf"], 1, "needs a folder"),
        (["nothing.jsonl", "--human", "ann", "--scores", "good"], 1, "no such file"),
        (["judged.jsonl", "--human", "ann", "--coefficient", "tau"], 2, "'tau' is not one of"),
        (
            ["judged.jsonl", "--human", "ann", "--scores", "good", "--option", "a.b=1"],
            1,
            "--option has no effect on columns of scores",
        ),
    ],
)
def test_wrong_usage(folder, arguments, code, message):
    assert message in mmeval("meta", *arguments, code=code).stderr


def test_the_command_knows_every_coefficient():
    assert list(command.COEFFICIENTS) == list(COEFFICIENTS)


def test_the_help_loads_nothing_heavy():
    program = (
        "import sys; from multimodal_eval.cli.main import cli\n"
        "cli.main(['meta', '--help'], standalone_mode=False)\n"
        "print([name for name in ('numpy', 'scipy', 'pyarrow', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "how well metrics agree" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_folder_without_the_files_of_flickr8k(folder):
    (folder / "any").mkdir()
    message = mmeval("meta", "any", "--human", "x", code=1).stderr
    assert "the folder has neither run.json nor ExpertAnnotations.txt" in message
    assert "--human" not in message


def test_two_judgments(folder):
    write(folder, rows()[1:3])
    result = results("judged.jsonl", "--human", "ann", "--scores", "good,loss")
    entries = [result["metrics"]["good"][kind] for kind in COEFFICIENTS]
    assert {entry["method"] for entry in entries} == {"no interval: 2 judgments make a single pair"}
    assert result["comparison"]["pairs"][0]["method"] == "no test: 2 judgments make a single pair"


def captions_of(number):
    """A caption that is right and one that is not, of an image with two references."""
    things = ["dog", "cat", "horse", "boat", "train", "child"]
    right, wrong = things[number % 6], things[(number + 1) % 6]
    references = [f"a {right} in the snow", f"the {right} number {number} plays"]
    return f"a {right} in the snow", f"a {wrong} on a table", references


def make_sets(folder):
    """One small set of each form; in all of them the right caption has the better words."""
    folder.mkdir()
    sets = {"ratings": [], "pairs": [], "foils": [], "tokens": [], "systems": []}
    for number in range(24):
        right, wrong, references = captions_of(number)
        image = {"image": f"{number // 2}.jpg", "references": references}
        for text, low in ((right, 3), (wrong, 0)):
            sets["ratings"].append({**image, "candidate": text, "human": [low + number % 2, low + number % 3 // 2]})
        sets["pairs"].append(
            {**image, "captions": [right, wrong], "human_prefers": 0, "category": "HC" if number % 2 else "MM"}
        )
        sets["foils"].append({**image, "baseline": right, "foil": wrong})
        text = wrong if number % 3 == 0 else right
        sets["tokens"].append({**image, "caption": text, "words": [[word, text == wrong] for word in text.split()]})
        names = ["best", "middle", "worst"]
        first, second = names[number % 3 : number % 3 + 2] if number % 3 < 2 else (names[0], names[2])
        won = first if number % 8 else second  # people prefer the lower one of every eighth battle
        texts = {"caption1": right if won == first else wrong, "caption2": wrong if won == first else right}
        sets["systems"].append({**image, "source1": first, "source2": second, "winner": won, **texts})
    for name, records in sets.items():
        (folder / f"{name}.json").write_text(json.dumps(records))
    return folder


def test_every_form_has_its_coefficient(folder):
    make_sets(folder / "sets")
    result = results("sets", "--metrics", "rouge_l,bleu.bleu_1")
    compared = {each["name"]: each["comparison"]["coefficient"] for each in result["sets"]}
    assert compared == {
        "foils": "accuracy",
        "pairs": "accuracy",
        "ratings": "tau_c",
        "systems": "system_spearman",
        "tokens": "auroc",
    }
    values = {each["name"]: each["metrics"]["rouge_l"][compared[each["name"]]]["value"] for each in result["sets"]}
    assert values["ratings"] > 0.5
    assert {name: value for name, value in values.items() if name != "ratings"} == {
        "foils": 1,
        "pairs": 1,
        "systems": pytest.approx(1),
        "tokens": 1,
    }
    clusters = {each["name"]: each["n_clusters"] for each in result["sets"]}
    assert set(clusters.values()) == {12}


def test_one_annotator_is_the_ceiling(folder):
    make_sets(folder / "sets")
    result = results("sets/ratings.json", "--metrics", "rouge_l")
    records = json.loads((folder / "sets" / "ratings.json").read_text())
    first, second = (np.array([record["human"][place] for record in records]) for place in (0, 1))
    # one annotator against the other, in both directions: tau-b is symmetric
    assert result["ceiling"]["tau_b"]["value"] == pytest.approx(stats.kendalltau(first, second).statistic)
    assert "one annotator" in mmeval("meta", "sets/ratings.json", "--metrics", "rouge_l").stdout


def test_the_table_of_metrics_by_sets(folder):
    make_sets(folder / "sets")
    make_folder(folder / "flickr8k")
    out = mmeval("meta", "sets/pairs.json", "flickr8k", "--metrics", "rouge_l,bleu.bleu_1").stdout
    assert re.search(r"metric +pairs +flickr8k-expert +flickr8k-cf", out)
    assert re.search(r"accuracy +tau-c +tau-b", out)
    assert re.search(r"ROUGE-L +100\.0 ▲", out)
    assert re.search(r"one annotator +(–|-|—) ", out)
    several = mmeval("meta", "sets", "--human", "ann", code=1).stderr
    assert "--human has no effect on several sets of judgments" in several


def test_people_who_see_no_difference_are_left_out(folder):
    make_sets(folder / "sets")
    path = folder / "sets" / "pairs.json"
    records = json.loads(path.read_text())
    records[0]["human_prefers"] = "tie"
    path.write_text(json.dumps(records))
    result = results("sets/pairs.json", "--metrics", "rouge_l")
    assert result["n_judgments"] == 23
    assert result["left_out"] == [{"reason": "people see no difference", "judgments": 1}]
    assert set(result["metrics"]["rouge_l"]) == {"accuracy", "strict", "HC", "MM", "signature"}
