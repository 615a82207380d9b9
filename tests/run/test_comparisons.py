"""Samples of comparisons: joined by id, with the data of the first run, and without a loss for a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from multimodal_eval import Sample, evaluate, generate
from multimodal_eval.core.errors import ConfigError, InputError, RunFolderError
from multimodal_eval.run.comparisons import (
    Answered,
    ComparisonInput,
    answered,
    comparison_samples,
    pairs_of_systems,
    system_of_column,
    system_of_file,
    system_of_run,
)


def run_of(path: Path, samples: list[Sample], **settings: Any) -> Answered:
    evaluate(samples, metrics=["exact_match"], output=path, **settings)
    return answered(path)


def sample(number: int, answer: str | None, **fields: Any) -> Sample:
    return Sample(f"s{number}", question=f"q{number}?", references=["yes"], generated_answer=answer, **fields)


@pytest.fixture
def runs(tmp_path: Path) -> list[Answered]:
    first = [sample(n, f"a{n}", group="g" if n < 2 else None, metadata={"level": n}) for n in range(4)]
    second = [sample(n, f"b{n}", group="g" if n < 2 else None) for n in (2, 0, 3, 1)]  # in another order
    return [run_of(tmp_path / "parrot", first), run_of(tmp_path / "owl", second)]


def test_a_pair_has_the_answers_and_names_of_both_systems(runs):
    pairs = list(comparison_samples(runs, [(0, 1)]))
    assert [pair.id for pair in pairs] == ["s0", "s1", "s2", "s3"]
    assert [(pair.generated_answer, pair.metadata["baseline"]) for pair in pairs] == [
        (f"a{number}", f"b{number}") for number in range(4)
    ]
    assert [pair.group for pair in pairs] == ["g", "g", "s2", "s3"]  # a sample without a group is its own cluster
    assert pairs[3].question == "q3?"
    assert pairs[3].references == ["yes"]
    assert pairs[3].metadata == {
        "level": 3,
        "baseline": "b3",
        "system": "parrot",
        "baseline_system": "owl",
        "sample": "s3",
    }


def test_pairs_are_made_whenever_they_are_read(runs):
    pairs = comparison_samples(runs, [(0, 1)])
    assert list(pairs) == list(pairs)
    source = ComparisonInput(pairs, runs)
    assert list(source.joined()) == list(pairs)
    assert list(source.places()) == [(None, number, f"s{number - 1}") for number in range(1, 5)]


def test_several_pairs_of_runs_follow_each_other(runs):
    pairs = list(comparison_samples(runs, [(0, 1), (1, 0)]))
    assert [pair.id for pair in pairs[:3]] == ["s0|1-2", "s0|2-1", "s1|1-2"]
    assert (pairs[1].generated_answer, pairs[1].metadata["baseline"]) == ("b0", "a0")
    assert pairs[1].metadata["system"] == "owl"


def test_a_failed_answer_is_an_error_of_the_pair(tmp_path):
    first = run_of(tmp_path / "a", [sample(0, "x"), sample(1, "[ERROR] lost"), sample(2, "x"), sample(3, "x")])
    second = run_of(
        tmp_path / "b", [sample(0, None, error="timed out"), sample(1, "x"), sample(2, "x"), sample(3, None)]
    )
    pairs = list(comparison_samples([first, second], [(0, 1)]))
    assert [pair.error for pair in pairs] == ["b: timed out", "a: '[ERROR] lost'", None, None]
    assert "baseline" not in pairs[3].metadata  # no answer at all: nothing to compare with


def test_each_run_has_its_own_patterns_of_error_messages(tmp_path):
    first = run_of(tmp_path / "a", [sample(0, "[ERROR] in the log means that")], error_patterns=[])
    second = run_of(tmp_path / "b", [sample(0, "sorry")], error_patterns=["sorry"], allow_empty=True)
    (pair,) = comparison_samples([first, second], [(0, 1)])
    assert pair.error == "b: 'sorry'"


def test_samples_of_one_run_only_are_an_error_unless_allowed(tmp_path):
    first = run_of(tmp_path / "a", [sample(n, "x") for n in (0, 1, 2)])
    second = run_of(tmp_path / "b", [sample(n, "y") for n in (3, 2, 1)])
    with pytest.raises(InputError) as refused:
        list(comparison_samples([first, second], [(0, 1)]))
    assert {problem.id for problem in refused.value.problems} == {"s0", "s3"}
    assert "To leave out such samples: --allow-partial" in str(refused.value)
    pairs = comparison_samples([first, second], [(0, 1)], allow_partial=True)
    assert [pair.id for pair in pairs] == ["s1", "s2"]
    third = run_of(tmp_path / "c", [sample(7, "z")])
    with pytest.raises(ConfigError, match=r"no sample of .*a is in a and c"):
        list(comparison_samples([first, third], [(0, 1)], allow_partial=True))


@pytest.mark.parametrize(
    ("field", "value"),
    [("question", "another?"), ("references", ["no"]), ("choices", ["x", "y"]), ("image", "other.png")],
)
def test_different_data_are_refused(tmp_path, field, value):
    fields: dict[str, Any] = {"question": "q?", "references": ["yes"], "choices": ["a", "b"], "image": "one.png"}
    first = run_of(tmp_path / "a", [Sample("1", generated_answer="x", **fields)])
    second = run_of(tmp_path / "b", [Sample("1", generated_answer="y", **{**fields, field: value})])
    with pytest.raises(InputError, match=f"`{field}` is not the same in a and in b"):
        list(comparison_samples([first, second], [(0, 1)]))


def test_all_differences_are_counted_and_some_are_listed(tmp_path):
    runs = [
        run_of(tmp_path / name, [sample(number, "x", metadata={}, choices=[name, "z"]) for number in range(150)])
        for name in "ab"
    ]
    with pytest.raises(InputError) as raised:
        comparison_samples(runs, [(0, 1)])
    assert (len(raised.value.problems), raised.value.total) == (100, 150)


def test_a_run_without_any_images_can_be_compared(tmp_path):
    first = run_of(tmp_path / "a", [sample(0, "x", image="one.png")])
    second = run_of(tmp_path / "b", [sample(0, "y")])
    (pair,) = comparison_samples([first, second], [(0, 1)])
    assert pair.image == "one.png"


def test_a_run_is_not_compared_with_itself(runs):
    with pytest.raises(ConfigError, match="cannot be compared with itself"):
        list(comparison_samples([runs[0], runs[0]], [(0, 1)]))


def test_a_generated_run_needs_no_scores(tmp_path):
    questions = [Sample(f"s{number}", question=f"q{number}?") for number in range(3)]
    for name in ("loud", "quiet"):
        model = (lambda request: request.prompt.upper()) if name == "loud" else (lambda request: "hm")
        generate(questions, model=model, output=tmp_path / name)
    pairs = list(comparison_samples([answered(tmp_path / name) for name in ("loud", "quiet")], [(0, 1)]))
    assert pairs[0].metadata["baseline"] == "hm"
    assert pairs[0].metadata["system_model"].startswith("python:")


def test_a_run_without_all_answers_is_refused(tmp_path, runs):
    import msgspec

    folder = runs[0].folder
    folder.write_info(msgspec.structs.replace(runs[0].info, parts=[]))
    with pytest.raises(RunFolderError, match=r"does not have all answers yet\. Continue it first with: mmeval score"):
        answered(folder.location)


def test_a_file_of_answers_is_a_baseline(tmp_path, runs):
    path = tmp_path / "human.jsonl"
    path.write_text("".join(f'{{"id": "s{n}", "prediction": "h{n}"}}\n' for n in (3, 2, 1, 0)))
    systems = [system_of_run(runs[0], "parrot"), system_of_file(path)]
    pairs = list(pairs_of_systems(runs[0], systems, [(0, 1)]))
    assert [pair.metadata["baseline"] for pair in pairs] == ["h0", "h1", "h2", "h3"]
    assert pairs[0].metadata["baseline_system"] == "human"
    path.write_text('{"id": "s0", "text": 1}\n')
    with pytest.raises(ConfigError, match="has no answers"):
        system_of_file(path)


def test_a_column_is_a_baseline(tmp_path):
    run = run_of(tmp_path / "a", [sample(0, "x", metadata={"gpt": "y", "n": 3}), sample(1, "x")])
    pairs = list(pairs_of_systems(run, [system_of_run(run, "a"), system_of_column(run, "gpt")], [(0, 1)]))
    assert [pair.metadata.get("baseline") for pair in pairs] == ["y", None]
    with pytest.raises(ConfigError, match="'gtp' is neither a file, nor a run, nor a column"):
        system_of_column(run, "gtp")
    with pytest.raises(InputError, match=r"`n` must be a text\. Got 3 instead"):
        system_of_column(run, "n")
