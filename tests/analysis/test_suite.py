"""Models x tasks: cells, tests, averages, and what is not compared."""

from __future__ import annotations

import shlex
import shutil
from math import sqrt

import pytest

from multimodal_eval import evaluate, generate, load_run, suite
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.errors import ConfigError, RunFolderError, UnknownNameError
from tests.analysis.suites import RIGHT, answers, scored, small_suite
from tests.cli.command_line import mmeval
from tests.edited_runs import accept_changes, rewrite_json
from tests.run.labelled_samples import judged_samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_suite(tmp_path_factory.mktemp("suite"))


@pytest.fixture
def changed(folder, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(folder, tmp_path / "copy")


def test_every_cell_is_the_figure_of_its_run(folder):
    table = suite(folder)
    assert [row.name for row in table.rows] == ["finch", "parrot", "wren"]
    assert [(column.name, column.total, column.samples) for column in table.columns] == [
        ("chart", 24, 24),
        ("count", 24, 24),
        ("vqa", 24, 24),
    ]
    for model, tasks in RIGHT.items():
        for task, right in tasks.items():
            cell = table[model, task]
            assert cell.figure.value == right / 24
            assert cell.run == str(folder / model / task)


def test_cells_have_the_test_of_compare_corrected_for_the_tasks(folder):
    table = suite(folder)
    for task in ("vqa", "chart", "count"):
        compared = compare_runs([folder / model / task for model in ("finch", "parrot", "wren")])
        p_values = {frozenset((pair.first, pair.second)): pair.p_value for pair in compared.numbers[0].pairs}
        by_folder = {frozenset(str(folder / model / task)) for model in RIGHT}
        assert by_folder
        for model in ("parrot", "wren"):
            first, second = sorted(("finch", model))
            key = frozenset(name for name in compared.runs if f"/{first}/" in name or f"/{second}/" in name)
            p_best = table[model, task].p_best
            assert p_best == pytest.approx(1 - (1 - p_values[key]) ** 3)
            assert table[model, task].place == ("tied" if p_best >= 0.05 else "")
        assert table["finch", task].place == "best"


def test_two_models_of_one_task_are_those_of_compare(folder):
    table = suite([folder / "parrot" / "vqa", folder / "finch" / "vqa"], baseline="parrot")
    ((pair,),) = [compare_runs([folder / "parrot" / "vqa", folder / "finch" / "vqa"]).numbers[0].pairs]
    cell = table["finch", "vqa"]
    assert (cell.difference.value, cell.p_difference) == (pair.difference, pytest.approx(pair.p_value))
    assert (cell.difference.low, cell.difference.high) == (pytest.approx(pair.low), pytest.approx(pair.high))


def test_averages_ranks_and_the_verdict(folder):
    table = suite(folder)
    assert table.averaged == ("chart", "count", "vqa")
    finch, parrot, wren = table.rows
    assert finch.average.value == pytest.approx((20 + 19 + 22) / 72)
    errors = [cell.figure.stderr for cell in finch.cells]
    assert finch.average.stderr == pytest.approx(sqrt(sum(each**2 for each in errors)) / 3)
    assert (finch.average_rank, finch.rank) == (1.0, 1)
    assert parrot.average_rank == pytest.approx((3 + 2 + 3) / 3)
    assert wren.average_rank == pytest.approx((2 + 3 + 2) / 3)
    nearest = table.differences[0]
    assert (nearest.first, nearest.second, nearest.verdict) == ("wren", "finch", "better")
    assert nearest.figure.value == pytest.approx((7 + 1 + 10) / 72)
    assert nearest.opposite == []
    without = {task.column: task.without.value for task in nearest.tasks}
    assert without["count"] == pytest.approx((7 + 1) / 48)


def test_tasks_with_the_other_sign_are_named(folder):
    (difference,) = suite(folder, models=["parrot", "wren"], baseline="parrot").differences
    assert [task.column for task in difference.opposite] == ["count"]
    assert difference.figure.value == pytest.approx((1 + 8 - 2) / 72)


def test_a_missing_run_is_shown_and_leaves_its_task_out_of_the_average(changed):
    shutil.rmtree(changed / "wren" / "chart")
    table = suite(changed)
    assert table["wren", "chart"].remark == "no run"
    assert table.averaged == ("count", "vqa")
    assert {column.name: column.left_out for column in table.columns}["chart"] == "wren: no run"
    assert table["parrot", "chart"].is_compared  # with finch


def test_a_half_scored_run_is_shown_and_not_compared(changed):
    shutil.rmtree(changed / "wren" / "vqa")
    scored(changed, "wren", "vqa", answers(13, missing=6))
    table = suite(changed)
    cell = table["wren", "vqa"]
    assert (cell.figure.n_scored, cell.figure.n_total) == (18, 24)
    assert (cell.is_compared, cell.rank, cell.remark) == (False, None, "6 of 24 samples are unscored")
    assert "vqa" not in table.averaged
    partial = suite(changed, allow_partial=True)
    assert partial["wren", "vqa"].is_compared
    assert {column.name: column.samples for column in partial.columns}["vqa"] == 18
    # All values are over the 18 samples that all have scored: of finch's, the first 18 are right, of parrot's 12.
    shown = {model: partial[model, "vqa"].figure for model in ("finch", "parrot", "wren")}
    assert {model: (figure.value, figure.n_scored, figure.n_total) for model, figure in shown.items()} == {
        "finch": (1.0, 18, 24),
        "parrot": (12 / 18, 18, 24),
        "wren": (13 / 18, 18, 24),
    }
    finch = partial.rows[[row.name for row in partial.rows].index("finch")]
    assert finch.average.value == pytest.approx((1.0 + 19 / 24 + 22 / 24) / 3)


def test_runs_with_parts_of_all_samples_together_are_compared(tmp_path):
    for model in ("one", "other"):
        run = generate(answers(12), model=lambda request: "yes", output=tmp_path / model, generation={"epochs": 2})
        assert "pass@2" in run.score(metrics=["exact_match"]).entries["exact_match"].parts
    table = suite(tmp_path)
    assert {cell.figure.value for row in table.rows for cell in row.cells if cell.figure is not None} == {1.0}


def test_other_samples_references_and_signatures_are_not_compared(changed):
    for task in ("vqa", "chart", "count"):
        shutil.rmtree(changed / "wren" / task)
    scored(changed, "wren", "vqa", answers(13, samples=20))
    scored(changed, "wren", "chart", answers(18, word="maybe"))
    scored(changed, "wren", "count", answers(12), metric="contains")
    table = suite(changed)
    assert table["wren", "vqa"].remark == "other samples than finch: 4 ids are not in both"
    assert table.columns[-1].total == 24  # of most models; the cell of wren has its own number
    assert "n = 20" in mmeval("table", str(changed)).stdout
    assert "24 samples with different questions, references" in table["wren", "chart"].remark
    assert [column.name for column in table.columns][1:3] == ["count (exact_match)", "count (contains)"]
    assert table["wren", "count (exact_match)"].remark == "no run"
    assert table["wren", "count (contains)"].figure.value == 0.5
    assert table.no_average is not None
    assert table.averaged == ()


def test_intervals_of_an_older_version_are_not_compared(changed):
    old = changed / "wren" / "vqa"
    rewrite_json(old / "run.json", lambda content: content["versions"].pop("statistics"))
    accept_changes(old)
    cell = suite(changed)["wren", "vqa"]
    assert (cell.is_compared, cell.rank) == (False, None)
    command = cell.remark.partition("Compute them again: ")[2]
    mmeval(*shlex.split(command)[1:])
    shutil.rmtree(old)
    shutil.move(f"{old}-again", old)
    assert suite(changed)["wren", "vqa"].is_compared


def test_scores_that_labels_correct_and_a_limit_are_named(tmp_path):
    for model in ("one", "other"):
        evaluate(
            judged_samples(), metrics=["exact_match"], human={"exact_match": "rating"}, limit=100,
            output=tmp_path / model / "safety", skip_lint=True,
        )  # fmt: skip
    shown = mmeval("table", str(tmp_path)).stdout
    by_labels = load_run(tmp_path / "one" / "safety").calibrated("exact_match")
    assert "safety: exact_match is corrected by human labels; uncorrected: one " in " ".join(shown.split())
    cell = suite(tmp_path)["one", "safety"]
    assert (cell.figure.value, cell.figure.low, cell.figure.high) == (by_labels.value, by_labels.low, by_labels.high)
    assert cell.uncorrected.value == load_run(tmp_path / "one" / "safety")["exact_match"]["value"]
    assert "n = 100 (--limit 100)" in shown
    listed = mmeval("ls", "runs", str(tmp_path / "one")).stdout
    (line,) = (line for line in listed.splitlines() if "calibrated" in line)
    assert f"{by_labels.value:.4f}" in line
    assert line.endswith(f"{by_labels.labels} labels")


def test_an_unfinished_run_is_named(changed):
    (changed / "wren" / "vqa" / "results.json").unlink()
    assert "is not finished. Continue it with: mmeval score --resume" in suite(changed)["wren", "vqa"].remark


def test_a_run_whose_repair_was_interrupted_is_not_finished(changed):
    """Its results are those of before; the state in run.json is a label, which nothing depends on."""
    rewrite_json(changed / "wren" / "vqa" / "run.json", lambda info: info.pop("finished"))
    assert suite(changed)["wren", "vqa"].remark.startswith("not finished")


def test_seeds_are_joined_into_one_row(folder):
    table = suite(folder, join={"both": "[pw]*"})
    assert [row.name for row in table.rows] == ["finch", "both"]
    cell = table["both", "chart"]
    assert cell.figure.value == pytest.approx((10 + 18) / 48)
    assert (cell.spread.runs, cell.spread.low, cell.spread.high) == (2, 10 / 24, 18 / 24)
    assert cell.spread.sd == pytest.approx(8 / 24 / sqrt(2))
    row = table.rows[1]
    assert row.members == ("parrot", "wren")
    assert (row.spread.low, row.spread.high) == (pytest.approx(36 / 72), pytest.approx(43 / 72))


def test_two_runs_of_one_model_and_task_are_two_rows(folder, tmp_path):
    for seed in ("seed1", "seed2"):
        shutil.copytree(folder / "parrot", tmp_path / seed / "parrot")
    names = [row.name for row in suite(tmp_path).rows]
    assert names == ["parrot (seed1)", "parrot (seed2)"]


def test_rows_columns_and_names_are_chosen(folder):
    table = suite(folder, models=["wren", "f*"], tasks=["vqa", "chart"], names={"vqa": "VQA v2", "wren": "Wren 7B"})
    assert [row.label for row in table.rows] == ["Wren 7B", "finch"]
    assert [column.label for column in table.columns] == ["VQA v2", "chart"]
    assert table["Wren 7B", "VQA v2"] == table["wren", "vqa"]


def test_a_suite_file_says_the_same(folder, tmp_path):
    file = folder.parent / "paper.yaml"
    file.write_text(
        "models: [{name: finch, label: Finch}, {name: parrot}]\n"
        "tasks: [{name: vqa, headline: exact_match, recipe: vqa-v2}]\n"
        f"runs:\n- {{path: {folder.name}/finch/vqa, model: finch, task: vqa}}\n"
        f"- {{path: {folder.name}/parrot/vqa, model: parrot, task: vqa}}\n"
    )
    table = suite(file=file)
    assert [row.label for row in table.rows] == ["Finch", "parrot"]
    assert [(column.name, column.recipe) for column in table.columns] == [("vqa", "vqa-v2")]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"models": ["owl"]}, UnknownNameError, "owl"),
        ({"tasks": ["ocr"]}, UnknownNameError, "ocr"),
        ({"baseline": "owl"}, UnknownNameError, "owl"),
        ({"headlines": {"ocr": "anls"}}, UnknownNameError, "ocr"),
        ({"join": {"x": "owl*"}}, UnknownNameError, "owl"),
    ],
)
def test_unknown_names_are_refused(folder, settings, error, message):
    with pytest.raises(error, match=message):
        suite(folder, **settings)


def test_a_metric_that_no_run_has_is_a_remark(folder):
    table = suite(folder, headlines={"vqa": "anls"})
    assert table["finch", "vqa"].remark == "has no anls"


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match="no run is in"):
        suite(tmp_path)
    with pytest.raises(ConfigError, match="name runs"):
        suite()


def test_a_table_for_pandas_has_a_row_per_cell(folder):
    pytest.importorskip("pandas")
    frame = suite(folder).to_pandas()
    assert len(frame) == 9
    assert frame.set_index(["model", "task"]).loc[("finch", "vqa"), "value"] == 20 / 24
