"""`mmeval leaderboard`: what a participant can do to the scores of a board, which is to answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from multimodal_eval import load_run
from multimodal_eval.analysis.leaderboard import read_leaderboard
from tests.cli.command_line import mmeval
from tests.cli.leaderboard import board, ranks, refused
from tests.cli.test_leaderboard_samples import captions, sent

COUNT = 200
ROUGE = ("--metrics", "rouge_l")
FAILED = "Error: 429 Too Many Requests"


@pytest.fixture
def references(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return captions(tmp_path, COUNT)


def written(name, rows):
    """A submission with any columns."""
    Path("jsonl", f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def rows_of(texts, **columns):
    return [{"id": str(n), "generated_answer": text, **columns} for n, text in enumerate(texts)]


def lone(name, rows):
    for path in Path("jsonl").iterdir():
        path.unlink()
    written(name, rows)


def values(result):
    return {row["name"]: row["value"] for row in result["standings"]}


# only ids and answers are read


@pytest.mark.parametrize(
    "columns",
    [
        {"caption": "wrong"},
        {"references": ["wrong"]},
        {"expected_answer": "wrong"},
        {"error": "timeout"},
        {"metadata": {"a": 1}, "group": "one", "annotations": {"x": "wrong"}},
        {"image": "/etc/passwd", "logprobs": [-1.0], "perplexity": 1.5, "choices": 5, "epoch": "x"},
    ],
)
def test_a_lone_submission_cannot_bring_its_own_references(references, columns):
    lone("liar", rows_of(["wrong"] * COUNT, **columns))
    result = board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")
    (row,) = result["standings"]
    assert (row["value"], row["failures"], result["left_out"]) == (0, {}, 0)
    (sample, *_) = load_run("runs/liar").samples()
    assert (sample.caption, sample.error, sample.group, sample.metadata) == (None, None, None, {})
    assert sample.references == references[:1]


def test_extra_columns_change_nothing_and_are_named_once(references):
    before = board("data.jsonl", "jsonl", *ROUGE, "-o", "before")
    written("good", rows_of(references, caption="x", error="failed", references=["x"], note=1))
    done = mmeval("leaderboard", "data.jsonl", "jsonl", *ROUGE, "-o", "after", "--workers", "1")
    after = json.loads(Path("after", "leaderboard.json").read_text())
    assert after["standings"] == before["standings"]
    note = "! good: ignored: 4 columns beside the id and the answer ('caption', 'error', 'references', 'note')"
    assert note in done.stdout


def test_columns_of_any_type_abort_nothing(references):
    rows = rows_of(references)
    for n, value in enumerate(({"a": 1}, [1], "x", 5, None)):
        rows[n]["caption"] = rows[n]["boxes"] = rows[n]["mixed"] = value
    written("odd", rows)
    result = board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")
    assert values(result)["odd"] == values(result)["good"]


def test_coco_results_with_extra_keys(references):
    results = json.loads(Path("coco", "poor.json").read_text())
    extra = [{**row, "references": [row["caption"]], "error": "x", "id": 7} for row in results]
    Path("coco", "extra.json").write_text(json.dumps(extra))
    result = board("coco.json", "coco", "--metrics", "rouge_l", "-o", "runs")
    assert values(result)["extra"] == values(result)["poor"] < values(result)["good"]


def test_the_organiser_names_the_column_of_the_answer(references):
    lone("mine", [{"id": str(n), "generated_answer": "x", "reply": text} for n, text in enumerate(references)])
    assert values(board("data.jsonl", "jsonl", *ROUGE, "-o", "plain")) == {"mine": 0}
    result = board("data.jsonl", "jsonl", *ROUGE, "--map", "generated_answer=reply", "-o", "mapped")
    assert values(result) == {"mine": pytest.approx(1)}
    message = refused("data.jsonl", "jsonl", *ROUGE, "--map", "generated_answer=absent", "-o", "absent")
    assert "--map names the column 'absent', which no record has" in message


@pytest.mark.parametrize("column", ["response", "prediction", "answer", "caption", "Model Answer"])
def test_usual_names_of_the_answer(references, column):
    lone("mine", [{"id": str(n), column: text} for n, text in enumerate(references)])
    assert values(board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")) == {"mine": pytest.approx(1)}


def test_a_column_that_is_surely_the_answer_comes_first(references):
    lone("mine", [{"id": str(n), "caption": "x", "response": text} for n, text in enumerate(references)])
    assert values(board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")) == {"mine": pytest.approx(1)}


def test_every_format_is_read_in_the_same_way(references):
    import gzip

    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = rows_of(references, caption="wrong", error="failed")
    Path("jsonl", "list.json").write_text(json.dumps(rows))
    Path("jsonl", "packed.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    )
    pq.write_table(pa.Table.from_pylist(rows), "jsonl/columns.parquet")
    for suffix, mark in (("csv", ","), ("tsv", "\t")):
        lines = [mark.join(rows[0]), *(mark.join(row.values()) for row in rows)]
        Path("jsonl", f"{suffix}_file.{suffix}").write_text("\n".join(lines) + "\n")
    result = board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")
    assert result["refused"] == []
    names = ("list", "packed", "columns", "csv_file", "tsv_file", "good")
    assert {values(result)[name] for name in names} == {values(result)["good"]}


def test_bad_files_are_refused_and_the_others_are_ranked(references):
    Path("jsonl", "nan.jsonl").write_text('{"id": "0", "generated_answer": NaN}\n')
    written("number", rows_of([5] * COUNT))
    written("twice", [*rows_of(references), *rows_of(references[:1])])
    written("few", rows_of(references[:10]))
    written("other", [{"id": n, "text": "x"} for n in range(COUNT)])
    Path("jsonl", "object.json").write_text("{}")
    Path("jsonl", "broken.csv").write_bytes(b"id,generated_answer\n\xff,x\n")
    result = board("data.jsonl", "jsonl", *ROUGE, "-o", "runs", code=1)
    assert ranks(result) == [("good", 1), ("poor", 2)]
    reasons = {row["name"]: row["public_reason"].partition(":")[0] for row in result["refused"]}
    assert reasons == {
        "broken": "ENCODING",
        "few": "MISSING",
        "nan": "NONFINITE",
        "number": "TYPE",
        "object": "FORMAT",
        "other": "COLUMNS",
        "twice": "DUPLICATE",
    }


# failed answers


def nearly(references, text=FAILED, count=2):
    """The references as answers, with a few failures."""
    return [text if n < count else reference for n, reference in enumerate(references)]


@pytest.mark.parametrize(
    ("text", "reason"), [(FAILED, "error_message"), ("[ERROR] x", "error_message"), (None, "no_answer")]
)
def test_a_failed_answer_is_the_worst_of_its_author_and_changes_no_other(references, text, reason):
    written("nearly", rows_of(["wrong"] * COUNT))
    before = board("data.jsonl", "jsonl", *ROUGE, "-o", "before")
    written("nearly", rows_of(nearly(references, text)))
    after = board("data.jsonl", "jsonl", *ROUGE, "-o", "after")
    assert (after["samples"], after["left_out"]) == (COUNT, 0)
    assert (after["failed_answers"], after["signature"].endswith("|failures:worst")) == ("worst", True)
    for name in ("good", "poor"):
        old, new = (next(row for row in each["standings"] if row["name"] == name) for each in (before, after))
        assert [old[key] for key in ("value", "stderr", "low", "high", "numbers")] == [
            new[key] for key in ("value", "stderr", "low", "high", "numbers")
        ]
    row = next(row for row in after["standings"] if row["name"] == "nearly")
    assert row["value"] == row["numbers"]["rouge_l"] == pytest.approx((COUNT - 2) / COUNT)
    assert row["behind"] == pytest.approx(2 / COUNT)
    assert row["failures"] == {reason: 2}
    run = load_run("after/nearly")  # keeps the status of the failure
    assert run["rouge_l"]["n_scored"] == COUNT - 2
    assert run["rouge_l"]["value"] == pytest.approx(1)


def test_failing_is_never_better_than_a_bad_answer(references):
    texts = [text if n % 4 == 0 else "a man" for n, text in enumerate(references)]
    sent(Path("jsonl"), "chooses", [FAILED if n % 4 else text for n, text in enumerate(texts)])
    result = board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")
    assert values(result)["chooses"] <= values(result)["poor"]
    assert values(result)["chooses"] == pytest.approx(1 / 4)


def test_a_lone_submission_cannot_choose_its_samples(references):
    lone("alone", rows_of([text if n < 5 else FAILED for n, text in enumerate(references)]))
    result = board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")
    assert (values(result), result["left_out"]) == ({"alone": pytest.approx(5 / COUNT)}, 0)


def test_a_failed_answer_is_a_blank_one_in_a_corpus_score(references):
    sent(Path("jsonl"), "failed", nearly(references))
    sent(Path("jsonl"), "blank", nearly(references, ""))
    result = board("data.jsonl", "jsonl", "--metrics", "bleu", "-o", "runs")
    rows = {row["name"]: row for row in result["standings"]}
    figures = ("value", "stderr", "low", "high", "behind", "place")
    assert [rows["failed"][key] for key in figures] == [rows["blank"][key] for key in figures]
    assert rows["failed"]["value"] < 1 == pytest.approx(load_run("runs/failed")["bleu"]["value"])
    assert (result["failed_answers"], result["signature"].endswith("|failures:blank")) == ("blank", True)


def test_other_metrics_count_them_too(references):
    sent(Path("jsonl"), "nearly", nearly(references))
    result = board("data.jsonl", "jsonl", "--metrics", "rouge_l,exact_match,wer", "-o", "runs")
    row = next(row for row in result["standings"] if row["name"] == "nearly")
    assert row["numbers"]["exact_match"] == row["counted"]["exact_match"]["value"] == (COUNT - 2) / COUNT
    words = [len(text.split()) for text in references]
    assert row["numbers"]["wer"] == pytest.approx(sum(words[:2]) / sum(words))  # without a worst value: as blank ones
    assert row["counted"]["wer.hits"]["value"] == pytest.approx(1 - sum(words[:2]) / sum(words))
    assert load_run("runs/nearly")["wer"]["value"] == 0
    assert [row.failures for row in read_leaderboard("runs").standings] == [{}, {"error_message": 2}, {}]


def test_lower_is_better(references):
    sent(Path("jsonl"), "nearly", nearly(references))
    result = board("data.jsonl", "jsonl", "--metrics", "chair_s", "-o", "runs")
    # No reference has an object of COCO but dogs, cats, birds, cars and chairs: only failures score 1.
    assert values(result)["nearly"] == pytest.approx(2 / COUNT + values(result)["good"])


# metrics without a worst value


def test_a_metric_without_a_worst_value_needs_a_choice_before_anything_is_scored(references):
    message = refused("data.jsonl", "jsonl", "--metrics", "wer", "-o", "runs")
    assert "wer has no worst value that a failed answer could count as. Choose --failed-answers blank" in message
    assert "--failed-answers left-out" in message
    assert not Path("runs").exists()
    sent(Path("jsonl"), "nearly", nearly(references))
    result = board("data.jsonl", "jsonl", "--metrics", "wer", "--failed-answers", "blank", "-o", "blank")
    words = [len(text.split()) for text in references]
    assert values(result)["nearly"] == pytest.approx(sum(words[:2]) / sum(words))  # all words are deleted
    message = refused("data.jsonl", "jsonl", "--metrics", "wer", "--failed-answers", "1", "-o", "runs")
    assert "wer is not a mean of values: no single value can be set" in message


def test_the_value_of_a_failed_answer(references):
    sent(Path("jsonl"), "nearly", nearly(references))
    result = board("data.jsonl", "jsonl", *ROUGE, "--failed-answers", "0.5", "-o", "runs")
    assert values(result)["nearly"] == pytest.approx(1 - 2 * 0.5 / COUNT)
    assert result["signature"].endswith("|failures:0.5")
    for value in ("2", "nan", "-1"):
        message = refused("data.jsonl", "jsonl", *ROUGE, f"--failed-answers={value}", "-o", "no")
        assert "--failed-answers must be a value of rouge_l, from 0 to 1" in message
    assert "must be worst, blank, left-out or a value" in refused(
        "data.jsonl", "jsonl", *ROUGE, "--failed-answers", "zero", "-o", "no", code=2
    )


# samples that nobody can be scored for


def test_samples_without_a_reference_are_left_out_for_all(references):
    lines = Path("data.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    rows[0]["references"] = rows[1]["references"] = None
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sent(Path("jsonl"), "nearly", nearly(references, count=4))
    result = board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")
    assert result["left_out"] == 2
    row = next(row for row in result["standings"] if row["name"] == "nearly")
    assert row["failures"] == {"error_message": 2}  # of the four, two have no reference
    assert row["value"] == pytest.approx((COUNT - 4) / (COUNT - 2))


PLUGIN = """
from multimodal_eval import metric

@metric("picky", version="1", needs=("generated_answer", "references"), bounds=(0, 1))
def picky(sample):
    if "maybe" in (sample.generated_answer, *sample.references):
        return None
    return float(sample.generated_answer in sample.references)
"""


def test_the_trial_with_a_reference_tells_gold_from_answers(references):
    """The metric has no value for `maybe`: as the gold answer, nobody is to blame for it."""
    Path("picky.py").write_text(PLUGIN)
    rows = [{"id": str(n), "references": ["maybe" if n == 0 else "yes"]} for n in range(10)]
    Path("gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lone("alone", rows_of(["yes"] * 9 + ["maybe"]))
    result = board("gold.jsonl", "jsonl", "--metrics", "picky", "--plugin", "picky.py", "-o", "runs")
    (row,) = result["standings"]
    assert (row["value"], row["failures"], result["left_out"]) == (8 / 9, {"not_scorable": 1}, 1)


def test_an_answer_that_a_metric_cannot_score_is_a_failed_one(references):
    """CHAIR_i is not defined for an answer without objects, but it is for its reference."""
    lone("alone", rows_of(["nothing at all" if n < 2 else text for n, text in enumerate(references)]))
    result = board("data.jsonl", "jsonl", "--metrics", "chair_i", "-o", "runs")
    (row,) = result["standings"]
    assert (row["failures"], result["left_out"]) == ({"not_scorable": 2}, 0)
    assert row["value"] > load_run("runs/alone")["chair_i"]["value"]


def test_the_organiser_leaves_samples_out_by_the_gold_file(references):
    whole = Path("data.jsonl").read_text().splitlines(keepends=True)
    Path("data.jsonl").write_text("".join(whole[2:]))
    sent(Path("jsonl"), "nearly", nearly(references))
    result = board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")
    assert (result["samples"], result["refused"]) == (COUNT - 2, [])
    assert values(result)["nearly"] == pytest.approx(1)


def test_with_allow_partial_missing_ids_are_failed_answers(references):
    sent(Path("jsonl"), "half", references[: COUNT // 2])
    result = board("data.jsonl", "jsonl", *ROUGE, "--allow-partial", "-o", "runs")
    row = next(row for row in result["standings"] if row["name"] == "half")
    assert (row["value"], row["failures"], result["left_out"]) == (pytest.approx(0.5), {"no_answer": 100}, 0)


# what people see


def test_the_board_says_who_failed_what_in_80_columns(references, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    texts = nearly(references)
    texts[5] = None
    sent(Path("jsonl"), "nearly", texts)
    out = mmeval("leaderboard", "data.jsonl", "jsonl", *ROUGE, "-o", "runs", "--workers", "1").stdout
    assert "! Failed answers count as the worst value of the metric:\n" in out
    assert "  nearly: 3 (1 without an answer, 2 with an error message)\n" in out
    assert max(len(line) for line in out.splitlines() if re.match(r"[\d─]|!|  nearly", line)) <= 80
    again = mmeval("leaderboard", "--from", "runs").stdout
    assert "nearly: 3 (1 without an answer, 2 with an error message)" in again


def test_a_board_of_an_older_version_is_opened(references):
    board("data.jsonl", "jsonl", *ROUGE, "-o", "runs")
    content = json.loads(Path("runs/leaderboard.json").read_text())
    del content["failed_answers"]
    for row in content["standings"]:
        del row["failures"]
    Path("runs/leaderboard.json").write_text(json.dumps(content))
    older = read_leaderboard("runs")
    assert (older.failed_answers, older.standings[0].failures, older.standings[0].counted) == ("left-out", {}, {})
    assert "Failed" not in mmeval("leaderboard", "--from", "runs").stdout
