"""Records of Every Eval Ever that other programs wrote, and damaged ones.

The fixtures were made from logs of lm-eval 0.4.13 with every_eval_ever 0.3.0, which needs Python 3.12, by
`every_eval_ever convert lm_eval --log_path tests/data/logs/fixtures/lm-eval --output_dir OUT/data --include_samples`:
the tasks toy_sum (two filters) and toy_captions (several references, written as the source of a Python list).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from multimodal_eval import evaluate, import_log
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.data.logs.eee import FORMAT
from multimodal_eval.data.logs.recognised import recognised
from multimodal_eval.data.readers.files import file_set
from multimodal_eval.data.readers.problems import Problems

FIXTURES = Path(__file__).parent / "fixtures" / "eee" / "data"
(SUM,) = FIXTURES.glob("toy_sum/*/*/*_samples.jsonl")
(CAPTIONS,) = FIXTURES.glob("toy_captions/*/*/*_samples.jsonl")
UUID = "11111111-1111-4111-8111-111111111111"


def instance(sample, score, *, key="acc", evaluation="quiz", **fields):
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "quiz/a_b/1",
        "model_id": "a/b",
        "evaluation_name": evaluation,
        "evaluation_result_id": key,
        "sample_id": sample,
        "interaction_type": "single_turn",
        "input": {"raw": f"question {sample}", "reference": ["yes"]},
        "output": {"raw": ["yes"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score == 1},
        **fields,
    }


def result(key, score, **config):
    return {
        "evaluation_name": "quiz",
        "evaluation_result_id": key,
        "source_data": {"dataset_name": "quiz", "source_type": "other"},
        "metric_config": {"lower_is_better": False, "metric_id": key, **config},
        "score_details": {"score": score},
    }


def aggregate(*results):
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "quiz/a_b/1",
        "retrieved_timestamp": "1",
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "x",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "other-harness", "version": "7"},
        "model_info": {
            "name": "b",
            "id": "a/b",
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": list(results),
    }


def written(folder, instances, results=None):
    lines = folder / f"{UUID}_samples.jsonl"
    lines.write_text("".join(json.dumps(each) + "\n" for each in instances))
    if results is not None:
        (folder / f"{UUID}.json").write_text(json.dumps(results, indent=2))
    return lines


def records(path):
    problems = Problems()
    columns = [record for _, record in FORMAT.records(path, problems)]
    problems.raise_if_any()
    return columns


def test_two_filters_are_two_scores_of_one_sample():
    imported = import_log(SUM)
    run, log = imported.run, imported.logs[0]
    # The results file of lm-eval: strict-match 2 of 6, flexible-extract 4 of 6.
    assert run["eee.exact_match_strict-match"]["value"] == 2 / 6
    assert run["eee.exact_match_flexible-extract"]["value"] == 4 / 6
    assert len(run) == 6
    assert all(mean.is_equal for mean in imported.means)
    assert len(imported.means) == 2
    assert (log.harness, log.version, log.model) == ("lm_eval", "0.4.13", "toys/scripted")
    sample = next(iter(run.samples()))
    assert (sample.id, sample.references, sample.generated_answer) == ("0", ["5"], "5")
    assert sample.question == "Question: 2 + 3?\nAnswer:"


@pytest.mark.parametrize(
    ("scores", "mean", "stated", "bounds"),
    [
        ((1, 4), 2.5, (0, 5), (0, 5)),
        ((1, 4), 2.5, (0, 3), (None, None)),  # a score is outside
        ((0, 0.5), 25, (0, 100), (None, None)),  # the range of percentages
        ((0, 1), 50, (0, 100), (0, 1)),  # which the scores are not, and they show their own
        ((0.2, 0.5), 0.35, ("-Infinity", "Infinity"), (None, None)),
    ],
)
def test_the_stated_range_is_taken_if_it_is_that_of_the_scores(tmp_path, scores, mean, stated, bounds):
    low, high = stated
    results = aggregate(result("verdict", mean, min_score=low, max_score=high))
    path = written(tmp_path, [instance(str(n), score, key="verdict") for n, score in enumerate(scores)], results)
    run = import_log(path, progress=False).run
    assert run.info.bounds_of("eee.verdict") == bounds
    assert run.entries["eee.verdict"].n_scored == 2


def test_changed_instances_are_refused(tmp_path):
    lines = [instance("1", 1), instance("2", 0)]
    content = "".join(json.dumps(each) + "\n" for each in lines).encode()
    detailed = {"format": "jsonl", "file_path": "x", "hash_algorithm": "sha256"}
    results = aggregate(result("acc", 0.5))
    for algorithm in ("sha256", "md5"):
        checksum = hashlib.new(algorithm, content).hexdigest()
        results["detailed_evaluation_results"] = detailed | {"hash_algorithm": algorithm, "checksum": checksum}
        path = written(tmp_path, lines, results)
        assert len(records(path)) == 2
    path.write_bytes(content.replace(b'"score": 0', b'"score": 1'))
    with pytest.raises(InputError, match="one of the files was changed") as caught:
        import_log(path, progress=False)
    (problem,) = caught.value.problems
    assert (problem.code, problem.file) == ("CHECKSUM", str(path))


def test_another_version_of_the_schema_is_noted(tmp_path):
    path = written(tmp_path, [instance("1", 1)], aggregate(result("acc", 1)) | {"schema_version": "0.9.0"})
    assert "the version of the schema is '0.9.0'; this reader knows 0.3.0" in FORMAT.info(path).notes[0]
    assert not FORMAT.info(SUM).notes


def test_a_list_that_was_written_as_text_is_several_references():
    assert records(CAPTIONS)[0]["references"] == ["a dog runs on the grass", "the dog is running in a field"]


def test_both_files_are_recognised_and_read_once(tmp_path):
    results = SUM.with_name(SUM.name.replace("_samples.jsonl", ".json"))
    for path in (SUM, results):
        assert recognised(path).name == "eee"
        assert len(evaluate(path, metrics=["exact_match"], skip_lint=True)) == 6
    assert [file.path for file in file_set(SUM.parent).files] == [SUM]
    both = file_set(FIXTURES)
    assert [file.prefix for file in both.files] == ["toy_captions/toys/scripted/", "toy_sum/toys/scripted/"]
    shutil.copy(results, tmp_path)
    with pytest.raises(InputError, match="results without samples"):
        evaluate(tmp_path, metrics=["exact_match"])


def test_scores_may_be_in_any_order(tmp_path):
    lines = [instance(str(n), n / 4, key=key) for key in ("f1", "acc") for n in range(4)]
    written(tmp_path, [*lines[4:], lines[3], lines[0], lines[2]], aggregate(result("acc", 0.375), result("f1", 0.4)))
    rows = records(tmp_path / f"{UUID}.json")
    assert [(row["id"], row["eee.acc"], row.get("eee.f1")) for row in rows] == [
        ("0", 0.0, 0.0),
        ("1", 0.25, None),
        ("2", 0.5, 0.5),
        ("3", 0.75, 0.75),
    ]


def test_repeated_scores_are_epochs(tmp_path):
    path = written(tmp_path, [instance("x", 1), instance("y", 0), instance("x", 0), instance("y", 0)])
    assert [(row["id"], row["epoch"], row["group"], row["eee.acc"]) for row in records(path)] == [
        ("x#1", 1, "x", 1.0),
        ("y#1", 1, "y", 0.0),
        ("x#2", 2, "x", 0.0),
        ("y#2", 2, "y", 0.0),
    ]


def test_stated_epochs(tmp_path):
    """A line that occurs twice, with its epoch, is one score. Two different scores are refused."""
    first, second = ({"metadata": {"epoch": str(epoch)}} for epoch in (1, 2))
    path = written(tmp_path, [instance("x", 1, **first), instance("x", 1, **first), instance("x", 0, **second)])
    assert [(row["id"], row["eee.acc"]) for row in records(path)] == [("x#1", 1.0), ("x#2", 0.0)]
    path = written(tmp_path, [instance("x", 1, **first), instance("x", 0, **first)])
    with pytest.raises(InputError, match="the sample has two scores of 'acc': 1 and 0"):
        records(path)


def test_the_same_id_in_two_evaluations(tmp_path):
    """With the same hash it is the same sample; without one, or with another, another sample."""
    same = [instance("0", 1, key="a", sample_hash="h"), instance("0", 0, key="b", evaluation="other", sample_hash="h")]
    (row,) = records(written(tmp_path, same))
    assert (row["id"], row["eee.a"], row["eee.b"]) == ("0", 1.0, 0.0)
    different = [instance("0", 1), instance("0", 0, evaluation="other")]
    assert [row["id"] for row in records(written(tmp_path, different))] == ["quiz/0", "other/0"]


def test_a_failed_sample_is_unscored(tmp_path):
    path = written(tmp_path, [instance("x", 1), instance("y", 0, error="time-out")])
    run = import_log(path).run
    assert run["eee.acc"]["value"] == 1.0
    assert run["eee.acc"]["unscored"] == {"error": 1}


def test_fields_of_an_instance(tmp_path):
    turns = [("system", "Be brief."), ("user", "Why?"), ("assistant", "Because.")]
    messages = [{"turn_idx": place, "role": role, "content": text} for place, (role, text) in enumerate(turns)]
    usage = {"input_tokens": 4, "output_tokens": 2, "total_tokens": 6, "reasoning_tokens": 1}
    talk = instance("talk", 1, interaction_type="multi_turn", messages=messages, output=None, token_usage=usage)
    several = instance("several", 1, output={"raw": ["a", "b"], "reasoning_trace": ["hm", "so"]})
    first, second = records(written(tmp_path, [talk, several]))
    assert first["generated_answer"] == "Because."
    assert first["messages"] == [{"role": role, "content": text} for role, text in turns[:2]]
    assert first["metadata"] == {"input_tokens": 4, "output_tokens": 2, "reasoning_tokens": 1}
    assert second["generated_answer"] == "a"
    assert second["metadata"] == {"answers": ["a", "b"], "reasoning": "hm\n\nso"}


def test_results_that_share_an_id_or_a_name(tmp_path):
    """As of epochs with two reducers: which of both means the scores have is not known."""
    results = [result("acc", 0.5), result("acc", 1.0), result("f1:a", 0.0, metric_id="f1"), result("f1:b", 1.0)]
    results[3]["metric_config"]["metric_id"] = "f1"
    path = written(tmp_path, [instance("x", 1), instance("x", 0, key="f1:a"), instance("x", 1, key="f1:b")])
    (tmp_path / f"{UUID}.json").write_text(json.dumps(aggregate(*results, result("rare", 1.0))))
    info = FORMAT.info(path)
    assert [(score.column, score.own_mean) for score in info.scores] == [
        ("eee.acc", None),
        ("eee.f1_a", 0.0),
        ("eee.f1_b", 1.0),
    ]
    assert info.notes == (
        "2 results have the id 'acc', so their means are not compared",
        "left out, because it has no instances: rare",
    )


def test_instances_alone(tmp_path):
    imported = import_log(written(tmp_path, [instance("x", 0.5, key="my score!")]))
    assert imported.run["eee.my_score"]["value"] == 0.5
    assert imported.means == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-40], "SYNTAX|TRUNCATED"),
        (lambda text: text.replace('"score": 1', '"score": "C"'), "Expected `float`, got `str`"),
        (lambda text: text.replace('"sample_id": "x", ', ""), "sample_id"),
    ],
)
def test_damaged_instances_are_refused(tmp_path, change, message):
    path = written(tmp_path, [instance("w", 0), instance("x", 1)])
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=message):
        import_log(path)


def test_damaged_results_are_refused(tmp_path):
    path = written(tmp_path, [instance("x", 1)], {**aggregate(), "evaluation_results": 3})
    with pytest.raises(InputError, match="the results cannot be read"):
        import_log(path)


def test_a_log_without_scores(tmp_path):
    lines = written(tmp_path, [], aggregate(result("acc", 1.0)))
    with pytest.raises((ConfigError, InputError)):
        import_log(lines.with_name(f"{UUID}.json"))


def test_too_many_results_are_refused(tmp_path):
    path = written(tmp_path, [instance(str(n), 1, key=f"k{n}") for n in range(1001)])
    with pytest.raises(InputError, match="more than 1,000 different results"):
        import_log(path)
