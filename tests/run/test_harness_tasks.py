"""Tasks of lm-evaluation-harness and lmms-eval."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.run.harness_tasks import harness_task
from multimodal_eval.run.task_files import open_task
from tests.captured_call import captured_call

ROWS = [{"id": "a", "question": "2 + 2?", "answer": "4", "golds": ["4", "four"], "options": ["3", "4"]}]
TASK = """\
task: sums
dataset_path: json
dataset_kwargs:
  data_files:
    test: test.jsonl
test_split: test
output_type: generate_until
description: "Solve this. "
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_target: answer
process_results: !function utils.process
generation_kwargs:
  until: ["\\n\\n"]
  do_sample: false
  max_gen_toks: 16
  num_beams: 3
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    ignore_case: true
  - metric: !function utils.metric
  - metric: mmmu_acc
repeats: 1
filter_list:
  - name: strict
metadata:
  version: 3.0
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def written(folder, text=TASK, name="sums.yaml"):
    path = folder / name
    path.write_text(text)
    return path


def test_what_maps_is_taken(folder):
    task = harness_task(written(folder))
    assert task.content == {
        "name": "sums",
        "version": "3.0",
        "data": "test.jsonl",
        "columns": {"expected_answer": "answer"},
        "prompt": "Solve this. Question: {{question}}\nAnswer:\n",
        "generation": {"parameters": {"stop": ["\n\n"], "temperature": 0.0, "max_tokens": 16}},
        "metrics": ["exact_match"],
    }


def test_the_lines_that_do_not_are_named(folder):
    assert harness_task(written(folder)).notes == (
        "sums.yaml:11: `process_results: !function utils.process` is not taken",
        "sums.yaml:16: `num_beams: 3` is not taken",
        "sums.yaml:17: `metric_list: exact_match ignore_case=True` is not taken",
        "sums.yaml:17: `metric_list: !function utils.metric` is not a metric here",
        "sums.yaml:17: `metric_list: mmmu_acc` is not a metric here",
        "sums.yaml:25: `filter_list: …` is not taken",
    )


def test_a_model_is_asked(folder):
    asked = []

    def model(request):
        asked.append(request)
        return "4"

    run = evaluate(written(folder), model=model)
    assert run["exact_match"]["value"] == 1
    assert asked[0].turns[-1].parts[0].text == "Solve this. Question: 2 + 2?\nAnswer:"
    assert asked[0].parameters.stop == ["\n\n"]
    assert run.info.config.origin.notes[0].startswith("sums.yaml:11: ")


def test_the_command_prints_the_lines(folder):
    call = captured_call("run", str(written(folder)), "--model", "echo", "-o", str(folder / "run"), "--no-report")
    assert call.status == 0, call.err.decode()
    assert b"! sums.yaml:11: `process_results: !function utils.process` is not taken" in call.err


@pytest.mark.parametrize(
    ("old", "new", "columns"),
    [
        ("doc_to_target: answer", 'doc_to_target: "{{ golds }}"', {"references": "golds"}),
        (
            "doc_to_target: answer",
            "doc_to_target: answer\ndoc_to_choice: options",
            {"expected_answer": "answer", "choices": "options"},
        ),
        ("doc_to_target: answer", "doc_to_image: [photo]", {"image": "photo"}),
        ("doc_to_target: answer", "doc_to_image: image", {}),
    ],
)
def test_columns(folder, old, new, columns):
    assert harness_task(written(folder, TASK.replace(old, new))).content["columns"] == columns


@pytest.mark.parametrize(
    "line",
    [
        "doc_to_target: \"{{['A', 'B'][answer]}}\"",
        "doc_to_target: !function utils.target",
        "doc_to_choice: ['yes', 'no']",
        "doc_to_target: 3",
        "num_fewshot: 5",
        "doc_to_visual: !function utils.visual",
    ],
)
def test_other_expressions_are_named(folder, line):
    task = harness_task(written(folder, TASK.replace("doc_to_target: answer", line)))
    assert any(note.startswith(f"sums.yaml:10: `{line.partition(':')[0]}: ") for note in task.notes)


def test_a_function_as_the_prompt_leaves_the_prompt_out(folder):
    text = TASK.replace('doc_to_text: "Question: {{question}}\\nAnswer:"', "doc_to_text: !function utils.text")
    task = harness_task(written(folder, text))
    assert "prompt" not in task.content
    assert "sums.yaml:9: `doc_to_text: !function utils.text` is not taken" in task.notes


def test_media_have_places_in_the_text(folder):
    text = TASK.replace("Question: {{question}}", "<image>{{question}}")
    assert harness_task(written(folder, text)).content["prompt"].startswith("Solve this. {{ image }}{{question}}")


def test_included_files(folder):
    written(folder, TASK, "_base.yaml")
    task = harness_task(written(folder, "include: _base.yaml\ntask: more\nrepeats: 2\n", "more.yaml"))
    assert (task.content["name"], task.content["generation"]["epochs"]) == ("more", 2)
    assert task.notes[0].startswith("_base.yaml:11: ")


@pytest.mark.parametrize("name", ["../x.yaml", "/etc/passwd", "missing.yaml", "loop.yaml"])
def test_files_that_are_not_included(folder, name):
    path = written(folder, f"include: {name}\ndataset_path: json\n", "loop.yaml")
    with pytest.raises(
        ConfigError, match=r"loop\.yaml:1: `include: .*` must be another file in the folder of the task"
    ):
        open_task(path)


def test_data_of_the_hub_must_be_here(folder):
    path = written(folder, "dataset_path: lmms-lab/Sums\ntest_split: test\ndoc_to_text: question\n")
    with pytest.raises(ConfigError) as refusal:
        open_task(path)
    command = f"hf download lmms-lab/Sums --repo-type dataset --local-dir {folder / 'Sums'}"
    assert str(refusal.value) == f"{path}:1: the dataset 'lmms-lab/Sums' is not on this machine. Download it: {command}"


def test_the_split_of_a_local_copy(folder):
    (folder / "Sums" / "data").mkdir(parents=True)
    import pyarrow as pa
    import pyarrow.parquet as pq

    for split in ("train", "test"):
        pq.write_table(pa.Table.from_pylist(ROWS), folder / "Sums" / "data" / f"{split}-00000-of-00001.parquet")
    task = open_task(written(folder, "dataset_path: lmms-lab/Sums\ntest_split: test\ndoc_to_text: question\n"))
    assert task.data == folder / "Sums" / "**" / "test-*.parquet"
    assert task.generation["template"] == "{{ question }}\n"
    assert (
        len(
            evaluate(
                folder / "sums.yaml",
                model=lambda request: "4",
                metrics=["exact_match"],
                map={"expected_answer": "answer"},
            )
        )
        == 1
    )


def test_a_group_is_not_a_task(folder):
    with pytest.raises(ConfigError, match="this is a group of tasks"):
        open_task(written(folder, "task: [a, b]\nmetric_list: []\n"))


def test_functions_are_not_called(folder):
    path = written(folder, TASK.replace("!function utils.process", "!!python/object/apply:os.system ['touch owned']"))
    with pytest.raises(ConfigError):
        open_task(path)
    assert not (folder / "owned").exists()


@pytest.mark.parametrize("name", ["test.jsonl", "test.csv"])
def test_rows_without_ids_are_numbered(tmp_path, name):
    rows = [{"question": "2 + 2?", "answer": "4"}, {"question": "2 + 3?", "answer": "5"}]
    text = (
        "question,answer\n2 + 2?,4\n2 + 3?,5\n"
        if name == "test.csv"
        else "".join(f"{json.dumps(row)}\n" for row in rows)
    )
    (tmp_path / name).write_text(text)
    path = written(tmp_path, TASK.replace("test: test.jsonl", f"test: {name}"))
    run = evaluate(path, model=lambda request: "5", output=tmp_path / "run")
    assert run["exact_match"]["value"] == 0.5
    assert [sample.id for sample in run.samples()] == ["0", "1"]


def test_a_map_of_the_call_keeps_the_target(tmp_path):
    (tmp_path / "test.jsonl").write_text('{"qid": "q7", "question": "2 + 2?", "answer": "4"}\n')
    run = evaluate(written(tmp_path), model=lambda request: "4", map={"id": "qid"})
    assert run["exact_match"]["value"] == 1
    assert [sample.id for sample in run.samples()] == ["q7"]


@pytest.mark.parametrize("name", ["alone.yaml", "../base.yaml"])
def test_a_file_that_only_includes_is_a_task_too(folder, name):
    with pytest.raises(ConfigError, match=r"alone\.yaml:1: `include: .*` must be another file in the folder"):
        open_task(written(folder, f"include: {name}\n", "alone.yaml"))
