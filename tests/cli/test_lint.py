"""The command `lint`, and the findings that `score` shows."""

from __future__ import annotations

import json

import pytest

from tests.cli.command_line import mmeval
from tests.edited_runs import stored_json


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_lint(folder):
    rows = [
        {
            "id": f"s{n}",
            "references": [f"a dog number {n} runs", f"dog {n}"],
            "generated_answer": f"a dog with number {n} runs",
        }
        for n in range(20)
    ]
    rows[3]["generated_answer"] = "a [bold]dog[/]</s>\x1b[31m"
    (folder / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = mmeval("score", "odd.jsonl", "--metrics", "cider,rouge_l", "-o", "run").stdout
    assert "! MARKUP: 1 of 20 (5.0%): answers with special tokens" in out
    assert "mmeval lint run" in out
    out = mmeval("score", "odd.jsonl", "--metrics", "cider,rouge_l", "-o", "again", "--format", "json").stdout
    lint = json.loads((folder / "again" / "lint.json").read_text())
    assert json.loads(out)["lint"] == lint["findings"] != []
    assert "lint" not in json.loads((folder / "again" / "results.json").read_text())
    out = mmeval("lint", "run").stdout
    assert "scored like words of the answer" in " ".join(out.split())
    assert "s3" in out
    stored = stored_json(folder / "run" / "lint.json")
    assert json.loads(mmeval("lint", "run", "--format", "json").stdout) == {**stored, "unscored": [], "warned": []}
    done = mmeval("lint", "run", "--fail-on", "truncated,MARKUP", code=3)
    assert "lint warnings: MARKUP" in done.stderr
    assert "MARKUP" in done.stdout
    mmeval("lint", "run", "--fail-on", "TRUNCATED", "--fail-on", "EMPTY_ANSWER,FLOOR")
    assert "Did you mean 'MARKUP'?" in mmeval("lint", "run", "--fail-on", "MARKUPS", code=2).stderr
    assert "no run.json" in mmeval("lint", "nowhere", code=1).stderr


def test_lint_of_a_clean_run_and_of_a_run_without_lint_json(folder):
    rows = [
        {
            "id": f"s{n}",
            "references": ["the dog " + "runs " * (1 + n % 3) + word],
            "generated_answer": f"a {word} dog, {n}",
        }
        for n, word in enumerate("red blue old new wet dry big small fast slow loud calm".split())
    ]
    (folder / "clean.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = mmeval("score", "clean.jsonl", "--metrics", "rouge_l", "-o", "run").stdout
    assert "mmeval lint" not in out
    (folder / "run" / "lint.json").unlink()
    assert "12 samples, no warnings about the texts" in mmeval("lint", "run").stdout
    assert (folder / "run" / "lint.json").exists()


def test_metrics_with_the_same_warning_share_a_line(folder):
    rows = [
        {"id": f"s{n}", "references": [f"dog {n} runs"], "generated_answer": f"cat sits {n + 50}"} for n in range(20)
    ]
    (folder / "floor.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = mmeval("score", "floor.jsonl", "--metrics", "rouge_l,cider_d", "-o", "run").stdout
    assert "! NO_VARIANCE: ROUGE-L, CIDEr-D: 20 of 20 (100.0%): values, all equal to 0" in out
    assert "! FLOOR: ROUGE-L, CIDEr-D: 20 of 20 (100.0%): values at the bound 0" in out


def test_lint_shows_the_reasons_that_a_run_promises(folder):
    rows = [
        {"id": "a", "references": ["a dog"], "generated_answer": "a dog"},
        {"id": "b", "references": ["a cat"], "generated_answer": "Error: 429 Too Many Requests"},
        {"id": "c", "references": ["a cat"]},
        {"id": "d", "references": ["a bird"]},
    ]
    (folder / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = mmeval("score", "some.jsonl", "--metrics", "rouge_l,exact_match", "-o", "run").stdout
    assert "samples and reasons: mmeval lint run" in out
    out = " ".join(mmeval("lint", "run").stdout.split())
    assert "ROUGE-L, exact_match: 2 of 4 (50.0%): no generated_answer examples: c, d" in out
    assert (
        "1 of 4 (25.0%): the answer is a generator's error message: 'Error: 429 Too Many Requests' examples: b" in out
    )
    unscored = json.loads(mmeval("lint", "run", "--format", "json").stdout)["unscored"]
    assert [(each["status"], each["count"], each["ids"]) for each in unscored] == [
        ("missing_input", 2, ["c", "d"]),
        ("error", 1, ["b"]),
    ]


def test_lint_shows_the_answers_in_which_a_rule_found_nothing(folder):
    quiz = {"question": "Who?", "choices": ["a girl", "a man"], "expected_answer": "A"}
    answers = ["A", "B", "I cannot tell", "Nobody is there"]
    rows = [{"id": f"q{n}", **quiz, "generated_answer": answer} for n, answer in enumerate(answers)]
    (folder / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = mmeval("score", "quiz.jsonl", "--task", "mcq", "-o", "run").stdout
    assert "2 of 4 (50.0%): answers in which the rule found nothing" in out
    assert "samples and reasons: mmeval lint run" in out
    out = " ".join(mmeval("lint", "run").stdout.split())
    found_nothing = "multiple_choice: 2 of 4 (50.0%): answers in which the rule found nothing examples: q2, q3"
    assert f"scored samples with a warning ! {found_nothing}" in out
    (warned,) = json.loads(mmeval("lint", "run", "--format", "json").stdout)["warned"]
    assert (warned["reason"], warned["ids"]) == ("unread", ["q2", "q3"])
