"""The contest's files: everything that is wrong with them is found, told with its place, and leaves nothing behind."""

from __future__ import annotations

import gzip
import json
import unicodedata

import pytest

from multimodal_eval.contests.dialogue.contest import open_contest, prepare
from multimodal_eval.contests.dialogue.files import read_answers, read_gold, read_questions, read_surprises
from multimodal_eval.contests.dialogue.report import dialogue_report
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.data.readers.problems import Problems
from tests.cli.test_cli import mmeval
from tests.contests.dialogue.contest import write_json

GOLD = {
    "d1": {"type": "Text2Text", "replies": [["cat", "a cat"], ["dog"]]},
    "d2": {"type": "Image+Text", "replies": [["red"]]},
    "d3": {"type": "Audio2Text", "replies": [["blue"]]},
    "d4": {"type": "Image-Audio2Text", "replies": [["tree"], ["house"], ["sun"]]},
}
OUTPUT = {"d1": ["cat", "dog"], "d2": ["red"], "d3": ["green"], "d4": ["tree", "house", "moon"]}
PPL = {"d1": [1, 2.0], "d2": [1.5], "d3": [4], "d4": [2, 2, 8.5]}


@pytest.fixture
def contest(tmp_path):
    """Files of a contest, some with other content or raw bytes; scored into `run`, if all is well."""

    def scored(gold=GOLD, output=OUTPUT, ppl=PPL, questions=None, suffix="", **settings):
        names = {"gold": gold, "output": output, "ppl_output": ppl, "questions": questions}
        paths = {}
        for name, content in names.items():
            paths[name] = path = tmp_path / f"{name}.json{suffix}"
            if isinstance(content, bytes):
                path.write_bytes(content)
            elif content is not None:
                write_json(path, content)
        settings |= {"questions": paths["questions"]} if questions is not None else {}
        opened = open_contest(paths["gold"], **({"synonyms": "none"} | settings))
        return prepare(opened, paths["output"], paths["ppl_output"]).score(tmp_path / "run")

    return scored


@pytest.fixture
def problems(contest, tmp_path):
    """What is refused: code, file, id and the text of each problem; no run folder is left."""

    def refused(**files):
        with pytest.raises(InputError) as error:
            contest(**files)
        assert not (tmp_path / "run").exists()
        found = error.value.problems
        assert error.value.total == len(found)
        return [(one.code, one.file and one.file.removeprefix(f"{tmp_path}/"), one.id, str(one)) for one in found]

    return refused


def places(found):
    return [one[:3] for one in found]


def test_sound_files(contest):
    run = contest()
    assert run.results["n"] == 7
    assert [sample.id for sample in run.samples()] == ["d1/1", "d1/2", "d2/1", "d3/1", "d4/1", "d4/2", "d4/3"]
    first = next(iter(run.samples()))
    assert (first.group, first.references, first.generated_answer, first.perplexity) == (
        "d1",
        ["cat", "a cat"],
        "cat",
        1,
    )
    assert first.metadata == {"dialogue_type": "Text2Text", "reply": 1, "language": "en"}
    # d1: METEOR 1, HM 3/4; d2: 1, 2/3; d3: 0, 1/4; d4: 2/3, (1/2 + 1/2 + 2/17) / 3 = 19/51
    wanted = 0.1 * 7 / 8 + 0.2 * 5 / 6 + 0.3 / 8 + 0.4 * (2 / 3 + 19 / 51) / 2
    assert run.results["composite"]["value"] == pytest.approx(wanted, abs=1e-12)


def test_several_problems_of_all_files_in_one_error(problems):
    found = problems(
        output=OUTPUT | {"d1": ["cat", None], "d9": ["x"]},
        ppl={name: own for name, own in PPL.items() if name != "d3"} | {"d1": [0.5, True], "d4": [2, 2]},
    )
    assert sorted(places(found), key=str) == sorted(
        [
            ("MISSING_REPLY", "output.json", "d1"),
            ("UNMATCHED", "output.json", None),
            ("RANGE", "ppl_output.json", "d1"),
            ("TYPE", "ppl_output.json", "d1"),
            ("MISSING_PERPLEXITY", "ppl_output.json", None),
            ("LENGTH", "ppl_output.json", "d4"),
        ],
        key=str,
    )
    text = "\n".join(one[3] for one in found)
    assert "1 of 4 dialogues have no perplexities (first: 'd3')" in text
    assert "1 dialogues are not in the gold (first: 'd9')" in text
    assert "'d1')" not in text.split("have no perplexities")[1].split("\n")[0]  # it is refused, not missing besides


# gold


def test_an_unknown_type_names_the_four(problems):
    found = problems(gold=GOLD | {"d2": {"type": "Image2Texts", "replies": [["red"]]}})
    assert places(found) == [("UNKNOWN_TYPE", "gold.json", "d2")]
    assert "'Image2Texts'" in found[0][3]
    assert "Did you mean 'Image2Text'? Known: Audio2Text, Image-Audio2Text, Image2Text, Text2Text" in found[0][3]


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
        ({"type": "Text2Text", "replies": ["a"]}, ["TYPE"]),
        ({"type": "Text2Text", "replies": [[]]}, ["NO_REFERENCE"]),
        ({"type": "Text2Text", "replies": [["a", " "]]}, ["EMPTY_REFERENCE"]),
        ({"type": "Text2Text", "replies": [["a", None]]}, ["TYPE"]),
        ({"type": "Text2Text", "replies": [["a\0"]]}, ["CONTROL_CHAR"]),
        ({"type": "Text2Text", "replies": [["a" * 1_000_001]]}, ["TOO_LONG"]),
        ({"type": "Text", "replies": [["a"], [], [""]]}, ["NO_REFERENCE", "EMPTY_REFERENCE", "UNKNOWN_TYPE"]),
    ],
)
def test_a_dialogue_of_the_gold_that_cannot_be_used(problems, dialogue, codes):
    found = problems(gold=GOLD | {"d3": dialogue})
    assert places(found) == [(code, "gold.json", "d3") for code in codes]


def test_a_type_with_a_weight_and_no_dialogue(contest, tmp_path):
    three = {name: own for name, own in GOLD.items() if name != "d3"}
    files = {"gold": three, "output": {n: OUTPUT[n] for n in three}, "ppl": {n: PPL[n] for n in three}}
    with pytest.raises(ConfigError, match=r"WEIGHTS: no dialogue has the type Audio2Text.*--present-types-only"):
        contest(**files)
    assert not (tmp_path / "run").exists()
    run = contest(**files, present_types_only=True)
    report = dialogue_report(run)
    # .1, .2, .4 divided by .7
    assert [own.weight for own in report.types] == pytest.approx([1 / 7, 2 / 7, 4 / 7], abs=1e-15)


# answers


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (None, ("TYPE", "d3")),
        ("green", ("TYPE", "d3")),
        ([], ("LENGTH", "d3")),
        ([None], ("MISSING_REPLY", "d3")),
        ([3], ("TYPE", "d3")),
        ([["green"]], ("TYPE", "d3")),
        (["green", "blue"], ("LENGTH", "d3")),
        (["gr\0een"], ("CONTROL_CHAR", "d3")),
        (["a" * 1_000_001], ("TOO_LONG", "d3")),
    ],
)
def test_answers_that_cannot_be_used(problems, answers, found):
    told = problems(output=OUTPUT | {"d3": answers})
    assert [(one[0], one[2]) for one in told] == [found]
    assert told[0][1] == "output.json"


def test_a_dialogue_without_answers_and_one_with_too_few(problems):
    found = problems(output={"d1": ["cat"], "d2": ["red"], "d4": OUTPUT["d4"]})
    assert places(found) == [("MISSING_REPLY", "output.json", None), ("LENGTH", "output.json", "d1")]
    assert "1 of 4 dialogues have no answers (first: 'd3')" in found[0][3]
    assert "1 answers for 2 replies" in found[1][3]


def test_a_long_answer_of_the_largest_size_is_taken(contest):
    run = contest(output=OUTPUT | {"d3": ["a" * 1_000_000]})
    assert run.results["metrics"]["meteor"]["n_scored"] == 7


def test_a_blank_answer_scores_0_with_a_warning(contest):
    run = contest(output=OUTPUT | {"d1": ["cat", " \n"], "d2": [""]})
    assert run.results["metrics"]["meteor"]["warnings"] == {"blank_answer": 2}
    assert run.results["metrics"]["meteor"]["n_scored"] == 7
    by_id = {row["id"]: row for row in run.scores(["id", "meteor", "hidden_metric"]).to_pylist()}
    assert (by_id["d1/2"]["meteor"], by_id["d1/2"]["hidden_metric"]) == (0, 0.5)
    assert by_id["d2/1"]["meteor"] == 0


def test_a_generators_error_message_is_an_answer_like_any_other(contest):
    run = contest(output=OUTPUT | {"d2": ["[ERROR] out of memory"]})
    assert run.results["composite"]["n_scored"] == 7
    assert dialogue_report(run).types[1].meteor.value == 0


# perplexities


@pytest.mark.parametrize(
    ("perplexity", "code"),
    [
        (0.999, "RANGE"),
        (0, "RANGE"),
        (-2.5, "RANGE"),
        (True, "TYPE"),
        ("2", "TYPE"),
        (None, "MISSING_PERPLEXITY"),
        ([2], "TYPE"),
    ],
)
def test_what_is_no_perplexity(problems, perplexity, code):
    found = problems(ppl=PPL | {"d4": [2, perplexity, 8]})
    assert places(found) == [(code, "ppl_output.json", "d4")]
    assert "reply 2" in found[0][3] or code == "RANGE"
    assert ("Is the minus sign missing?" in found[0][3]) == (code == "RANGE")


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("1e400", "NONFINITE"),
        ("NaN", "NONFINITE"),
        ("Infinity", "NONFINITE"),
        ("-Infinity", "NONFINITE"),
        ("9" * 5000, "RANGE"),
        ("9" * 400, "NONFINITE"),
    ],
)
def test_numbers_that_json_has_not(problems, written, code):
    raw = json.dumps(PPL, indent=1).replace("8.5", written).encode()
    (found,) = problems(ppl=raw)
    assert found[:2] == (code, "ppl_output.json")


def test_a_dialogue_without_perplexities(problems):
    found = problems(ppl={name: own for name, own in PPL.items() if name not in ("d1", "d4")})
    assert places(found) == [("MISSING_PERPLEXITY", "ppl_output.json", None)]
    assert "2 of 4 dialogues have no perplexities (first: 'd1', 'd4')" in found[0][3]


def test_as_many_perplexities_as_replies(problems):
    found = problems(ppl=PPL | {"d1": [1], "d2": [1.5, 2]})
    assert places(found) == [("LENGTH", "ppl_output.json", "d1"), ("LENGTH", "ppl_output.json", "d2")]
    assert "1 perplexities for 2 replies" in found[0][3]


# candidates


def candidates(*perplexities, correct=0, **more):
    return {"candidates": list(perplexities), "correct": correct, **more}


CHOICES = {
    "d1": [candidates(2, 3), candidates(3, 2)],
    "d2": [candidates(5, 4, 3, correct=2)],
    "d3": [candidates(2, 2)],
    "d4": [candidates(1, 9), candidates(1, 9, correct=1), candidates(1.5, 1.25, correct=1)],
}


def test_choices_in_a_run(contest):
    run = contest(ppl=CHOICES, rule="choice")
    by_id = {row["id"]: row["hidden_metric"] for row in run.scores(["id", "hidden_metric"]).to_pylist()}
    assert by_id == {"d1/1": 1, "d1/2": 0, "d2/1": 1, "d3/1": 0, "d4/1": 1, "d4/2": 0, "d4/3": 1}
    assert run.results["metrics"]["hidden_metric"]["warnings"] == {"tied_candidates": 1}
    assert "rule:choice" in run.results["metrics"]["hidden_metric"]["signature"]


@pytest.mark.parametrize(
    ("said", "code", "told"),
    [
        (candidates(2, 3, correct=2), "RANGE", "`correct` must be a number from 0 to 1. Got 2"),
        (candidates(2, 3, correct=-1), "RANGE", "Got -1"),
        (candidates(2, 3, correct=True), "RANGE", "Got True"),
        (candidates(2, 3, correct=0.0), "RANGE", "Got 0.0"),
        (candidates(2, 3, correct=None), "RANGE", "Got None"),
        (candidates(2), "TYPE", "two perplexities or more"),
        ({"candidates": 2, "correct": 0}, "TYPE", "two perplexities or more"),
        ({"correct": 0}, "TYPE", "two perplexities or more"),
        ({}, "TYPE", "two perplexities or more"),
        (candidates(2, 0.5), "RANGE", "minus sign missing"),
        (candidates(2, "3"), "TYPE", "reply 1, candidate 1"),
        (candidates(2, 3, corect=1), "TYPE", "Did you mean 'correct'"),
    ],
)
def test_candidates_that_cannot_be_used(problems, said, code, told):
    found = problems(ppl=CHOICES | {"d3": [said]}, rule="choice")
    assert places(found) == [(code, "ppl_output.json", "d3")]
    assert told in found[0][3]


def test_candidates_with_the_rule_confidence_and_the_reverse(problems):
    found = problems(ppl=PPL | {"d4": [2, candidates(2, 3), 2]})
    assert places(found) == [("MISSING_PERPLEXITY", "ppl_output.json", "d4")]
    assert "reply 2 has no perplexity, which the rule 'confidence' needs" in found[0][3]
    assert "--rule choice" in found[0][3]
    found = problems(ppl=CHOICES | {"d2": [1.5]}, rule="choice")
    assert places(found) == [("MISSING_PERPLEXITY", "ppl_output.json", "d2")]
    assert "--rule confidence" in found[0][3]


def test_both_kinds_in_one_object(contest):
    run = contest(ppl=PPL | {"d3": [candidates(2, 3, perplexity=4)], "d2": [{"perplexity": 1.5}]})
    by_id = {row["id"]: row["hidden_metric"] for row in run.scores(["id", "hidden_metric"]).to_pylist()}
    assert (by_id["d3/1"], by_id["d2/1"]) == (0.25, 1 / 1.5)


# names


def test_a_key_that_stands_twice_is_told_with_its_line(problems):
    raw = json.dumps(OUTPUT, indent=1).replace('"d3"', '"d2"').encode()
    (found,) = problems(output=raw)
    lines = [number for number, line in enumerate(raw.decode().split("\n"), 1) if '"d2"' in line]
    assert found[:2] == ("DUPLICATE", "output.json")
    assert f"output.json:{lines[1]}: DUPLICATE: the key 'd2' occurs twice" in found[3]


def test_a_key_that_stands_twice_inside_a_dialogue(problems):
    raw = (
        json.dumps(GOLD, indent=1).replace('"type": "Audio2Text"', '"type": "Audio2Text", "type": "Text2Text"').encode()
    )
    (found,) = problems(gold=raw)
    assert found[:2] == ("DUPLICATE", "gold.json")
    assert "type" in found[3]


def test_names_that_differ_in_their_unicode_form_alone(problems, contest):
    nfc, nfd = "й", unicodedata.normalize("NFD", "й")
    (found,) = problems(output=OUTPUT | {nfc: ["a"], nfd: ["a"]}, gold=GOLD | {nfc: GOLD["d3"]}, ppl=PPL | {nfc: [2]})
    assert found[:3] == ("DUPLICATE", "output.json", nfd)
    run = contest(output=OUTPUT | {nfd: ["blue"]}, gold=GOLD | {nfc: GOLD["d3"]}, ppl=PPL | {nfd: [2]})
    assert run.results["n"] == 8


def test_a_blank_name(problems):
    (found,) = problems(output=OUTPUT | {" ": ["x"]})
    assert found[:3] == ("TYPE", "output.json", " ")


def test_extra_dialogues_are_refused(problems):
    found = problems(output=OUTPUT | {"d9": ["x"]}, ppl=PPL | {"e9": [1], "e8": [1]})
    assert places(found) == [("UNMATCHED", "output.json", None), ("UNMATCHED", "ppl_output.json", None)]
    assert "2 dialogues are not in the gold (first: 'e9', 'e8')" in found[1][3]


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
        (b"[]", {"TYPE"}),
        (b'["d1"]', {"TYPE"}),
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
        "no UTF-8",
        "UTF-16",
        "surrogate",
        "nested",
    ],
)
def test_a_file_that_cannot_be_read(problems, name, raw, codes):
    (found,) = problems(**{name: raw})
    assert found[0] in codes
    assert found[1] == {"ppl": "ppl_output.json"}.get(name, f"{name}.json")


def test_files_that_are_not_there_and_folders(tmp_path):
    (tmp_path / "folder.json").mkdir()
    found = Problems()
    read_answers(tmp_path / "absent.json", found)
    read_surprises(tmp_path / "folder.json", found)
    assert [(one.code, one.message) for one in found.kept] == [
        ("NOT_FOUND", "no such file"),
        ("NOT_FOUND", "a folder, where a file is needed"),
    ]


def test_both_files_of_a_submission_are_read_before_either_is_refused(problems):
    found = problems(output=b"[]", ppl=b"{}")
    assert places(found) == [("TYPE", "output.json", None), ("EMPTY", "ppl_output.json", None)]


def test_a_truncated_gz(tmp_path):
    whole = gzip.compress(json.dumps({f"d{n}": ["an answer of some length"] for n in range(1000)}).encode())
    (tmp_path / "output.json.gz").write_bytes(whole[: len(whole) // 2])
    found = Problems()
    assert read_answers(tmp_path / "output.json.gz", found) == {}
    (one,) = found.kept
    assert (one.code, one.file) == ("TRUNCATED", str(tmp_path / "output.json.gz"))


def test_gz_bom_and_crlf_are_read_as_they_are_meant(contest, tmp_path):
    plain = contest().results["composite"]
    (tmp_path / "run").rename(tmp_path / "first")
    packed = {
        name: gzip.compress(json.dumps(own).encode())
        for name, own in (("gold", GOLD), ("output", OUTPUT), ("ppl", PPL))
    }
    assert contest(**packed, suffix=".gz").results["composite"] == plain
    (tmp_path / "run").rename(tmp_path / "second")
    windows = {
        name: b"\xef\xbb\xbf" + json.dumps(own, indent=1).replace("\n", "\r\n").encode()
        for name, own in (("gold", GOLD), ("output", OUTPUT), ("ppl", PPL))
    }
    assert contest(**windows).results["composite"] == plain


def test_what_is_wrong_with_a_folder_full_is_counted(tmp_path):
    write_json(tmp_path / "ppl_output.json", {f"d{n}": [0.5, 0.5] for n in range(700)})
    found = Problems()
    read_surprises(tmp_path / "ppl_output.json", found)
    assert (found.total, len(found.kept)) == (1400, 1000)
    with pytest.raises(InputError, match="… 1400 problems in all, the first 20 shown"):
        found.raise_if_any()


def test_the_command_tells_all_problems_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_json(tmp_path / "gold.json", GOLD)
    write_json(tmp_path / "output.json", OUTPUT | {"d2": [None]})
    write_json(tmp_path / "ppl_output.json", PPL | {"d3": [0.25]})
    told = mmeval("dialogue", "gold.json", "output.json", "ppl_output.json", code=1).stderr
    assert told == (
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


def test_questions_stand_with_the_replies(contest):
    run = contest(questions=QUESTIONS)
    by_id = {sample.id: sample for sample in run.samples()}
    assert by_id["d1/2"].question == "And\nthen?"
    assert (by_id["d2/1"].question, by_id["d2/1"].image) == ("Which colour?", "a.png")
    assert (by_id["d3/1"].question, by_id["d3/1"].audio) == (None, "a.wav")
    assert (by_id["d4/1"].image, by_id["d4/1"].audio, by_id["d4/3"].question) == ("b.png", "b.wav", "Why?")
    assert run.info["input_notes"] == []


def test_questions_with_other_parts_than_their_type_names_are_noted(contest):
    run = contest(questions=QUESTIONS | {"d1": [[image("a.png")], [text("x")]], "d3": [[text("x")]]})
    assert run.info["input_notes"] == ["2 dialogues have other parts than their type names: 'd1', 'd3'"]


@pytest.mark.parametrize(
    ("own", "code", "told"),
    [
        ([], "LENGTH", "empty list"),
        ([[]], "TYPE", "a turn must be a list of parts"),
        ([text("x")], "TYPE", "a turn must be a list of parts"),
        ([["x"]], "TYPE", "a part must have `type` and `content`"),
        ([[{"type": "text"}]], "TYPE", "a part must have `type` and `content`"),
        ([[{"type": "video", "content": "x"}]], "TYPE", "no part is of the type 'video'"),
        ([[{"type": ["text"], "content": "x"}]], "TYPE", "no part is of the type"),
        ([[text(3)]], "TYPE", "must be text"),
        ([[text("a\0")]], "CONTROL_CHAR", "NUL"),
        ([[text("x")], [text("y")]], "LENGTH", "2 turns for 1 replies"),
    ],
)
def test_questions_that_cannot_be_used(problems, own, code, told):
    found = problems(questions=QUESTIONS | {"d3": own})
    assert found[0][:3] == (code, "questions.json", "d3")
    assert told in found[0][3]


def test_dialogues_without_questions(problems):
    found = problems(questions={name: own for name, own in QUESTIONS.items() if name != "d2"})
    assert places(found) == [("UNMATCHED", "questions.json", None)]
    assert "1 dialogues of the gold have no questions (first: 'd2')" in found[0][3]


def test_the_readers_keep_what_is_sound(tmp_path):
    found = Problems()
    gold = read_gold(write_json(tmp_path / "g.json", GOLD | {"bad": 3}), found)
    assert gold.keys() == GOLD.keys()
    assert (gold["d2"].type, gold["d2"].replies, gold["d2"].languages) == ("Image2Text", (("red",),), ("en",))
    assert read_questions(write_json(tmp_path / "q.json", QUESTIONS), found).keys() == QUESTIONS.keys()
    assert found.total == 1
