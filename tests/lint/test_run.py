"""The lint of a run folder: written with the results, rebuilt if it is missing, always the same bytes."""

from __future__ import annotations

import json
from importlib.resources import files

import msgspec
import pytest

from multimodal_eval import Sample, evaluate, load_run, metric, rescore, resume
from multimodal_eval.data.runs import storage
from tests.edited_runs import stored_json, write_json
from tests.parts import set_part_size

NOUNS = ["dog", "cat", "horse", "bird", "cow"]


def samples(count=50):
    return [
        Sample(
            id=f"s{number}",
            references=[f"a {NOUNS[number % 5]} with number {number} runs", f"the {NOUNS[number % 5]}"],
            generated_answer="" if number % 9 == 0 else f"A {NOUNS[number // 10]} with number {number // 2} on the",
            group=f"g{number}",
        )
        for number in range(count)
    ]


def codes(run):
    return [finding["code"] for finding in run.lint()["findings"]]


def test_a_run_is_linted_at_its_end(tmp_path):
    run = evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    stored = stored_json(tmp_path / "run" / "lint.json")
    assert stored == run.lint()
    assert stored["n"] == 50
    assert codes(run) == ["EMPTY_ANSWER", "DUPLICATE_ANSWERS", "TRUNCATED"]
    repeated = stored["findings"][1]
    assert repeated["answers"][0]["count"] == 2
    assert "lint" not in run.results


@pytest.mark.parametrize("size", [1, 7, 50])
def test_parts_of_any_size_give_the_same_bytes(monkeypatch, tmp_path, size):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "whole")
    set_part_size(monkeypatch, size)
    evaluate(samples(), metrics=["cider"], output=tmp_path / "parts")
    assert (tmp_path / "parts" / "lint.json").read_bytes() == (tmp_path / "whole" / "lint.json").read_bytes()


def test_a_missing_or_invalid_file_is_rebuilt(tmp_path):
    run = evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    file = tmp_path / "run" / "lint.json"
    before = file.read_bytes()
    for content in (None, b"{", b'{"format": 0, "findings": []}'):
        file.unlink() if content is None else file.write_bytes(content)
        assert load_run(run.path).lint() == stored_json(file)
        assert file.read_bytes() == before
        assert file.read_bytes() == before


def test_a_read_only_folder_is_linted(tmp_path, monkeypatch):
    run = evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    expected = run.lint()
    (tmp_path / "run" / "lint.json").unlink()

    def refused(*arguments, **settings):
        raise PermissionError

    monkeypatch.setattr(storage, "write_atomically", refused)
    assert run.lint() == expected
    assert not (tmp_path / "run" / "lint.json").exists()


def test_a_run_killed_before_lint_becomes_complete(tmp_path, monkeypatch):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "whole")

    def killed(*arguments, **settings):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("multimodal_eval.data.runs.run_lint.lint_of", killed)
        with pytest.raises(KeyboardInterrupt):
            evaluate(samples(), metrics=["cider"], output=tmp_path / "broken")
    assert not (tmp_path / "broken" / "results.json").exists()  # it is the last file
    assert not (tmp_path / "broken" / "lint.json").exists()
    resume(tmp_path / "broken")
    for name in ("results.json", "lint.json"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert json.loads((tmp_path / "broken" / "run.json").read_text())["state"] == "done"


def test_parts_scored_now_are_not_read_again(tmp_path, monkeypatch):
    """Earlier parts are read again, with the same facts."""
    set_part_size(monkeypatch, 7)
    monkeypatch.setattr("multimodal_eval.data.runs.run_lint.facts_of", None)
    run = evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    monkeypatch.undo()
    before = (tmp_path / "run" / "lint.json").read_bytes()
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    write_json(tmp_path / "run" / "run.json", info | {"state": "scoring", "finished": None})
    (tmp_path / "run" / "lint.json").unlink()
    (tmp_path / "run" / "scores" / "part-00003.parquet").unlink()
    assert resume(run.path).path == run.path
    assert (tmp_path / "run" / "lint.json").read_bytes() == before


def test_samples_without_group_or_image_are_separate_units():
    rows = [{"id": str(n), "references": [f"number {n}", "it"], "generated_answer": "yes"} for n in range(20)]
    assert "DUPLICATE_ANSWERS" in codes(evaluate(rows, metrics=["cider"]))


def test_rescoring_lints_the_new_values(tmp_path):
    metric("constant")(lambda sample: 0.5)
    first = evaluate(samples(), metrics=["cider"], output=tmp_path / "first")
    second = rescore(first, {"metrics": ["constant"]}, output=tmp_path / "second")
    assert (tmp_path / "second" / "lint.json").exists()
    assert codes(second) == [*codes(first), "NO_VARIANCE"]


def test_bounds_come_from_the_run():
    @metric("always", bounds=(0, 1))
    def always(sample):
        return 0.0 if sample.id == "s3" else 1.0

    run = evaluate(samples(), task="mine", tasks={"mine": {"headline": "always", "metrics": ["always"]}})
    findings = [(finding["code"], finding["metric"]) for finding in run.lint()["findings"] if finding["metric"]]
    assert findings == [("CEILING", "always"), ("CEILING", "composite_score")]
    assert run.info.bounds == {"always": (0, 1), "composite_score": (0, 1)}


def test_small_corpora():
    run = evaluate(samples(5), metrics=["cider", "rouge_l"])
    (finding,) = [finding for finding in run.lint()["findings"] if finding["code"] == "DEGENERATE_CORPUS"]
    assert finding["what"].endswith("of cider")


@pytest.mark.parametrize(("metrics", "expected"), [(["wer"], False), (["rouge_l"], True), (["rouge_l", "cer"], False)])
def test_right_transcripts_are_not_copies(metrics, expected):
    texts = [f"the train number {number} leaves at noon" for number in range(20)]
    rows = [{"id": text, "generated_answer": text, "references": [text]} for text in texts]
    assert ("COPIES_REFERENCE" in codes(evaluate(rows, metrics=metrics))) is expected


def test_error_patterns_of_the_run():
    run = evaluate(samples(), metrics=["cider"], error_patterns=["A "])
    assert "TRUNCATED" not in codes(run)
    assert "UNSCORED_SHARE" in codes(run)


def test_the_only_warning_of_the_demo_is_its_blank_answer():
    data = files("multimodal_eval.data") / "demo" / "hallucination.jsonl"
    run = evaluate(data, data.with_name("hallucination.alba.jsonl"), metrics=["cider", "coco"])
    (finding,) = run.lint()["findings"]
    assert (finding["code"], finding["count"], finding["examples"]) == ("EMPTY_ANSWER", 1, ["birds-wire"])
    # The same captions without full stops get no other warning.
    bare = [msgspec.structs.replace(s, generated_answer=s.generated_answer.rstrip(".")) for s in run.samples()]
    assert codes(evaluate(bare, metrics=["cider"])) == ["EMPTY_ANSWER"]


def test_linting_reports_progress():
    seen = []
    evaluate(samples(), metrics=["cider"], progress=lambda stage, done, total: seen.append((stage, done, total)))
    assert seen[-1] == ("linting", 50, 50)


def test_a_run_without_lint_is_linted_on_request(tmp_path):
    from multimodal_eval import evaluate

    rows = [{"id": str(i), "generated_answer": "  ", "references": ["a dog"]} for i in range(3)]
    run = evaluate(rows, metrics=["rouge_l"], output=tmp_path / "run", skip_lint=True)
    assert not (tmp_path / "run" / "lint.json").exists()
    assert not run.is_linted
    assert "EMPTY_ANSWER" in {finding["code"] for finding in run.lint()["findings"]}
    assert run.is_linted
    plain = evaluate(rows, metrics=["rouge_l"], output=tmp_path / "plain")
    assert plain.is_linted
    assert plain.lint() == run.lint()
