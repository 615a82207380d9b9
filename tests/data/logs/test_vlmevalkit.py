"""Files of VLMEvalKit. Its own functions wrote the fixtures; see tests/data/logs/makers/vlmevalkit_logs.py."""

from __future__ import annotations

import json
import shutil

import pytest

from multimodal_eval import import_log
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.logs.recognised import recognised
from multimodal_eval.data.logs.vlmevalkit import FORMAT
from tests.data.logs.fixture_logs import VLMEVALKIT
from tests.data.logs.test_xlsx_rows import inline, write_xlsx
from tests.data.readers.reading import read

PREDICTIONS = VLMEVALKIT / "predictions"


def write_tsv(folder, rows, name="toy_DATA.tsv"):
    lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def row(**cells):
    return {"index": "1", "question": "What?", "prediction": "a dog", **cells}


@pytest.mark.parametrize("suffix", ["xlsx", "tsv", "json"])
def test_all_formats_of_predictions_are_the_same_samples(suffix):
    samples, problems, _ = read(PREDICTIONS / f"toy_CHOICES.{suffix}")
    assert not problems.total
    assert [sample.id for sample in samples] == ["1", "2", "3", "4", "5"]
    second, third = samples[1:3]
    assert second.choices == {"A": "1", "B": "2", "C": "3", "D": "None"}
    assert (second.expected_answer, second.generated_answer) == ("D", "D. None")
    assert third.choices == {"A": "N/A", "B": "NA", "C": "NaN", "D": "null"}
    assert samples[0].choices == {"A": "a cup", "B": "a hat", "C": "a cat"}
    assert second.metadata == {"category": "numbers"}


def test_a_failure_of_the_api_is_an_error():
    last = read(PREDICTIONS / "toy_CHOICES.xlsx")[0][-1]
    assert (last.error, last.generated_answer) == ("Failed to obtain answer via API.", None)


def test_an_exception_of_the_model_is_an_error(tmp_path):
    message = "Failed to obtain answer: <class 'RuntimeError'> CUDA out of memory"
    (sample,) = read(write_tsv(tmp_path, [row(prediction=message)]))[0]
    assert sample.error == message


def test_an_evaluation_has_the_scores_and_the_mean():
    imported = import_log(VLMEVALKIT / "choices", progress=False)
    (mean,) = imported.means
    # One of five is right in VLMEvalKit, whose reader takes None and NA for missing choices; another is a failure.
    assert (mean.metric, mean.stated, mean.mean) == ("vlmevalkit.hit", 0.2, 0.25)
    assert "counts 1 sample without a score as 0" in mean.explanation
    assert imported.logs[0].notes == (
        "VLMEvalKit took cells such as None or NA in 2 of 5 rows for missing values before it scored them; "
        "here they are those of the predictions",
        "1 of 5 predictions are failures of the model's API. VLMEvalKit gives them a score; here they are unscored",
    )


def test_cells_that_an_evaluation_lost_are_those_of_the_predictions(tmp_path):
    shutil.copytree(VLMEVALKIT / "choices", tmp_path, dirs_exist_ok=True)
    (evaluation,) = tmp_path.glob("*_result.xlsx")
    samples, _, _ = read(evaluation)
    assert samples[1].choices["D"] == "None"
    assert samples[2].choices == {"A": "N/A", "B": "NA", "C": "NaN", "D": "null"}
    (tmp_path / "toy_CHOICES.xlsx").unlink()
    samples, _, _ = read(evaluation)
    assert "D" not in samples[1].choices
    assert samples[2].choices is None


def test_a_mean_in_percent_is_explained():
    (mean,) = import_log(VLMEVALKIT / "booleans", progress=False).means
    assert mean.metric == "vlmevalkit.score"
    assert mean.mean == pytest.approx(2 / 3)
    assert "in percent" in mean.explanation


def test_an_answer_that_is_a_list_has_several_references():
    samples, _, _ = read(VLMEVALKIT / "words")
    assert samples[1].references == ["007", "007", "7", "007"]
    assert (samples[1].generated_answer, samples[2].references[2]) == ("007", "None")
    assert samples[2].generated_answer == "None"  # of the predictions; the evaluation beside them has `nan`
    # Three of four say the same: without one of them 2 of 3 are left, without the fourth 3, so (3 * 2/3 + 1) / 4.
    # VLMEvalKit's own reader lost the prediction 'None'.
    assert [sample.metadata["vlmevalkit.eval_score"] for sample in samples] == pytest.approx([0.75, 0.75, 0])
    (mean,) = import_log(VLMEVALKIT / "words", progress=False).means
    assert (mean.stated, mean.mean) == (50, pytest.approx(0.5))


def test_yes_and_no_have_the_extracted_answer():
    samples, _, _ = read(VLMEVALKIT / "booleans")
    assert [sample.metadata["extracted_answer"] for sample in samples] == ["Yes", "Yes", "No"]
    assert [sample.metadata["vlmevalkit.score"] for sample in samples] == [1, 0, 1]


@pytest.mark.parametrize(
    ("names", "model", "task"),
    [
        (["toy_CHOICES.xlsx", "toy_CHOICES_exact_matching_result.xlsx"], "toy", "CHOICES"),
        (["my_model_MMBench_DEV_EN.xlsx"], "my_model", "MMBench_DEV_EN"),
        (["my_model_QUIZ.xlsx"], None, "my_model_QUIZ"),  # may be the model `my`
    ],
)
def test_model_and_dataset_of_files_in_any_folder(tmp_path, names, model, task):
    for name in names:
        shutil.copy(VLMEVALKIT / "choices" / "toy_CHOICES_exact_matching_result.xlsx", tmp_path / name)
    info = FORMAT.info(tmp_path / names[-1])
    assert (info.model, info.task) == (model, task)


def test_model_and_dataset_are_in_the_names(tmp_path):
    folder = tmp_path / "toy" / "T20261116-1234"
    shutil.copytree(PREDICTIONS, folder)
    info = FORMAT.info(folder / "toy_CHOICES.xlsx")
    assert (info.model, info.task, info.scores) == ("toy", "CHOICES", ())


def test_a_link_to_a_file_of_the_folder_is_left_out(tmp_path):
    shutil.copytree(VLMEVALKIT / "words", tmp_path / "toy" / "T20261116-1234")
    for file in (tmp_path / "toy" / "T20261116-1234").iterdir():
        (tmp_path / "toy" / file.name).symlink_to(file)
    samples, problems, _ = read(tmp_path)
    assert not problems.total
    assert [sample.id for sample in samples] == ["1", "2", "3"]


def test_reasoning_and_columns_with_the_names_of_fields(tmp_path):
    (sample,) = read(write_tsv(tmp_path, [row(thinking="It barks.", task="animals", score="0.5", log="n/a")]))[0]
    assert sample.metadata == {
        "reasoning": "It barks.",
        "row.task": "animals",
        "vlmevalkit.score": 0.5,
        "log": "n/a",
    }
    assert sample.task is None


def test_data_with_an_id_are_not_a_log(tmp_path):
    assert recognised(write_tsv(tmp_path, [row(id="7")])) is None
    assert recognised(write_tsv(tmp_path, [{"index": "1", "prediction": "x"}], "b.tsv")) is None
    plain = tmp_path / "c.json"
    plain.write_text(json.dumps([{"id": "1", "index": 2, "question": "a", "prediction": "b"}]))
    assert recognised(plain) is None


def test_another_workbook_is_refused(tmp_path):
    path = write_xlsx(tmp_path / "mine.xlsx", inline(["id", "prediction"]))
    with pytest.raises(InputError, match="Save it as CSV"):
        read(path)


def test_a_pickle_is_refused(tmp_path):
    path = tmp_path / "toy_CHOICES_exact_matching_result.pkl"
    path.write_bytes(b"\x80\x04N.")
    with pytest.raises(InputError, match="can run any program") as caught:
        read(path)
    assert ".xlsx" in str(caught.value)


def test_a_row_that_is_too_long_is_named(tmp_path):
    path = write_tsv(tmp_path, [row()])
    path.write_text(path.read_text() + "2\tWhat?\ta cat\tmore\n")
    _, problems, _ = read(path)
    assert [problem.code for problem in problems.kept] == ["LENGTH"]
