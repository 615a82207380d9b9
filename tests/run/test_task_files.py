"""Task files: data, columns, prompt, metrics and rules in one YAML file."""

from __future__ import annotations

import hashlib
import json

import pytest
import yaml

from multimodal_eval import evaluate, generate
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.data.runs.run import Run
from multimodal_eval.run.config import is_task_file
from multimodal_eval.run.task_files import open_task
from tests.captured_call import captured_call

ROWS = [
    {"qid": "q1", "text": "What colour is the sky?", "gold": "blue"},
    {"qid": "q2", "text": "What colour is grass?", "gold": "green"},
]
TASK = """
name: colours
version: 2
description: Two questions about colours.
data:
  path: data/questions.jsonl
columns: {id: qid, question: text, expected_answer: gold}
prompt: |
  {{ question }}
  Answer with one word.
metrics: [exact_match]
rules: {exact_match: squad@1.1}
generation:
  parameters: {temperature: 0, max_tokens: 5}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "answers.jsonl").write_text('{"id": "q1", "answer": "Blue."}\n{"id": "q2", "answer": "brown"}\n')
    return tmp_path


def edited(folder, old, new):
    path = folder / "task.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return path


def digest(folder):
    return hashlib.sha256((folder / "data" / "questions.jsonl").read_bytes()).hexdigest()


@pytest.mark.parametrize("column", ["id", "qid"])
def test_predictions_are_scored(folder, column):
    answers = folder / "answers.jsonl"
    answers.write_text(answers.read_text().replace('"id"', f'"{column}"'))
    run = evaluate(folder / "task.yaml", answers)
    # The rule of the task removes the full stop and the case: one of two is right.
    assert run["exact_match"]["value"] == 0.5


def test_score_by_command(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)  # paths are relative to the task file
    arguments = ("score", folder / "task.yaml", folder / "answers.jsonl", "-o", folder / "run", "--no-report")
    call = captured_call(*map(str, arguments))
    assert call.status == 0, call.err.decode()
    info = Run(folder / "run").info
    signature = info.signatures["exact_match"].text
    assert signature.endswith(f"|task:colours@2|data:{digest(folder)[:12]}")
    assert "rule:squad@1.1" in signature


def test_a_model_is_asked_with_the_prompt_of_the_task(folder):
    asked = []

    def model(request):
        asked.append(request)
        return "blue"

    run = evaluate(folder / "task.yaml", model=model)
    assert run["exact_match"]["value"] == 0.5
    assert [turn.parts[0].text for request in asked for turn in request.turns] == [
        f"{row['text']}\nAnswer with one word." for row in ROWS
    ]
    assert asked[0].parameters.max_tokens == 5


def test_run_by_command(folder):
    call = captured_call("run", str(folder / "task.yaml"), "--model", "echo", "-o", str(folder / "run"), "--no-report")
    assert call.status == 0, call.err.decode()
    call = captured_call("run", str(folder / "task.yaml"))
    assert call.status == 2
    assert b"name a model: --model" in call.err


def test_validate_by_command(folder):
    call = captured_call("validate", str(folder / "task.yaml"), str(folder / "answers.jsonl"))
    assert call.status == 0, call.err.decode()
    assert b"2 samples in 2 files, no problems" in call.out


def test_generate_and_score_later(folder):
    answered = generate(folder / "task.yaml", model=lambda request: "blue", output=folder / "run")
    run = answered.score()
    assert run["exact_match"]["value"] == 0.5
    assert f"data:{digest(folder)[:12]}" in run.info.signatures["exact_match"].text


def test_runs_of_other_data_are_not_compared(folder):
    first = evaluate(folder / "task.yaml", model=lambda request: "blue")
    (folder / "data" / "questions.jsonl").write_text(json.dumps(ROWS[0]) + "\n" + json.dumps(ROWS[1]) + "\n\n")
    second = evaluate(folder / "task.yaml", model=lambda request: "green")
    with pytest.raises(ConfigError, match=r"its signatures differ: data is '[0-9a-f]{12}' in .* and '[0-9a-f]{12}' in"):
        compare_runs([first, second])


def test_the_checksum_is_compared(folder):
    path = edited(folder, "path: data/questions.jsonl", f"path: data/questions.jsonl\n  sha256: {digest(folder)}")
    assert open_task(path).settings["origin"]["data"] == digest(folder)
    (folder / "data" / "questions.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    with pytest.raises(ConfigError, match="the data are not those of the task: the sha256 of"):
        open_task(path)


def test_checksum_of_several_files(folder):
    (folder / "data" / "more.jsonl").write_text(json.dumps({**ROWS[0], "qid": "q3"}) + "\n")
    path = edited(folder, "path: data/questions.jsonl", "path: data")
    digests = [
        hashlib.sha256((folder / "data" / name).read_bytes()).hexdigest() for name in ("more.jsonl", "questions.jsonl")
    ]
    expected = hashlib.sha256("\n".join(digests).encode()).hexdigest()
    assert open_task(path).settings["origin"]["data"] == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("plugins: [evil.py]", "a task file cannot set `plugins`. Give it to the command: --plugin FILE"),
        ("allow_outside_images: true", "cannot set `allow_outside_images`"),
        ("media_roots: [/]", "cannot set `media_roots`"),
        ("metric: [cider]", "no setting is named 'metric'. Did you mean 'metrics'?"),
        ("limit: 0", "`limit` must be a whole number, at least 1. Got 0 instead."),
        ("strata: {by: kind}", "`strata` needs the key `weights`"),
    ],
)
def test_refused(folder, line, message):
    (folder / "task.yaml").write_text(TASK + line + "\n")
    with pytest.raises(ConfigError) as refusal:
        open_task(folder / "task.yaml")
    assert message in str(refusal.value)


@pytest.mark.parametrize("line", ["base_url: http://evil.example", "key_env: HOME", "model: openai:x"])
def test_addresses_and_keys_are_refused(folder, line):
    path = edited(folder, "generation:", f"generation:\n  {line}")
    with pytest.raises(ConfigError, match="a task file cannot set"):
        open_task(path)


@pytest.mark.parametrize(
    "line",
    [
        "prompt: /etc/passwd",
        "prompt: ../secret.md",
        "labels: /etc/passwd",
        "data: {path: data/questions.jsonl, image_root: /}",
        "data: {path: data/questions.jsonl, questions: ../x.json}",
        "generation: {system: '@/etc/passwd'}",
        "generation: {shots: ../x.jsonl}",
    ],
)
def test_files_of_this_machine_are_not_sent(folder, line):
    key = line.partition(":")[0]
    kept = [each for each in yaml.safe_load(TASK).items() if each[0] != key]
    (folder / "task.yaml").write_text(yaml.safe_dump(dict(kept)) + line + "\n")
    with pytest.raises(ConfigError, match="must be in the folder of the task file"):
        open_task(folder / "task.yaml")


def test_links_out_of_the_folder_are_refused(folder):
    (folder.parent / "secret.md").write_text("{{ question }}")
    (folder / "ask.md").symlink_to("../secret.md")
    prompt = "prompt: |\n  {{ question }}\n  Answer with one word.\n"
    path = edited(folder, prompt, "prompt: ask.md\n")
    with pytest.raises(ConfigError, match=r"`prompt` must be in the folder.*ask\.md is a link to another place"):
        open_task(path)
    assert open_task(path, allow_outside=True).generation["prompt"] == str(folder / "ask.md")


@pytest.mark.parametrize("name", ["../elsewhere.jsonl", "linked.jsonl", "folder", "folder/*.jsonl"])
def test_data_elsewhere_need_the_permission_of_the_user(folder, name):
    elsewhere = folder.parent / "elsewhere.jsonl"
    (folder / "data" / "questions.jsonl").rename(elsewhere)
    (folder / "linked.jsonl").symlink_to(elsewhere)
    (folder / "folder").mkdir()
    (folder / "folder" / "questions.jsonl").symlink_to(elsewhere)
    path = edited(folder, "path: data/questions.jsonl", f"path: {name}")
    with pytest.raises(
        ConfigError, match=r"`data` must be in the folder of the task file.*--data FILE.*--allow-outside"
    ):
        evaluate(path, folder / "answers.jsonl")
    run = evaluate(path, folder / "answers.jsonl", config={"allow_outside": True})
    assert run["exact_match"]["value"] == 0.5
    for option in (("--allow-outside",), ("--data", elsewhere)):
        command = ("score", path, folder / "answers.jsonl", *option, "-o", folder / f"run{option[0]}", "--no-report")
        call = captured_call(*map(str, command))
        assert call.status == 0, call.err.decode()
        assert captured_call(*map(str, ("validate", path, folder / "answers.jsonl", *option))).status == 0


def test_data_of_the_user_are_only_for_a_task(folder):
    data = folder / "data" / "questions.jsonl"
    for command in ("score", "validate"):
        call = captured_call(command, str(data), "--data", str(data))
        assert (call.status, b"--data replaces the data of a task file" in call.err) == (2, True)


def test_a_special_file_is_not_read(folder):
    (folder / "zero").symlink_to("/dev/zero")
    path = edited(folder, "metrics: [exact_match]", "metrics: [exact_match]\nlabels: zero")
    with pytest.raises(ConfigError, match="must be in the folder of the task file"):
        open_task(path)
    with pytest.raises(ConfigError, match="`labels` must be a regular file or a folder"):
        open_task(path, allow_outside=True)
    config = {"generation": {"model": "echo:", "system": f"@{folder / 'zero'}"}}
    with pytest.raises(ConfigError, match=r"the system prompt .*zero is larger than 400,000 bytes"):
        evaluate(folder / "data" / "questions.jsonl", metrics=["exact_match"], config=config)


@pytest.mark.parametrize("text", ["", "metrics: [cider]", "[a]", "name: x", "data: x.jsonl"])
def test_a_configuration_is_not_a_task_file(folder, text):
    (folder / "task.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"a task file needs the keys `name` and `data`\. If this is a configuration"):
        open_task(folder / "task.yaml")


def test_files_beside_the_task(folder):
    (folder / "ask.md").write_text("Q: {{ question }}")
    (folder / "labels.yaml").write_text("[blue, green]")
    text = TASK.replace(
        "prompt: |\n  {{ question }}\n  Answer with one word.\n", "prompt: ask.md\nlabels: labels.yaml\n"
    )
    (folder / "task.yaml").write_text(
        text.replace("  parameters", "  shots: data/questions.jsonl\n  system: '@ask.md'\n  parameters")
    )
    task = open_task(folder / "task.yaml")
    assert task.generation["prompt"] == str(folder / "ask.md")
    assert task.generation["shots"] == str(folder / "data" / "questions.jsonl")
    assert task.generation["system"] == f"@{folder / 'ask.md'}"
    assert task.settings["labels"] == str(folder / "labels.yaml")


@pytest.mark.parametrize(
    "settings", [{"metrics": "contains"}, {"metrics": ["contains"]}, {"config": {"metrics": ["contains"]}}]
)
def test_other_metrics_replace_those_of_the_task(folder, settings):
    run = evaluate(folder / "task.yaml", model=lambda request: "it is blue", **settings)
    assert run["contains"]["value"] == 0.5
    assert run.info.metrics == ["contains"]


def test_another_task_replaces_the_metrics(folder):
    run = evaluate(folder / "task.yaml", model=lambda request: "blue", task="vqa", skip_unavailable=True)
    assert "vqa_accuracy" in run.info.metrics
    assert run.info.task == "vqa"


def test_settings_of_asking_are_laid_on_top(folder):
    task = {"generation": {"parameters": {"temperature": 1.0}}}
    run = evaluate(folder / "task.yaml", model=lambda request: "blue", **task)
    parameters = run.info.config.generation.parameters
    assert (parameters.temperature, parameters.max_tokens) == (1.0, 5)


def test_only_yaml_files_are_task_files(folder):
    assert is_task_file(folder / "task.yaml")
    assert is_task_file(str(folder / "task.yaml"))
    assert not is_task_file(folder / "answers.jsonl")
    assert not is_task_file(folder / "missing.yaml")
    assert not is_task_file([{"id": "a"}])


def test_a_map_of_the_call_changes_single_columns(folder):
    data = folder / "data" / "questions.jsonl"
    data.write_text("".join(json.dumps({**row, "better": "brown"}) + "\n" for row in ROWS))
    run = evaluate(folder / "task.yaml", folder / "answers.jsonl", map={"expected_answer": "better"})
    assert run["exact_match"]["value"] == 0.5  # "brown" is the second answer; the ids are still those in `qid`
    assert run.info.config.map == {"id": "qid", "question": "text", "expected_answer": "better"}
    call = captured_call(
        *map(str, ("score", folder / "task.yaml", folder / "answers.jsonl", "-o", folder / "run", "--no-report")),
        *("--map", "question=gold", "--map", "expected_answer=better"),
    )
    assert call.status == 0, call.err.decode()


def test_a_map_of_a_configuration_changes_single_columns(folder):
    config = {"map": {"question": "better"}}
    data = folder / "data" / "questions.jsonl"
    data.write_text("".join(json.dumps({**row, "better": "?"}) + "\n" for row in ROWS))
    run = evaluate(folder / "task.yaml", folder / "answers.jsonl", config=config, map={"expected_answer": "text"})
    assert run.info.config.map == {"id": "qid", "question": "better", "expected_answer": "text"}


def test_a_misspelt_metric_with_a_rule_is_named(folder):
    with pytest.raises(UnknownNameError, match=r"no metric is named 'exact_mach'\. Did you mean 'exact_match'"):
        evaluate(edited(folder, "metrics: [exact_match]", "metrics: [exact_mach]"), folder / "answers.jsonl")


def test_a_checksum_of_another_form_is_named(folder):
    path = edited(folder, "  path: data/questions.jsonl\n", "  path: data/questions.jsonl\n  sha256: ABC\n")
    with pytest.raises(ConfigError, match=r"`data.sha256` must be 64 digits from 0 to 9 and a to f, .* Got 'ABC'"):
        open_task(path)


def test_text_that_is_not_yaml_is_placed(folder):
    with pytest.raises(
        ConfigError, match=r"task\.yaml: line \d+, column \d+: this is not valid YAML: expected"
    ) as fault:
        open_task(edited(folder, "metrics: [exact_match]", "metrics: [exact_match"))
    assert "unicode string" not in str(fault.value)
