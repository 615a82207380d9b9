"""Croissant metadata and the files that they describe."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary

FIXTURES = Path(__file__).parent / "fixtures" / "croissant"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())["records"]


def samples_of(path, record_set=None):
    problems = Problems()
    source = FileInput(path, log=None if record_set is None else f"croissant:{record_set}")
    return list(source.samples(problems, Summary())), problems


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(FIXTURES, tmp_path / "data")
    return tmp_path / "data"


def edited(folder, edit):
    path = folder / "croissant.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    return path


def test_records_are_those_of_mlcroissant():
    samples, problems = samples_of(FIXTURES / "croissant.json", "questions")
    assert problems.total == 0
    for sample, record in zip(samples, EXPECTED["questions"], strict=True):
        expected = {key.removeprefix("questions/"): value for key, value in record.items()}
        assert sample.id == expected["qid"]
        assert (sample.question, sample.expected_answer) == (expected["question"], expected["expected_answer"])
        assert sample.metadata == {name: expected[name] for name in ("views", "file")}
        with Image.open(FIXTURES / sample.image) as image:
            assert list(image.getpixel((0, 0))) == expected["image"]


@pytest.mark.parametrize("name", ["captions", "facts", "words"])
def test_other_record_sets(name):
    samples, problems = samples_of(FIXTURES / "croissant.json", name)
    assert problems.total == 0
    shown = [
        {"id": int(sample.id), **sample.metadata, **({"caption": sample.caption} if sample.caption else {})}
        for sample in samples
    ]
    expected = [{key.rpartition("/")[2]: value for key, value in record.items()} for record in EXPECTED[name]]
    assert shown == [{"id": number, **record} for number, record in enumerate(expected)]


def test_one_of_several_record_sets_must_be_chosen():
    _, problems = samples_of(FIXTURES / "croissant.json")
    (problem,) = problems.kept
    assert problem.message == "there are several record sets: questions, captions, facts, words."
    assert problem.hint == "Choose one: --as croissant:questions"


def test_unknown_record_sets_and_options():
    _, problems = samples_of(FIXTURES / "croissant.json", "nothing")
    assert problems.kept[0].message.startswith("no record set is named 'nothing'. Known: questions,")
    with pytest.raises(ConfigError, match="the format 'webdataset' has no option 'x'"):
        FileInput(FIXTURES / "croissant.json", log="webdataset:x")


def test_the_files_are_part_of_the_description():
    described = FileInput(FIXTURES / "croissant.json", log="croissant:words").describe()
    names = [Path(file.path).relative_to(FIXTURES).as_posix() for file in described]
    assert names == ["croissant.json", "tables/test/0.parquet", "tables/train/0.parquet"]


def test_another_checksum_is_refused(folder):
    (folder / "questions.csv").write_text("qid,question,gold,views,file\nq1,?,red,1,red.png\n")
    samples, problems = samples_of(folder / "croissant.json", "questions")
    assert samples == []
    (problem,) = problems.kept
    assert problem.code == "CONFLICT"
    assert "questions.csv is not the file that the metadata describe: its sha256 is" in problem.message


def test_md5_is_compared_too(folder):
    def edit(content):
        del content["distribution"][0]["sha256"]
        content["distribution"][0]["md5"] = "0" * 32

    _, problems = samples_of(edited(folder, edit), "questions")
    assert "its md5 is" in problems.kept[0].message


def test_a_file_that_must_be_downloaded_is_named(folder):
    (folder / "questions.csv").unlink()
    path = edited(folder, lambda content: content["distribution"][0].update(contentUrl="https://example.org/d/q.csv"))
    _, problems = samples_of(path, "questions")
    assert problems.kept[0].code == "NOT_FOUND"
    assert problems.kept[0].hint == "Download it: https://example.org/d/q.csv"


def test_a_downloaded_file_is_found_by_its_name(folder):
    (folder / "questions.csv").rename(folder / "q.csv")
    path = edited(folder, lambda content: content["distribution"][0].update(contentUrl="https://example.org/d/q.csv"))
    samples, problems = samples_of(path, "questions")
    assert (len(samples), problems.total) == (2, 0)


@pytest.mark.parametrize("url", ["../questions.csv", "/etc/passwd", "a/../../questions.csv", "..\\questions.csv"])
def test_files_outside_the_folder_are_refused(folder, url):
    path = edited(folder, lambda content: content["distribution"][0].update(contentUrl=url))
    samples, problems = samples_of(path, "questions")
    assert samples == []
    assert [problem.code for problem in problems.kept] == ["FORMAT"]
    assert problems.kept[0].message == f"the path {url!r} leaves the folder of the metadata"


def test_a_link_out_of_the_folder_is_refused(folder):
    path = edited(folder, lambda content: content)
    (name,) = {each["contentUrl"] for each in json.loads(path.read_text())["distribution"][:1]}
    (path.parent / name).rename(folder.parent / "elsewhere.csv")
    (path.parent / name).symlink_to(folder.parent / "elsewhere.csv")
    samples, problems = samples_of(path, "questions")
    assert samples == []
    assert "is a link that leads out of the folder of the metadata" in problems.kept[0].message


def test_an_archive_must_be_unpacked(folder):
    def edit(content):
        images = content["distribution"][3]
        content["distribution"].append(
            {
                "@type": "cr:FileObject",
                "@id": "images.zip",
                "contentUrl": "images.zip",
                "encodingFormat": "application/zip",
            }
        )
        images |= {"containedIn": {"@id": "images.zip"}, "includes": "*.png"}

    path = edited(folder, edit)
    samples, problems = samples_of(path, "questions")
    assert [sample.image for sample in samples] == ["images/red.png", "images/blue.png"]
    shutil.rmtree(folder / "images")
    _, problems = samples_of(path, "questions")
    assert problems.kept[0].hint == f"Unpack images.zip into {folder / 'images'}."


def test_prefixed_keys_and_a_repository(folder):
    def edit(content):
        content["distribution"].append({"@type": "cr:FileObject", "@id": "repo", "encodingFormat": "git+https"})
        content["distribution"][4]["containedIn"] = {"@id": "repo"}
        content["cr:recordSet"] = [content.pop("recordSet")[3]]

    samples, problems = samples_of(edited(folder, edit))
    assert (len(samples), problems.total) == (4, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transform": {"regex": "(a+)+$"}}, "the pattern '(a+)+$' could take too long to match"),
        ({"transform": {"regex": "("}}, "the pattern '(' is not a regular expression"),
        ({"transform": {"format": "%Y"}}, "has the transform 'format', which is not read"),
        ({"extract": {"jsonPath": "$..x[?(@.y)]"}}, "is at '$..x[?(@.y)]' in JSON"),
        ({"extract": {"fileProperty": "lines"}}, "is the property 'lines' of a file"),
        ({"extract": {}}, "names no column, no path in JSON and no property of a file"),
        ({"fileObject": {"@id": "nothing.csv"}}, "which are not joined here"),
    ],
)
def test_what_is_not_read_is_named(folder, change, message):
    path = edited(folder, lambda content: content["recordSet"][0]["field"][1]["source"].update(change))
    samples, problems = samples_of(path, "questions")
    assert samples == []
    assert message in problems.kept[0].message


@pytest.mark.parametrize(
    "content",
    [
        {"@context": {}, "recordSet": 3},
        {"@context": {}, "recordSet": [{}]},
        {"@context": {}, "recordSet": [{"@id": "a", "field": [{"@id": "b", "source": {}}]}]},
        {"@context": {}, "recordSet": [], "distribution": [[]]},
        {"@context": {}, "recordSet": [], "distribution": [{}]},
    ],
)
def test_broken_metadata(tmp_path, content):
    path = tmp_path / "croissant.json"
    path.write_text(json.dumps(content))
    samples, problems = samples_of(path)
    assert (samples, problems.total) == ([], 1)


def test_a_cell_of_another_type_is_named(folder):
    def edit(content):
        del content["distribution"][0]["sha256"]

    (folder / "questions.csv").write_text("qid,question,gold,views,file\nq1,?,red,many,red.png\n")
    _, problems = samples_of(edited(folder, edit), "questions")
    assert str(problems.kept[0]).endswith(
        "questions.csv:2: TYPE: `views` must be of the type Integer. Got 'many' instead."
    )


@pytest.mark.parametrize(("record_set", "field"), [(0, 1), (2, 0)])
def test_a_column_that_does_not_exist_is_named(folder, record_set, field):
    def edit(content):
        extract = content["recordSet"][record_set]["field"][field]["source"]["extract"]
        names.append(content["recordSet"][record_set]["field"][field]["@id"])
        extract.clear()
        extract["column"] = "nowhere"

    names = []
    name = ("questions", "captions", "facts")[record_set]
    _, problems = samples_of(edited(folder, edit), name)
    (problem,) = problems.kept
    assert problem.code == "UNKNOWN_COLUMN"
    assert f"the field {names[0]!r} names the column 'nowhere', which no row of" in problem.message
    assert problem.hint.startswith("The columns are ")


def test_rows_of_json_may_lack_a_column(folder):
    rows = '{"text": "a"}\n{"text": "b", "more": 1}\n'
    (folder / "rows.jsonl").write_text(rows)
    path = folder / "own.json"
    source = {"fileObject": {"@id": "rows"}}
    fields = [{"@id": f"r/{name}", "source": {**source, "extract": {"column": name}}} for name in ("text", "more")]
    files = [
        {"@type": "cr:FileObject", "@id": "rows", "contentUrl": "rows.jsonl", "encodingFormat": "application/jsonl"}
    ]
    content = {"@context": {}, "distribution": files, "recordSet": [{"@id": "r", "field": fields}]}
    path.write_text(json.dumps(content))
    samples, problems = samples_of(path)
    assert (len(samples), problems.total) == (2, 0)
