"""The scoring program in the layout of the platform, with good, wrong and malicious submissions."""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from multimodal_eval import evaluate
from tests.contests.shared_task.tasks import GOOD, SECRETS, Platform, jsonl, platform


def scored(codabench: Platform) -> dict[str, float]:
    assert codabench.score() == 0
    scores: dict[str, float] = json.loads((codabench.output / "scores.json").read_text())
    return scores


def refused(codabench: Platform, capsys: pytest.CaptureFixture[str], status: int = 1) -> str:
    """The text of a refusal, which is the same on both outputs and has no secret."""
    assert codabench.score() == status
    assert not (codabench.output / "scores.json").exists()
    text = capsys.readouterr().out
    page = (codabench.output / "detailed_results.html").read_text()
    for secret in (*SECRETS, "Traceback", str(codabench.app)):
        assert secret not in text
        assert secret not in page
    assert "not scored" in page or status == 2
    return text


def test_the_command_of_the_bundle_scores_a_submission(codabench: Platform) -> None:
    codabench.submit("answers.jsonl", jsonl(GOOD))
    codabench.submit("metadata", "exitCode: 0\n")  # of the platform
    done = codabench.call()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Things: 4 answers scored" in done.stdout
    # Two of four answers equal their reference: "a" and "d".
    assert json.loads((codabench.output / "scores.json").read_text())["exact_match"] == 0.5
    assert sorted(path.name for path in codabench.output.iterdir()) == ["detailed_results.html", "scores.json"]


def test_the_scores_are_those_of_a_run(codabench: Platform, tmp_path: Path) -> None:
    path = codabench.submit("answers.jsonl", jsonl(GOOD))
    scores = scored(codabench)
    data = tmp_path / "data_without_answers.jsonl"
    data.write_text((tmp_path / "data.jsonl").read_text().replace('"prediction": "old"', '"other": "old"'))
    run = evaluate(data, path, metrics=["exact_match", "bleu"])
    assert scores["exact_match"] == run["exact_match"]["value"]
    assert scores["exact_match_low"] == run["exact_match"]["low"]
    assert scores["exact_match_high"] == run["exact_match"]["high"]
    assert scores["bleu"] == run["bleu"]["value"]
    assert scores["bleu_1"] == run["bleu_1"]["value"]


def test_the_page_is_the_report_without_samples(codabench: Platform) -> None:
    codabench.submit("answers.jsonl", jsonl({**GOOD, "b": "<script>alert(1)</script>"}))
    scored(codabench)
    page = (codabench.output / "detailed_results.html").read_text()
    assert "Things" in page
    assert "exact_match" in page
    assert 'id="samples"' not in page
    assert "alert(1)" not in page
    for secret in SECRETS:
        assert secret not in page


def test_an_organiser_can_show_samples(tmp_path: Path) -> None:
    codabench = platform(tmp_path, details="samples")
    codabench.submit("answers.jsonl", jsonl(GOOD))
    scored(codabench)
    assert "ferries" in (codabench.output / "detailed_results.html").read_text()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep/er/Answers.JSONL", jsonl(GOOD)),
        ("answers.json", json.dumps([{"id": id, "prediction": answer} for id, answer in GOOD.items()])),
        ("answers.json", json.dumps([{"question_id": id, "answer": answer} for id, answer in GOOD.items()])),
        ("answers.json", json.dumps([{"image_id": id, "caption": answer} for id, answer in GOOD.items()])),
        ("answers.csv", "id,generated_answer\n" + "".join(f"{id},{answer}\n" for id, answer in GOOD.items())),
        ("answers.tsv", "generated_answer\tid\n" + "".join(f"{answer}\t{id}\n" for id, answer in GOOD.items())),
        ("answers.jsonl", "\ufeff" + jsonl(dict(reversed(GOOD.items())))),
    ],
)
def test_all_formats_have_the_same_scores(codabench: Platform, name: str, content: str) -> None:
    codabench.submit(name, content)
    assert scored(codabench)["exact_match"] == 0.5


def test_other_columns_change_nothing(codabench: Platform) -> None:
    # `error` would leave the sample out of the mean, and `references` would replace the references.
    extra = {"error": "time-out", "references": ["two boats"], "image": "/etc/passwd", "choices": 3}
    lines = [{"id": id, "generated_answer": answer, **extra} for id, answer in GOOD.items()]
    codabench.submit("answers.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert scored(codabench)["exact_match"] == 0.5


def test_an_answer_that_looks_like_an_error_counts(codabench: Platform) -> None:
    # In an ordinary run it is unscored. Here the mean stays that of all four samples: only "d" is right.
    codabench.submit("answers.jsonl", jsonl({**GOOD, "a": "Failed to obtain answer via API."}))
    assert scored(codabench)["exact_match"] == 0.25


def test_blank_answers_count_and_are_noted(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    codabench.submit("answers.jsonl", jsonl({**GOOD, "a": "", "b": "NaN"}))
    assert scored(codabench)["exact_match"] == 0.25
    text = capsys.readouterr().out
    assert "1 of 4 answers are blank" in text
    assert "1 answers are the text 'nan'" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (jsonl({"a": "x", "d": "7"}), "MISSING: 2 of 4 ids have no answer: 'b', 'c'"),
        (jsonl({**GOOD, "zz": "x"}), "UNKNOWN: 1 of 5 ids of the submission are not in the task: 'zz'"),
        (jsonl(GOOD) + jsonl({"b": "x"}), "answers.jsonl:5: DUPLICATE: the id 'b' is already on line 2"),
        (jsonl({**GOOD, "c": None}), "answers.jsonl:3: NO_ANSWER: `generated_answer` is missing or null"),
        (jsonl({**GOOD, "c": ["x"]}), "answers.jsonl:3: TYPE: `generated_answer` must be text"),
        (jsonl(GOOD).replace('"somebody"', "NaN"), "answers.jsonl:3:"),
        (jsonl({**GOOD, "c": "x" * 10_001}), "the answer has 10,001 characters, but at most 10,000 are allowed"),
        (jsonl(GOOD)[:-9], "answers.jsonl:4:"),
        ("", "EMPTY: the file has no records"),
        (
            '{"key": "a", "text": "x"}\n',
            "no column `id` and `generated_answer`. The first record has",
        ),
        (b"\xff\xfe\x00\x01", "answers.jsonl"),
        ("\x1b]0;owned\x07" * 3, "answers.jsonl:1:"),
    ],
)
def test_a_mistake_is_named(
    codabench: Platform, capsys: pytest.CaptureFixture[str], content: str | bytes, message: str
) -> None:
    codabench.submit("answers.jsonl", content)
    text = refused(codabench, capsys)
    assert message in text
    assert "\x1b" not in text


def test_all_mistakes_are_named_together(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    codabench.submit("answers.jsonl", jsonl({"a": 1, "zz": "x"}) + jsonl({"zz": "y"}))
    text = refused(codabench, capsys)
    for code in ("MISSING", "UNKNOWN", "DUPLICATE"):
        assert code in text


def test_a_mistake_is_named_once(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    codabench.submit("answers.jsonl", jsonl({**GOOD, "a": None, "b": {}}))
    assert "MISSING" not in refused(codabench, capsys)


def test_an_object_is_not_a_list_of_answers(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    codabench.submit("answers.json", json.dumps(GOOD))
    assert "the file is one JSON object. Write a list of objects" in refused(codabench, capsys)


def test_an_empty_submission(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no file of answers (.jsonl, .ndjson, .json, .csv, .tsv). It is empty" in refused(codabench, capsys)


def test_two_files(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    codabench.submit("first.jsonl", jsonl(GOOD))
    codabench.submit("second.csv", "id,generated_answer\n")
    assert "2 files of answers: 'first.jsonl', 'second.csv'. Send one" in refused(codabench, capsys)


def test_a_program_is_not_run(codabench: Platform, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w').close()\n"
    for name in ("sitecustomize.py", "multimodal_eval/__init__.py", "run.sh", "answers.pkl"):
        codabench.submit(name, code)
    codabench.submit("metadata.yaml", "command: python3 run.sh\n")
    assert "no file of answers" in refused(codabench, capsys)
    assert not mark.exists()


def test_a_link_is_not_followed(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    (codabench.res / "answers.jsonl").symlink_to(codabench.app / "input" / "ref" / "reference.jsonl")
    assert "'answers.jsonl' is a link. Send the file itself" in refused(codabench, capsys)


def test_a_linked_folder_is_not_followed(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    (codabench.res / "ref").symlink_to(codabench.app / "input" / "ref")
    assert "no file of answers" in refused(codabench, capsys)


def test_a_pipe_is_not_opened(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(codabench.res / "answers.jsonl")
    assert "not a regular file" in refused(codabench, capsys)


def test_a_huge_file_is_not_read(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    with codabench.submit("answers.jsonl", "").open("r+b") as file:
        file.truncate(101 << 20)  # a sparse file
    assert "'answers.jsonl' is larger than 100 MB" in refused(codabench, capsys)


def test_too_many_files(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1001):
        codabench.submit(f"{number}.txt", "")
    assert "more than 1,000 files" in refused(codabench, capsys)


def test_folders_without_an_end(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    codabench.submit("a/b/c/d/e/answers.jsonl", jsonl(GOOD))
    assert "more than 4 folders deep" in refused(codabench, capsys)


def archive(members: dict[str, bytes], modes: dict[str, int] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (modes or {}).get(name, stat.S_IFREG | 0o644) << 16
            made.writestr(entry, content)
    return buffer.getvalue()


def test_a_zip_in_the_zip_is_read(codabench: Platform) -> None:
    members = {"mine/answers.jsonl": jsonl(GOOD).encode(), "__MACOSX/._answers.jsonl": b"?"}
    codabench.submit("mine.zip", archive(members))
    assert scored(codabench)["exact_match"] == 0.5


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"answers.jsonl": b" " * (90 << 20)}, "larger than 300 times its packed size"),
        ({"answers.jsonl": b" " * (101 << 20)}, "larger than 100 MB unpacked"),
        ({"../../output/scores.json": b'{"exact_match": 1}'}, "leads out of the submission"),
        ({"/etc/answers.jsonl": b""}, "leads out of the submission"),
        ({"C:\\answers.jsonl": b""}, "leads out of the submission"),
        ({"a.jsonl": b"", "b.jsonl": b""}, "2 files of answers"),
        ({"inner.zip": b""}, "no file of answers"),
        ({f"{number}.txt": b"" for number in range(1001)}, "more than 1,000 files"),
    ],
)
def test_a_hostile_archive(
    codabench: Platform, capsys: pytest.CaptureFixture[str], members: dict[str, bytes], message: str
) -> None:
    codabench.submit("answers.zip", archive(members))
    assert message in refused(codabench, capsys)


def test_a_link_in_an_archive(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    members = {"answers.jsonl": b"/app/input/ref/reference.jsonl"}
    codabench.submit("answers.zip", archive(members, {"answers.jsonl": stat.S_IFLNK | 0o777}))
    assert "is a link" in refused(codabench, capsys)


def test_a_damaged_archive(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    codabench.submit("answers.zip", archive({"answers.jsonl": jsonl(GOOD).encode()})[:-30])
    assert "not a readable zip file" in refused(codabench, capsys)


def test_a_fault_of_the_organiser_shows_no_reference(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    codabench.submit("answers.jsonl", jsonl(GOOD))
    reference = codabench.app / "input" / "ref" / "reference.jsonl"
    reference.write_text(reference.read_text().replace('"exact_match"', '"zebra_metric"'))
    text = refused(codabench, capsys, status=2)
    assert "This is not a mistake in the submission. Please tell the organisers." in text
    assert "UnknownNameError" in text


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    from multimodal_eval.contests.codabench.program import main

    assert main(Path(), [], lambda _: "") == 2
    assert "usage: scoring.py INPUT OUTPUT" in capsys.readouterr().out


def test_a_page_that_fails_does_not_lose_the_scores(codabench: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    from multimodal_eval.contests.codabench.program import main

    def page(_: object) -> str:
        raise ValueError("zebra")

    codabench.submit("answers.jsonl", jsonl(GOOD))
    assert main(codabench.app / "program", codabench.arguments, page) == 0
    assert (codabench.output / "scores.json").is_file()
    text = capsys.readouterr().out
    assert "could not be written (ValueError)" in text
    assert "zebra" not in text


PLUGIN = """
from multimodal_eval import metric


@metric("shared_task_strict", needs=("generated_answer", "references"), bounds=(0, 1))
def compute_strict(sample):
    if sample.generated_answer == "boom":
        raise ValueError(f"not like {sample.references[0]}")
    if sample.generated_answer == "bang":
        raise ValueError("too loud")
    return 1.0
"""


def test_an_answer_without_a_score_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "strict.py").write_text(PLUGIN)
    (tmp_path / "run.yaml").write_text(
        f"task: strict\nplugins: [{tmp_path / 'strict.py'}]\n"
        "tasks: {strict: {metrics: [shared_task_strict, exact_match],"
        " weights: {shared_task_strict: 0.5, exact_match: 0.5}}}\n"
    )
    codabench = platform(tmp_path, metrics=None, config=str(tmp_path / "run.yaml"))
    codabench.submit("answers.jsonl", jsonl({**GOOD, "a": "boom", "b": "bang"}))
    done = codabench.call()
    assert done.returncode == 1
    # Left out of the mean, the two samples would raise the score.
    assert "UNSCORED: the answer cannot be scored (id 'a')" in done.stdout  # the reason has the reference
    assert "too loud" in done.stdout
    assert "UNSCORED: composite_score cannot score the answer: " in done.stdout
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS)
    codabench.submit("answers.jsonl", jsonl(GOOD))
    assert codabench.call().returncode == 0
    # Half of 1 for every sample, and half of 0.5 for exact matches.
    assert json.loads((codabench.output / "scores.json").read_text())["composite_score"] == 0.75
