"""Recipes: their keys, their sample, their goldens, and what is refused."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

import multimodal_eval.benchmarks
from multimodal_eval import evaluate, testing
from multimodal_eval.benchmarks.recipes import find_recipe, recipe, recipe_names
from multimodal_eval.benchmarks.sample import write_sample
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.runs.run import Run
from multimodal_eval.run.recipe_card import recipe_card
from multimodal_eval.run.recipe_checks import check_recipe, goldens_of, sample_of
from multimodal_eval.run.task_files import open_task
from tests.captured_call import captured_call
from tests.golden.load import golden

OURS = Path(multimodal_eval.benchmarks.__file__).parent


@pytest.mark.slow
def test_all_recipes_give_the_verdicts_of_their_goldens():
    faults = []
    for name in recipe_names():
        try:
            testing.check_recipe(name)
        except AssertionError as error:
            faults.append(str(error))
        if len(goldens := goldens_of(recipe(name))) < 20:
            faults.append(f"{name}: {len(goldens)} goldens are fewer than 20")
    assert not faults, "\n".join(faults)


def test_a_model_gets_the_media_of_every_question_that_has_some():
    """Fields are found by the names of their columns, or by `columns` of the recipe."""
    without = {}
    for name, expected in (("hallusionbench", 2), ("mmau-mini", 2), ("blink-val", 4), ("mmmu-val", 7)):
        samples = sample_of(recipe(name))[1]
        if sum(bool(sample.image or sample.images or sample.audio) for sample in samples) != expected:
            without[name] = samples
    assert not without


def test_all_recipes_together_are_small():
    assert sum(path.stat().st_size for path in OURS.rglob("*") if path.is_file()) < 2_000_000


@pytest.fixture
def mine(tmp_path):
    """A copy of the folder of a recipe."""
    shutil.copytree(OURS / "blink-val", tmp_path / "mine")
    return tmp_path / "mine"


def edited(folder, old, new):
    path = folder / "recipe.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return folder


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("unit:", "unti:", r"recipe.yaml: no setting is named 'unti'. Did you mean 'unit'\?"),
        ("prompt: read", "prompt: red", "`exactness.prompt` must be 'verified' or 'read' or 'known'. Got 'red'"),
        ("rows: 1901", "rows: many", "`data.rows` must be .*'unverified'"),
        (
            "revision: unverified",
            "revision: main",
            "`data.hub.revision` must be a commit.* or `unverified`. Got 'main'",
        ),
        ("BLINK-Benchmark/BLINK", "BLINK", "`data.hub.repository` must be the name of a repository, ORG/NAME"),
        ("blink@2024", "blink@2023", "recipe.yaml: `rules` or `options`: no rule of choice is named 'blink@2023'"),
        ("_answer: answer", "_answer: anwser", "`columns.expected_answer` names the column 'anwser'.*'answer'"),
        ("macro(sub_task)", "median(sub_task)", "there is no average 'median'"),
        ("metrics: [multiple_choice]", "metrics: [multiple_choice", "this is not valid YAML"),
        (
            "by: [sub_task]",
            "by: [subtask]",
            "`by` names the column 'subtask', which no question .*Did you mean 'sub_task'",
        ),
        (
            "macro(sub_task)",
            "macro(task_)",
            "`options.multiple_choice.average` names the column 'task_', which no question",
        ),
        ("*/val-*", "../*/val-*", "`data.hub.files` must be the pattern of files inside the folder of the data"),
        ("prompt: official", "prompt: ../ask.md", "`prompt` must be in the folder of the recipe"),
        ("  hub:", "  path: rows.jsonl\n  hub:", "`data` needs one of `path`, `hub` and `source`. Got path and hub"),
    ],
)
def test_a_bad_recipe_is_refused_with_file_key_and_cure(mine, old, new, message):
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        check_recipe(edited(mine, old, new))


def test_a_prompt_that_cannot_be_rendered_and_other_verdicts_are_faults(mine):
    edited(mine, "      {{ prompt }}\n  lmms-eval", "      {{ prompt }}{{ metadata.hint }}\n  lmms-eval")
    golden = {"id": "val_Jigsaw_1", "answer": "(B)", "value": 0}
    (mine / "goldens.jsonl").write_text(json.dumps(golden))
    faults = check_recipe(mine).faults
    assert len(faults) == 3  # the prompt, also as the usual one, and the verdict
    assert "val_Jigsaw_1, '(B)': 1.0 instead of 0.0" in faults[-1]
    assert "hint" in faults[0]


def test_a_recipe_without_a_sample_is_told_what_it_needs(mine):
    (mine / "sample.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"sample.jsonl: a recipe needs this file: a few questions of your own"):
        check_recipe(mine)


def test_a_figure_must_be_a_part_of_the_metric(mine):
    edited(mine, "\nunit:", "\nfigure: multiple_choice.micr\nunit:")
    (fault,) = check_recipe(mine).faults
    assert "`figure` names 'multiple_choice.micr', which the metric does not have. Did you mean" in fault


def test_a_golden_of_no_question_is_refused(mine):
    (mine / "goldens.jsonl").write_text('{"id": "val_Jigsaw_2", "answer": "", "value": 0}')
    with pytest.raises(ConfigError, match=r"no question of the sample has the id 'val_Jigsaw_2'. Did you mean"):
        check_recipe(mine)


def test_a_file_with_the_name_comes_before_the_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_recipe("blink-val") == OURS / "blink-val" / "recipe.yaml"
    (tmp_path / "blink-val").mkdir()
    assert find_recipe("blink-val") is None
    assert find_recipe("no-benchmark") is None


def test_other_packages_add_recipes(tmp_path, monkeypatch, mine):
    package = tmp_path / "lab_benchmarks"
    mine.rename(tmp_path / "lab_benchmarks_folder")
    package.mkdir()
    (package / "__init__.py").touch()
    (tmp_path / "lab_benchmarks_folder").rename(package / "lab-val")
    info = tmp_path / "lab-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: lab\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[multimodal_eval.benchmarks]\nlab = lab_benchmarks\n")
    monkeypatch.syspath_prepend(tmp_path)
    recipe_names.cache_clear()
    try:
        assert recipe("lab-val").folder == package / "lab-val"
    finally:
        recipe_names.cache_clear()


def test_other_data_are_refused_or_noted(tmp_path):
    write_sample(recipe("blink-val"), tmp_path)
    with pytest.raises(ConfigError, match=r"4 rows instead of 1,901 .* score what is there with --allow-partial"):
        open_task("blink-val", task_data=tmp_path)
    assert (
        open_task("blink-val", task_data=tmp_path, allow_partial=True).notes[0].startswith("blink-val: 4 rows instead")
    )
    with pytest.raises(
        ConfigError, match=r"no file below .* is named \*/validation-\*.parquet, as the data of mmmu-val are"
    ):
        open_task("mmmu-val", task_data=tmp_path)
    with pytest.raises(ConfigError, match=r"not on this machine. Fetch them: mmeval fetch blink-val"):
        open_task("blink-val")


def test_hallusionbench_has_the_groups_of_its_authors(tmp_path):
    """With one wrong answer among their 1,129 questions: 455 groups by question, and 346 by figure."""
    names = ("category", "subcategory", "set_id", "figure_id", "question_id", "gt_answer")
    rows = [dict(zip(names, cells, strict=True)) for cells in golden("published_answers.json.gz")["hallusionbench"]]
    for row in rows:
        has_none = row["category"] == "VS" and row["figure_id"] == "0"  # the 178 questions without a figure
        row |= {"visual_input": "0" if has_none else "1", "question": "?"}
    columns = dict.fromkeys(("gt_answer_details", "filename", "sample_note"))
    (tmp_path / "HallusionBench.json").write_text(json.dumps([columns | row for row in rows]))
    golds = {"/".join(row[name] for name in names[:5]): row["gt_answer"] for row in rows}
    wrong = next(name for name in golds if name.startswith("VD/"))
    answers = {name: "yes" if (gold == "1") != (name == wrong) else "no" for name, gold in golds.items()}
    (tmp_path / "answers.jsonl").write_text(
        "".join(json.dumps({"id": name, "generated_answer": said}) + "\n" for name, said in answers.items())
    )
    settings = ("--data", str(tmp_path), "--no-report", "-o", str(tmp_path / "run"))
    call = captured_call("score", "hallusionbench", str(tmp_path / "answers.jsonl"), *settings)
    assert call.status == 0, call.err.decode()
    entry = Run(tmp_path / "run")["yes_no"]
    parts = {part: figure["value"] for part, figure in entry["parts"].items()}
    assert (parts["aAcc"], parts["fAcc"], parts["qAcc"]) == pytest.approx((1 - 1 / 1129, 1 - 1 / 346, 1 - 1 / 455))
    assert entry["value"] == pytest.approx(sum(parts[part] for part in ("aAcc", "fAcc", "qAcc")) / 3)


def test_from_python(tmp_path):
    write_sample(recipe("blink-val"), tmp_path / "copy")
    run = evaluate("blink-val", model=lambda request: "(B)", task_data=tmp_path / "copy", allow_partial=True)
    assert run["multiple_choice"]["value"] == 0.5  # B is right in two of the four subtasks, which count alike


def test_a_renamed_column_is_refused(tmp_path, mine):
    rows = [json.loads(line) for line in (mine / "sample.jsonl").read_text().splitlines()]
    renamed = [{("options" if name == "choices" else name): value for name, value in row.items()} for row in rows]
    (mine / "sample.jsonl").write_text("".join(json.dumps(row) + "\n" for row in renamed))
    edited(mine, "question, choices,", "question, options,")
    write_sample(recipe(mine), tmp_path / "copy")
    with pytest.raises(ConfigError, match="no column 'choices': there are 'idx'"):
        open_task("blink-val", task_data=tmp_path / "copy", allow_partial=True)


def test_a_model_is_asked_and_scored_by_the_name_of_the_benchmark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample(recipe("blink-val"), tmp_path / "copy")
    answers = {
        "val_Art_Style_1": "(A)",
        "val_Counting_1": "(B)",
        "val_Relative_Reflectance_1": "so (C)",
        "val_Jigsaw_1": "?",
    }
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    options = ("--data", "copy", "--allow-partial", "--no-report")
    call = captured_call("run", "blink-val", "--model", "script:answers.json", *options, "-o", "run")
    assert call.status == 0, call.err.decode()
    run = Run(tmp_path / "run")
    assert run["multiple_choice"]["value"] == 0.75
    assert run.info.config.origin.exactness == "verified"
    call = captured_call(
        "run", "blink-val", "--model", "echo", *options, "--prompt", "lmms-eval", "--show-request", "val_Jigsaw_1"
    )
    assert b"Note: You only need to respond with A, B without" in call.out


def test_a_card_is_written_in_a_notebook_too():
    """There, the thread has a running event loop."""

    async def in_a_notebook():
        return recipe_card("mmmu-val")

    assert asyncio.run(in_a_notebook()) == recipe_card("mmmu-val")
