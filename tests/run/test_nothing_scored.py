"""A metric without a single score is an error, unless it is allowed."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from shlex import split

import msgspec
import pytest

from multimodal_eval import Sample, evaluate, metric, rescore, resume
from multimodal_eval.core.errors import InputError, NothingScoredError
from multimodal_eval.core.score import unscored
from tests.cli.command_line import mmeval
from tests.run.stopping_executor import StoppedError, stopping

ROWS = [
    {"id": "a", "answer": "a red dog", "references": ["a dog", "a red dog"], "split": "val"},
    {"id": "b", "answer": "a black cat", "references": ["a cat"], "split": "test"},
]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def scored(count=3, **fields):
    """Samples that `never` refuses and every other metric scores."""
    return [
        Sample(id=str(number), generated_answer=f"dog {number}", references=[f"dog {number}"], **fields)
        for number in range(count)
    ]


@pytest.fixture
def never():
    """A metric that needs only an answer and gives no score."""

    @metric("never", needs=("generated_answer",), bounds=(0, 1))
    def compute_never(sample: Sample):
        return unscored("error", "the camera is off" if sample.id != "0" else "the lens is dirty")


def test_a_missing_field_is_said_before_anything_is_computed(data, tmp_path):
    stages = []
    with pytest.raises(NothingScoredError) as error:
        evaluate(
            data,
            metrics=["bleu", "rouge_l"],
            output=tmp_path / "run",
            progress=lambda stage, done, total: stages.append(stage),
        )
    (problem,) = error.value.problems
    assert problem.code == "NOTHING_SCORED"
    assert str(problem) == (
        "NOTHING_SCORED: bleu, rouge_l cannot score any sample: no sample has `generated_answer`. "
        "The columns are 'id', 'references', 'answer', 'split'.\n"
        "If it is in 'answer' (or 'split'), add: --map generated_answer=answer\n"
        "To accept metrics without scores: --allow-empty"
    )
    assert set(stages) == {"reading"}
    assert not (tmp_path / "run").exists()
    assert isinstance(error.value, InputError)


def test_in_memory_the_message_names_settings_of_python():
    with pytest.raises(NothingScoredError) as error:
        evaluate(ROWS, metrics=["bleu"])
    assert "add: map={'generated_answer': 'answer'}\nTo accept metrics without scores: allow_empty=True" in str(
        error.value
    )
    run = evaluate(ROWS, metrics=["bleu"], map={"generated_answer": "answer"})
    assert run["bleu"]["n_scored"] == 2


def test_the_suggested_option_works_as_it_is_printed(data, tmp_path):
    rows = [{("my answer" if key == "answer" else key): value for key, value in row.items()} for row in ROWS]
    data.write_text("".join(json.dumps({**row, "Answer": row["my answer"]}) + "\n" for row in rows))
    stderr = mmeval("score", str(data), "--metrics", "exact_match", "-o", str(tmp_path / "a"), code=1).stderr
    flag = stderr.partition("add: ")[2].splitlines()[0]
    assert split(flag) == ["--map", "generated_answer=Answer"]
    mmeval("score", str(data), "--metrics", "exact_match", "-o", str(tmp_path / "a"), *split(flag))


def test_every_missing_field_is_a_problem():
    with pytest.raises(NothingScoredError) as error:
        evaluate([{"id": 1, "gt": "a dog"}, {"id": 2, "gt": "a cat"}], metrics=["bleu", "chair_i"])
    assert [problem.message for problem in error.value.problems] == [
        "bleu, chair_i cannot score any sample: no sample has `generated_answer`.",
        "bleu cannot score any sample: no sample has `references`.",
        "chair_i cannot score any sample: no sample has `references` or `metadata.objects`.",
    ]
    assert "If it is in 'gt', add: map={'expected_answer': 'gt'}" in str(error.value)


def test_a_metric_without_scores_fails_the_finished_run(never, tmp_path):
    with pytest.raises(NothingScoredError) as error:
        evaluate(scored(), metrics=["never", "exact_match"], output=tmp_path / "run")
    (problem,) = error.value.problems
    assert problem.message == ("never: no score for any of 3 samples. Commonest reason (2 ×): the camera is off.")
    assert str(tmp_path / "run") in str(problem.hint)
    assert error.value.run == tmp_path / "run"
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["metrics"]["exact_match"]["n_scored"] == 3
    assert json.loads((tmp_path / "run" / "run.json").read_text())["state"] == "done"


def test_metrics_with_the_same_reason_share_a_problem(never, tmp_path):
    samples = [Sample(id=str(number), generated_answer="x", references=["y"], error="time-out") for number in range(2)]
    with pytest.raises(NothingScoredError) as error:
        evaluate(samples, metrics=["never", "exact_match"])
    (problem,) = error.value.problems
    assert problem.message.startswith("never, exact_match: no score for any of 2 samples.")
    assert "time-out" in problem.message


def test_one_score_is_enough():
    samples = [Sample(id="a", generated_answer="x", references=["x"]), Sample(id="b"), Sample(id="c")]
    assert evaluate(samples, metrics=["exact_match"])["exact_match"]["n_scored"] == 1


def test_fields_that_no_sample_has_together_fail_after_scoring():
    samples = [Sample(id="a", generated_answer="x"), Sample(id="b", references=["x"])]
    with pytest.raises(NothingScoredError, match="no score for any of 2 samples"):
        evaluate(samples, metrics=["exact_match"])


def test_it_can_be_allowed(never, data, tmp_path):
    run = evaluate(data, metrics=["bleu"], allow_empty=True)
    assert run["bleu"]["n_scored"] == 0
    assert evaluate(scored(), metrics=["never"], allow_empty=True)["never"]["value"] is None
    assert evaluate(scored(), metrics=["never"], config={"allow_empty": True})["never"]["value"] is None


def test_metrics_that_cannot_run_here_are_accepted_by_their_own_setting(monkeypatch, tmp_path):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "empty"))
    samples = [msgspec.structs.replace(sample, image=f"{sample.id}.png") for sample in scored()]
    run = evaluate(samples, task="captioning", skip_unavailable=True)
    assert run["clip_score"]["n_scored"] == 0
    assert run["composite_score"]["n_scored"] == 0


def test_a_classification_may_have_only_some_kinds_of_labels():
    gold = [{"id": number, "generated_answer": "red", "expected_answer": label} for number, label in enumerate("ab")]
    run = evaluate(gold, task="classification", labels=["red", "a", "b"])
    assert [run[name]["n_scored"] for name in ("f1_strict", "soft_score")] == [2, 0]
    with pytest.raises(NothingScoredError, match="soft_score cannot score any sample: no sample has `annotations`"):
        evaluate(gold, metrics=["f1_strict", "soft_score"], labels=["red", "a", "b"])
    with pytest.raises(NothingScoredError, match="f1_strict, f1_any_match, f1_majority, soft_score: no score"):
        evaluate([row | {"error": "time-out"} for row in gold], task="classification", labels=["red", "a", "b"])
    with pytest.raises(NothingScoredError) as error:
        evaluate([{"id": "1", "expected_answer": "red"}], task="classification", labels=["red"])
    assert [problem.field for problem in error.value.problems] == ["generated_answer"]


def test_a_resumed_run_fails_too(never, tmp_path):
    with pytest.raises(StoppedError):
        evaluate(scored(), metrics=["never"], output=tmp_path / "run", engine=stopping(0))
    for _ in range(2):  # unfinished, then finished
        with pytest.raises(NothingScoredError, match="never: no score"):
            resume(tmp_path / "run")
    assert resume(tmp_path / "run", allow_empty=True)["never"]["value"] is None


def test_a_resumed_run_may_be_allowed(never, tmp_path):
    with pytest.raises(StoppedError):
        evaluate(scored(), metrics=["never"], output=tmp_path / "run", engine=stopping(0))
    assert resume(tmp_path / "run", allow_empty=True)["never"]["value"] is None


def test_rescoring_fails_too(never, tmp_path):
    old = evaluate(scored(), metrics=["exact_match"], output=tmp_path / "old")
    with pytest.raises(NothingScoredError, match="never: no score"):
        rescore(old, {"metrics": ["never"]})
    with pytest.raises(NothingScoredError, match="no sample has `image`"):
        rescore(
            old,
            {"metrics": ["clip_score"], "options": {"clip_score": {"model": "shapes-clip"}}},
            output=tmp_path / "new",
        )
    assert not (tmp_path / "new").exists()
    assert rescore(old, {"metrics": ["never"], "allow_empty": True})["never"]["value"] is None


def test_the_error_can_be_pickled(data):
    with pytest.raises(NothingScoredError) as error:
        evaluate(data, metrics=["bleu"])
    error.value.run = "runs/a"
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.run, copy.problems) == (str(error.value), "runs/a", error.value.problems)


# the command line


def test_the_command_fails_and_leaves_nothing(data, tmp_path):
    output = str(tmp_path / "run")
    done = mmeval("score", str(data), "--metrics", "bleu", "-o", output, code=1)
    assert done.stdout == ""
    assert "add: --map generated_answer=answer" in done.stderr
    assert not (tmp_path / "run").exists()
    mmeval("score", str(data), "--metrics", "bleu", "-o", output, "--allow-empty")
    mmeval("score", "--resume", output)


def test_scored_metrics_are_shown_before_the_error(data, tmp_path):
    plugin = tmp_path / "never.py"
    plugin.write_text(
        "from multimodal_eval import metric\n"
        "from multimodal_eval.core.score import unscored\n"
        '@metric("never", needs=("generated_answer",), bounds=(0, 1))\n'
        "def compute_never(sample):\n"
        '    return unscored("error", "no camera")\n'
    )
    arguments = ["--map", "generated_answer=answer", "--plugin", str(plugin), "-o", str(tmp_path / "run")]
    done = mmeval("score", str(data), "--metrics", "never,exact_match", *arguments, code=1)
    assert "exact_match" in done.stdout
    assert "never: no score for any of 2 samples. Commonest reason (2 ×): no camera." in done.stderr
    assert f"is in {tmp_path / 'run'}" in done.stderr
    mmeval("report", str(tmp_path / "run"), "-o", str(tmp_path / "report.html"))
    resumed = ["score", "--resume", str(tmp_path / "run"), "--plugin", str(plugin)]
    mmeval(*resumed, code=1)
    mmeval(*resumed, "--allow-empty")


def test_validate_says_the_same(data, tmp_path):
    done = mmeval("validate", str(data), code=1)
    assert "no sample has `generated_answer`" in done.stderr
    assert "add: --map generated_answer=answer" in done.stderr
    mmeval("validate", str(data), "--allow-empty")
    assert "no problems" in mmeval("validate", str(data), "--map", "generated_answer=answer").stdout


def test_validate_notes_missing_references(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": 1, "pred": "a", "gt": ["b"]}\n')
    output = " ".join(mmeval("validate", str(path)).stdout.split())
    assert "the column 'pred' is read as generated_answer" in output
    assert "If it is in 'gt', add: --map references=gt" in output


def test_the_columns_of_a_dataset_are_not_suggested_as_answers():
    dataset = str(Path(__file__).parents[1] / "data" / "datasets" / "fixtures" / "hf")
    refused = mmeval("score", dataset, "--metrics", "exact_match", code=1).stderr
    assert f"Ask a model for answers: `mmeval run {dataset} --model PROVIDER:NAME`" in refused
    assert "generated_answer=" not in refused
    checked = " ".join(mmeval("validate", dataset).stdout.split())
    assert "no problems" in checked
    assert "! no sample has an answer. Ask a model for answers: `mmeval run" in checked


def test_a_task_may_be_checked_before_it_is_answered(data):
    task = data.with_name("task.yaml")
    task.write_text("name: dogs\ndata: data.jsonl\n")
    checked = " ".join(mmeval("validate", str(task)).stdout.split())
    assert f"! no sample has an answer. Ask a model for answers: `mmeval run {task}" in checked
