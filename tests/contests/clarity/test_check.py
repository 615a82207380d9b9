"""Checks of a submission before its upload: every kind of problem, each with its code, line and advice."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from multimodal_eval.contests.clarity import predictions
from multimodal_eval.contests.clarity.dataset import check
from multimodal_eval.contests.clarity.labels import EVASION_LABELS
from multimodal_eval.core.errors import InputError
from tests.contests.clarity.make_data import FOLDER, files
from tests.contests.clarity.make_data import contest_zip as zipped

DATA = """\
index,question,clarity_label,evasion_label,annotator1,annotator2
1,a?,,,Explicit,
2,b?,,,Dodging,General
3,c?,,,,
"""
GOOD = """\
id,clarity_pred,evasion_pred
1,Clear Reply,Explicit
2,Ambivalent Reply,Dodging
3,Clear Non-Reply,Clarification
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.csv").write_text(DATA)
    return tmp_path


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def problems(path, data=None, task=None):
    with pytest.raises(InputError) as refused:
        check(path, data, task)
    return refused.value.problems


def only_problem(path, data=None, task=None):
    (problem,) = problems(path, data, task)
    return problem


def archive(*members: tuple[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return out.getvalue()


def test_the_test_data_match_the_script():
    assert {path.name for path in FOLDER.iterdir()} == set(files())
    for name, content in files().items():
        if name.endswith(".zip"):  # another zlib may compress the same content differently
            old, new = zipfile.ZipFile(FOLDER / name), zipfile.ZipFile(io.BytesIO(content))
            assert old.namelist() == new.namelist() == ["prediction"]
            assert old.read("prediction") == new.read("prediction")
        else:
            assert (FOLDER / name).read_bytes() == content


@pytest.mark.parametrize("name", ["alba.csv", "boreas.csv", "alba.evasion.zip", "boreas.clarity.zip"])
def test_the_invented_systems_have_no_problems(name):
    checked = check(FOLDER / name, FOLDER / "test.csv")
    assert checked.rows == 96
    assert all(sum(counts.values()) == 96 for counts in checked.labels.values())


def test_both_tasks_of_a_table_are_reported(folder):
    checked = check(written(folder, "p.csv", GOOD), folder / "data.csv")
    assert checked.form == "table"
    assert checked.labels["clarity"] == {"Clear Reply": 1, "Ambivalent Reply": 1, "Clear Non-Reply": 1}
    assert checked.labels["evasion"] == {label: int(label in GOOD) for label in EVASION_LABELS}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "tsv"])
def test_other_tables_are_read_as_well(folder, suffix):
    rows = [{"id": "1", "evasion_pred": "Explicit"}, {"id": "2", "evasion_pred": "Dodging"}]
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "p.parquet")
    elif suffix == "jsonl":
        written(folder, "p.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    else:
        written(folder, "p.tsv", "id\tevasion_pred\n1\tExplicit\n2\tDodging\n")
    assert check(folder / f"p.{suffix}").labels["evasion"]["Dodging"] == 1


def test_the_task_of_a_zip_is_inferred_from_its_labels(folder):
    assert list(check(written(folder, "c.zip", zipped(["Clear Reply", "Ambivalent"]))).labels) == ["clarity"]
    assert list(check(written(folder, "e.zip", zipped(["Explicit", "Dodging"]))).labels) == ["evasion"]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfExplicit\r\nDodging\r\nGeneral\r\n",
        b"Explicit\nDodging\nGeneral",
        b" Explicit \nDodging\t\nGeneral\n  ",
    ],
)
def test_bom_crlf_and_the_end_of_the_file_do_not_matter(folder, content):
    checked = check(written(folder, "s.zip", archive(("prediction", content))), folder / "data.csv")
    assert [checked.labels["evasion"][label] for label in ("Explicit", "Dodging", "General")] == [1, 1, 1]


def test_a_table_with_bom_and_crlf(folder):
    path = written(folder, "p.csv", b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert check(path, folder / "data.csv").rows == 3


# problems of a table


def test_an_unknown_label_gets_its_line_and_the_nearest_label(folder):
    problem = only_problem(written(folder, "p.csv", "id,evasion_pred\n1,Explicit\n2,Dogding\n"))
    assert (problem.code, problem.line, problem.id, problem.field) == ("UNKNOWN_LABEL", 3, "2", "evasion_pred")
    assert "'Dogding'" in problem.message
    assert problem.hint.startswith("Did you mean 'Dodging'?")


def test_a_label_of_the_other_task_is_recognized(folder):
    problem = only_problem(written(folder, "p.csv", "id,clarity_pred\n1,Explicit\n2,Clear Reply\n"))
    assert problem.code == "UNKNOWN_LABEL"
    assert problem.hint.startswith("That is a label of the task evasion.")


def test_a_label_without_a_close_match_gets_the_list(folder):
    problem = only_problem(written(folder, "p.csv", "id,clarity_pred\n1,xyzzy\n2,Clear Reply\n"))
    assert "Known: Clear Reply, Ambivalent Reply, Clear Non-Reply." in problem.hint


def test_a_label_outside_the_taxonomy_is_not_a_prediction(folder):
    problem = only_problem(written(folder, "p.csv", "id,evasion_pred\n1,2.5 Contradictory\n2,Dodging\n"))
    assert problem.code == "UNKNOWN_LABEL"


def test_a_blank_label(folder):
    problem = only_problem(written(folder, "p.csv", "id,evasion_pred\n1,Explicit\n2, \n"))
    assert (problem.code, problem.line, problem.id) == ("EMPTY_LABEL", 3, "2")


def test_a_label_that_is_not_text(folder):
    rows = '{"id": "1", "evasion_pred": 3}\n{"id": "2", "evasion_pred": 4}\n'
    assert {problem.code for problem in problems(written(folder, "p.jsonl", rows))} >= {"TYPE"}


def test_a_duplicate_id_names_both_lines(folder):
    problem = only_problem(written(folder, "p.csv", "id,evasion_pred\n1,Explicit\n2,Dodging\n1,General\n"))
    assert (problem.code, problem.id) == ("DUPLICATE", "1")
    assert "lines 2 and 4" in problem.message


def test_unmatched_ids_are_counted_on_both_sides(folder):
    path = written(folder, "p.csv", "id,evasion_pred\n1,Explicit\n7,Dodging\n8,General\n")
    problem = only_problem(path, folder / "data.csv")
    assert problem.code == "UNMATCHED"
    assert "2 of 3 ids of" in problem.message
    assert "(first: '2', '3')" in problem.message
    assert "2 of 3 predicted ids are not in the data (first: '7', '8')" in problem.message


def test_a_column_with_another_name_is_not_guessed(folder):
    problem = only_problem(written(folder, "p.csv", "id,evasion_labels\n1,Explicit\n"))
    assert problem.code == "UNKNOWN_COLUMN"
    assert "The columns are id, evasion_labels." in problem.hint
    assert "--map evasion_pred=evasion_labels." in problem.hint


def test_a_row_without_an_id(folder):
    problem = only_problem(written(folder, "p.csv", "id,evasion_pred\n,Explicit\n2,Dodging\n"), folder / "data.csv")
    assert (problem.code, problem.line) == ("MISSING_ID", 2)


def test_an_empty_table(folder):
    assert only_problem(written(folder, "p.csv", "id,evasion_pred\n")).code == "EMPTY"


def test_invalid_utf_8(folder):
    assert only_problem(written(folder, "p.csv", b"id,evasion_pred\n1,Dodg\xffing\n")).code == "ENCODING"


def test_a_task_that_is_not_predicted(folder):
    problem = only_problem(written(folder, "p.csv", "id,clarity_pred\n1,Clear Reply\n"), task="evasion")
    assert problem.code == "NO_PREDICTION"
    assert "clarity" in problem.hint


def test_labels_of_the_other_task_do_not_matter_if_a_task_is_named(folder):
    path = written(folder, "p.csv", "id,clarity_pred,evasion_pred\n1,nonsense,Explicit\n")
    assert list(check(path, task="evasion").labels) == ["evasion"]
    assert problems(path)[0].field == "clarity_pred"


def test_all_problems_are_reported_together(folder):
    path = written(folder, "p.csv", "id,evasion_pred\n1,Explicitt\n1,Dodging\n2,\n9,General\n")
    refused = problems(path, folder / "data.csv")
    assert [problem.code for problem in refused] == ["DUPLICATE", "UNKNOWN_LABEL", "EMPTY_LABEL", "UNMATCHED"]


def test_a_missing_file(folder):
    for name in ("none.csv", "none.zip"):
        assert only_problem(folder / name).code == "NOT_FOUND"


def test_an_unknown_format(folder):
    assert only_problem(written(folder, "p.xlsx", b"PK")).code == "FORMAT"


# problems of a zip


def test_an_empty_line_is_reported_with_its_number(folder):
    problem = only_problem(written(folder, "s.zip", archive(("prediction", "Explicit\n\nGeneral\n"))))
    assert (problem.code, problem.line) == ("EMPTY_LABEL", 2)
    assert str(problem).startswith(f"{folder}/s.zip/prediction:2: EMPTY_LABEL:")


def test_an_unknown_label_in_a_zip(folder):
    problem = only_problem(written(folder, "s.zip", zipped(["Explicit", "Dodgin"])))
    assert (problem.code, problem.line) == ("UNKNOWN_LABEL", 2)
    assert "'Dodging'" in problem.hint


@pytest.mark.parametrize("count", [2, 4])
def test_a_number_of_lines_that_differs_from_the_rows(folder, count):
    problem = only_problem(written(folder, "s.zip", zipped(["Explicit"] * count)), folder / "data.csv")
    assert problem.code == "LENGTH"
    assert f"{count} lines" in problem.message
    assert "3 rows" in problem.message


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("prediction.txt", "The name must have no extension."),
        ("answers/prediction", "It must not be in a folder."),
        ("predictions", "zip submission.zip prediction"),
    ],
)
def test_a_wrong_name_in_the_zip(folder, name, advice):
    problem = only_problem(written(folder, "s.zip", archive((name, "Explicit\n"))))
    assert problem.code == "MEMBER"
    assert advice in problem.hint


def test_labels_in_a_file_with_a_wrong_name_are_still_checked(folder):
    codes = [problem.code for problem in problems(written(folder, "s.zip", archive(("p.txt", "Explicit\nDogding\n"))))]
    assert codes == ["MEMBER", "UNKNOWN_LABEL"]


def test_several_files_in_the_zip(folder):
    path = written(folder, "s.zip", archive(("prediction", "Explicit\n"), ("__MACOSX/._prediction", "x")))
    problem = only_problem(path)
    assert problem.code == "MEMBER"
    assert "__MACOSX/._prediction" in problem.message


def test_several_files_and_none_with_the_right_name(folder):
    problem = only_problem(written(folder, "s.zip", archive(("a", "Explicit\n"), ("b", "x"))))
    assert problem.code == "MEMBER"
    assert "none with that name" in problem.message


def test_a_folder_next_to_the_file(folder):
    problem = only_problem(written(folder, "s.zip", archive(("folder/", ""), ("prediction", "Explicit\n"))))
    assert problem.code == "MEMBER"


def test_an_empty_zip_and_an_empty_file_in_it(folder):
    assert only_problem(written(folder, "s.zip", archive())).code == "MEMBER"
    assert only_problem(written(folder, "t.zip", archive(("prediction", "")))).code == "EMPTY"


def test_something_that_is_not_a_zip(folder):
    assert only_problem(written(folder, "s.zip", b"Explicit\nDodging\n")).code == "FORMAT"


def test_a_damaged_zip(folder):
    whole = bytearray(zipped(["Explicit"] * 50))
    whole[45] ^= 0xFF  # within the packed bytes
    assert only_problem(written(folder, "s.zip", bytes(whole))).code == "TRUNCATED"


def test_an_encrypted_zip(folder):
    whole = bytearray(zipped(["Explicit"]))
    for start, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.index(start) + offset] |= 0x1
    problem = only_problem(written(folder, "s.zip", bytes(whole)))
    assert problem.code == "FORMAT"
    assert "encrypted" in problem.message


def test_a_zip_bomb_is_refused_by_its_declared_size(folder):
    bomb = archive(("prediction", b"\n" * (predictions.MAX_BYTES + 1)))
    assert len(bomb) < 100_000
    path = written(folder, "s.zip", bomb)
    tracemalloc.start()
    try:
        assert only_problem(path).code == "TOO_LONG"
        assert tracemalloc.get_traced_memory()[1] < predictions.MAX_BYTES / 4
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_with_a_wrong_declared_size_is_not_unpacked(folder, monkeypatch):
    monkeypatch.setattr(predictions, "MAX_BYTES", 1000)
    whole = bytearray(archive(("prediction", b"Explicit\n" * 100_000)))
    for start, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", whole, whole.index(start) + offset, 9)
    # Python's reader stops at the declared size and then finds the checksum wrong.
    assert only_problem(written(folder, "s.zip", bytes(whole))).code in ("TRUNCATED", "TOO_LONG")


@pytest.mark.parametrize("content", ["Explicit\n".encode("utf-16"), b"Explicit\nDodg\xffing\n"])
def test_an_encoding_that_is_not_utf_8(folder, content):
    assert only_problem(written(folder, "s.zip", archive(("prediction", content)))).code == "ENCODING"


def test_the_list_of_labels_without_its_zip(folder):
    problem = only_problem(written(folder, "prediction", "Explicit\n"))
    assert problem.code == "FORMAT"
    assert "zip submission.zip prediction" in problem.hint


# unusual but accepted


def test_other_spellings_are_accepted_and_reported(folder):
    checked = check(written(folder, "s.zip", zipped(["partial", "1.1 Explicit", "Dodging"])))
    assert checked.labels["evasion"]["Partial/half-answer"] == 1
    (note,) = (note for note in checked.notes if "spelled" in note)
    assert note.startswith("labels that are not spelled as in the taxonomy: 2, 'partial' for 'Partial/half-answer' (1)")


def test_labels_that_are_never_predicted_are_reported(folder):
    (note,) = check(written(folder, "s.zip", zipped(["Clear Reply", "Clear Non-Reply"]))).notes
    assert note == "labels that are never predicted in the task clarity, with an F1 of 0: Ambivalent Reply"
    (note,) = check(written(folder, "s.zip", zipped(["Clear Reply", "Clear Reply"]))).notes
    assert note == "every row has the same clarity label, 'Clear Reply'"


def test_contradicting_predictions_are_counted(folder):
    path = written(folder, "p.csv", GOOD.replace("Clear Reply,Explicit", "Clear Non-Reply,Explicit"))
    assert "rows whose predicted clarity label contradicts their evasion label: 1" in check(path).notes
