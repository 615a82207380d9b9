"""The contest's files: every problem is reported with its place, and nothing is left behind."""

from __future__ import annotations

import gzip
import json
import unicodedata

import pytest

from multimodal_eval.contests.dialogue.dialogues import read_answers, read_gold, read_questions, read_surprises
from multimodal_eval.contests.dialogue.report import dialogue_report
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.data.readers.problems import Problems
from tests.cli.command_line import mmeval
from tests.contests.dialogue.contest import GOLD, OUTPUT, PPL, places, write_json

# gold


def test_an_unknown_type_names_the_four(problems):
    refusals = problems(gold=GOLD | {"d2": {"type": "Image2Texts", "replies": [["red"]]}})
    assert places(refusals) == [("UNKNOWN_TYPE", "gold.json", "d2")]
    assert "'Image2Texts'" in refusals[0][3]
    assert "Did you mean 'Image2Text'? Known: Audio2Text, Image-Audio2Text, Image2Text, Text2Text" in refusals[0][3]


@pytest.mark.parametrize(
    ("dialogue", "codes"),
    [
        ({"type": None, "replies": [["a"]]}, ["UNKNOWN_TYPE"]),
        ({"type": ["Text2Text"], "replies": [["a"]]}, ["UNKNOWN_TYPE"]),
        ({"type": "Text2Text"}, ["TYPE"]),
        ({"replies": [["a"]]}, ["TYPE"]),
        (["Text2Text"], ["TYPE"]),
        (None, ["TYPE"]),
        ({"type": "Text2Text", "replies": []}, ["LENGTH"]),
        ({"type": "Text2Text", "replies": "a"}, ["TYPE"]),
        ({"type": "Text2Text", "replies": [[]]}, ["NO_REFERENCE"]),
        ({"type": "Text2Text", "replies": [["a", " "]]}, ["EMPTY_REFERENCE"]),
        ({"type": "Text2Text", "replies": [["a", None]]}, ["TYPE"]),
        ({"type": "Text2Text", "replies": [["a\0"]]}, ["CONTROL_CHAR"]),
        ({"type": "Text2Text", "replies": [["a" * 1_000_001]]}, ["TOO_LONG"]),
        ({"type": "Text", "replies": [["a"], [], [""]]}, ["NO_REFERENCE", "EMPTY_REFERENCE", "UNKNOWN_TYPE"]),
    ],
)
def test_a_dialogue_of_the_gold_that_cannot_be_used(problems, dialogue, codes):
    refusals = problems(gold=GOLD | {"d3": dialogue})
    assert places(refusals) == [(code, "gold.json", "d3") for code in codes]


def test_a_type_with_a_weight_and_no_dialogue(contest, tmp_path):
    three = {name: dialogue for name, dialogue in GOLD.items() if name != "d3"}
    files = {"gold": three, "output": {n: OUTPUT[n] for n in three}, "ppl": {n: PPL[n] for n in three}}
    with pytest.raises(ConfigError, match=r"WEIGHTS: no dialogue has the type Audio2Text.*--present-types-only"):
        contest(**files)
    assert not (tmp_path / "run").exists()
    run = contest(**files, present_types_only=True)
    report = dialogue_report(run)
    # .1, .2, .4 divided by .7
    assert [row.weight for row in report.types] == pytest.approx([1 / 7, 2 / 7, 4 / 7], abs=1e-15)


# names


def test_a_duplicate_key_is_reported_with_its_line(problems):
    raw = json.dumps(OUTPUT, indent=1).replace('"d3"', '"d2"').encode()
    (refusal,) = problems(output=raw)
    lines = [number for number, line in enumerate(raw.decode().split("\n"), 1) if '"d2"' in line]
    assert refusal[:2] == ("DUPLICATE", "output.json")
    assert f"output.json:{lines[1]}: DUPLICATE: the key 'd2' occurs twice" in refusal[3]


def test_a_duplicate_key_inside_a_dialogue(problems):
    raw = (
        json.dumps(GOLD, indent=1).replace('"type": "Audio2Text"', '"type": "Audio2Text", "type": "Text2Text"').encode()
    )
    (refusal,) = problems(gold=raw)
    assert refusal[:2] == ("DUPLICATE", "gold.json")
    assert "type" in refusal[3]


def test_names_that_differ_only_in_their_unicode_form(problems, contest):
    nfc, nfd = "й", unicodedata.normalize("NFD", "й")
    (refusal,) = problems(output=OUTPUT | {nfc: ["a"], nfd: ["a"]}, gold=GOLD | {nfc: GOLD["d3"]}, ppl=PPL | {nfc: [2]})
    assert refusal[:3] == ("DUPLICATE", "output.json", nfd)
    run = contest(output=OUTPUT | {nfd: ["blue"]}, gold=GOLD | {nfc: GOLD["d3"]}, ppl=PPL | {nfd: [2]})
    assert run.results["n"] == 8


def test_a_blank_name(problems):
    (refusal,) = problems(output=OUTPUT | {" ": ["x"]})
    assert refusal[:3] == ("TYPE", "output.json", " ")


def test_extra_dialogues_are_refused(problems):
    refusals = problems(output=OUTPUT | {"d9": ["x"]}, ppl=PPL | {"e9": [1], "e8": [1]})
    assert places(refusals) == [("UNMATCHED", "output.json", None), ("UNMATCHED", "ppl_output.json", None)]
    assert "2 dialogues are not in the gold file (first: 'e9', 'e8')" in refusals[1][3]


def test_names_with_slashes_keep_their_replies_apart(contest):
    more = {"d1/2": ["blue"], "d1/2/1": ["blue"]}
    gold = GOLD | dict.fromkeys(more, GOLD["d3"])
    run = contest(gold=gold, output=OUTPUT | more, ppl=PPL | {name: [2] for name in more})
    ids = [sample.id for sample in run.samples()]
    assert ids[-2:] == ["d1/2/1", "d1/2/1/1"]
    assert len(set(ids)) == len(ids) == 9


# files


@pytest.mark.parametrize("name", ["gold", "output", "ppl"])
@pytest.mark.parametrize(
    ("raw", "codes"),
    [
        (b"", {"EMPTY", "TRUNCATED", "SYNTAX"}),
        (b"{}", {"EMPTY"}),
        (b"not json", {"SYNTAX"}),
        (b"[]", {"EMPTY"}),
        (b'["d1"]', {"TYPE", "LENGTH"}),
        (b"null", {"TYPE"}),
        (b'{"d1": ["cat', {"TRUNCATED", "SYNTAX"}),
        (b'{"d1": ["\xff"]}', {"ENCODING"}),
        ('{"d1": 1}'.encode("utf-16"), {"ENCODING"}),
        (b'{"d1": ["\\ud800"]}', {"CONTROL_CHAR"}),
        (b'{"d1": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", {"NESTING"}),
    ],
    ids=[
        "nothing",
        "no dialogues",
        "text",
        "array",
        "array of names",
        "null",
        "cut off",
        "not UTF-8",
        "UTF-16",
        "surrogate",
        "nested",
    ],
)
def test_a_file_that_cannot_be_read(problems, name, raw, codes):
    (refusal,) = problems(**{name: raw})
    assert refusal[0] in codes
    assert refusal[1] == {"ppl": "ppl_output.json"}.get(name, f"{name}.json")


def test_missing_files_and_folders(tmp_path):
    (tmp_path / "folder.json").mkdir()
    problems = Problems()
    read_answers(tmp_path / "absent.json", problems)
    read_surprises(tmp_path / "folder.json", problems)
    assert [(problem.code, problem.message) for problem in problems.kept] == [
        ("NOT_FOUND", "no such file"),
        ("NOT_FOUND", "this is a folder, but a file is needed"),
    ]


def test_both_files_of_a_submission_are_read_before_either_is_refused(problems):
    refusals = problems(output=b"[]", ppl=b"{}")
    assert places(refusals) == [("EMPTY", "output.json", None), ("EMPTY", "ppl_output.json", None)]


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ([{"id": "d1", "answers": ["a"]}, {"answers": ["b"]}], "MISSING_ID", "item 2 of the list has no `id`"),
        ([["a"]], "LENGTH", "the list has 1 items, but the gold file has 2 dialogues."),
        ([{"id": "d1", "answers": ["a"]}, {"id": "d1", "answers": ["b"]}], "DUPLICATE", "the dialogue occurs twice"),
        ([{"id": "d1", "answer": ["a"]}], "TYPE", "the answers must be a list with one item per reply"),
    ],
)
def test_lists_that_are_refused(tmp_path, content, code, message):
    problems = Problems()
    read_answers(write_json(tmp_path / "output.json", content), problems, ["d1", "d2"])
    (problem,) = problems.kept
    assert problem.code == code
    assert message in problem.message


@pytest.mark.parametrize("name", ["id", "dialogue_id", "dialogue"])
@pytest.mark.parametrize("key", ["answers", "replies", "output"])
def test_keys_of_lists(tmp_path, name, key):
    content = [{name: "d2", key: ["b"]}, {name: 1, key: ["a"]}]
    assert read_answers(write_json(tmp_path / "output.json", content), Problems()) == {"d2": ["b"], "1": ["a"]}


def test_lists_without_ids_are_numbered_or_in_the_order_of_the_gold_file(tmp_path):
    path = write_json(tmp_path / "output.json", [["b"], ["a"]])
    assert read_answers(path, Problems()) == {"1": ["b"], "2": ["a"]}
    assert read_answers(path, Problems(), ["x", "y"]) == {"x": ["b"], "y": ["a"]}


def test_a_truncated_gz(tmp_path):
    whole = gzip.compress(json.dumps({f"d{n}": ["an answer of some length"] for n in range(1000)}).encode())
    (tmp_path / "output.json.gz").write_bytes(whole[: len(whole) // 2])
    problems = Problems()
    assert read_answers(tmp_path / "output.json.gz", problems) == {}
    (problem,) = problems.kept
    assert (problem.code, problem.file) == ("TRUNCATED", str(tmp_path / "output.json.gz"))


def test_gz_bom_and_crlf_are_read(contest, tmp_path):
    plain = contest().results["composite"]
    (tmp_path / "run").rename(tmp_path / "first")
    packed = {
        name: gzip.compress(json.dumps(content).encode())
        for name, content in (("gold", GOLD), ("output", OUTPUT), ("ppl", PPL))
    }
    assert contest(**packed, suffix=".gz").results["composite"] == plain
    (tmp_path / "run").rename(tmp_path / "second")
    windows = {
        name: b"\xef\xbb\xbf" + json.dumps(content, indent=1).replace("\n", "\r\n").encode()
        for name, content in (("gold", GOLD), ("output", OUTPUT), ("ppl", PPL))
    }
    assert contest(**windows).results["composite"] == plain


def test_many_problems_are_counted(tmp_path):
    write_json(tmp_path / "ppl_output.json", {f"d{n}": [0.5, 0.5] for n in range(700)})
    problems = Problems()
    read_surprises(tmp_path / "ppl_output.json", problems)
    assert (problems.total, len(problems.kept)) == (1400, 1000)
    with pytest.raises(InputError, match="… 1,400 problems in total, the first 1,000 listed"):
        problems.raise_if_any()


def test_the_command_reports_all_problems_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_json(tmp_path / "gold.json", GOLD)
    write_json(tmp_path / "output.json", OUTPUT | {"d2": [None]})
    write_json(tmp_path / "ppl_output.json", PPL | {"d3": [0.25]})
    message = mmeval("dialogue", "gold.json", "output.json", "ppl_output.json", code=1).stderr
    assert message == (
        "error: output.json: MISSING_REPLY: reply 1 has no answer: null (id 'd2')\n"
        "ppl_output.json: RANGE: `reply 1` must be at least 1. Got 0.25. (id 'd3') Is the minus sign missing?\n"
        "2 problems\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.json", "output.json", "ppl_output.json"]


# questions


def text(content):
    return {"type": "text", "content": content}


def image(content):
    return {"type": "image", "content": content}


def audio(content):
    return {"type": "audio", "content": content}


QUESTIONS = {
    "d1": [[text("Who?")], [text("And"), text("then?")]],
    "d2": [[image("a.png"), text("Which colour?")]],
    "d3": [[audio("a.wav")]],
    "d4": [[image("b.png"), audio("b.wav")], [text("Where?")], [text("Why?")]],
}


def test_questions_are_stored_with_the_replies(contest):
    run = contest(questions=QUESTIONS)
    by_id = {sample.id: sample for sample in run.samples()}
    assert by_id["d1/2"].question == "And\nthen?"
    assert (by_id["d2/1"].question, by_id["d2/1"].image) == ("Which colour?", "a.png")
    assert (by_id["d3/1"].question, by_id["d3/1"].audio) == (None, "a.wav")
    assert (by_id["d4/1"].image, by_id["d4/1"].audio, by_id["d4/3"].question) == ("b.png", "b.wav", "Why?")
    assert run.info.input_notes == []


def test_questions_whose_parts_do_not_match_their_type_are_noted(contest):
    run = contest(questions=QUESTIONS | {"d1": [[image("a.png")], [text("x")]], "d3": [[text("x")]]})
    assert run.info.input_notes == ["2 dialogues have parts that do not match their type: 'd1', 'd3'"]


@pytest.mark.parametrize(
    ("turns", "code", "message"),
    [
        ([], "LENGTH", "empty list"),
        ([[]], "TYPE", "a turn must be a list of parts"),
        ([text("x")], "TYPE", "a turn must be a list of parts"),
        ([["x"]], "TYPE", "a part must have `type` and `content`"),
        ([[{"type": "text"}]], "TYPE", "a part must have `type` and `content`"),
        ([[{"type": "video", "content": "x"}]], "TYPE", "no part type is named 'video'"),
        ([[{"type": ["text"], "content": "x"}]], "TYPE", "no part type is named"),
        ([[text(3)]], "TYPE", "must be text"),
        ([[text("a\0")]], "CONTROL_CHAR", "NUL"),
        ([[text("x")], [text("y")]], "LENGTH", "2 turns for 1 replies"),
    ],
)
def test_questions_that_cannot_be_used(problems, turns, code, message):
    refusals = problems(questions=QUESTIONS | {"d3": turns})
    assert refusals[0][:3] == (code, "questions.json", "d3")
    assert message in refusals[0][3]


def test_dialogues_without_questions(problems):
    refusals = problems(questions={name: turns for name, turns in QUESTIONS.items() if name != "d2"})
    assert places(refusals) == [("UNMATCHED", "questions.json", None)]
    assert "1 dialogues of the gold file have no questions (first: 'd2')" in refusals[0][3]


def test_the_readers_keep_valid_dialogues(tmp_path):
    problems = Problems()
    gold = read_gold(write_json(tmp_path / "g.json", GOLD | {"bad": 3}), problems)
    assert gold.keys() == GOLD.keys()
    assert (gold["d2"].type, gold["d2"].replies, gold["d2"].languages) == ("Image2Text", (("red",),), ("en",))
    assert read_questions(write_json(tmp_path / "q.json", QUESTIONS), problems).keys() == QUESTIONS.keys()
    assert problems.total == 1
