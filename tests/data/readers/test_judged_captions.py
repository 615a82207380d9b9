"""The reader of published sets of human judgments, on records with the fields that their authors use."""

from __future__ import annotations

import csv
import gzip
import json

import pytest

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers.judged_captions import form_of, read_judged, sets_in

REFERENCES = ["A dog runs on sand.", "A wet dog runs."]
FLICKR = {
    "1": {
        "image_path": "images/1.jpg",
        "ground_truth": REFERENCES,
        "human_judgement": [{"caption": "a dog", "rating": score} for score in (2.0, 3.0, 3.0)]
        + [{"caption": "a cat", "rating": 1.0}],
    }
}
PASCAL = {"HC": [{"image": "1.jpg", "captions": ["a dog", "a cat"], "label": 0, "references": REFERENCES}]}
FOIL = {"image_path": "1.jpg", "references": REFERENCES, "baseline": "a dog", "foil": "a cat", "domain": "in"}
HAT = {
    "image_path": "1.jpg",
    "references": REFERENCES,
    "caption": "a dog in snow",
    "grounding": [["a", False], ["dog", False], ["in", False], ["snow", True]],
}
ARENA = {
    "img": "1.jpg",
    "ref": "A dog runs on sand.",
    "source1": "big",
    "source2": "small",
    "caption1": "a dog runs",
    "caption2": "a cat",
    "cluster": "level 1",
}


def written(tmp_path, value, name="set.json"):
    path = tmp_path / name
    text = "\n".join(map(json.dumps, value)) if ".jsonl" in name else json.dumps(value)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def rated(judged):
    return [(sample.generated_answer, sample.group, [*sample.metadata.values()]) for sample in judged.samples]


def test_ratings(tmp_path):
    nebula = [{"imgid": "x", "mt": "a dog", "refs": REFERENCES, "score": 0.75}]
    for name in ("nebula.json", "nebula.jsonl", "nebula.jsonl.gz"):
        judged = read_judged(written(tmp_path, nebula, name))
        assert (judged.name, judged.form, judged.human) == ("nebula", "ratings", ("human_1",))
        assert rated(judged) == [("a dog", "x", [0.75])]
    assert judged.samples[0].references == REFERENCES
    several = [{"image": "x", "candidate": "a dog", "references": REFERENCES, "human": [1, 3]}]
    assert rated(read_judged(written(tmp_path, several))) == [("a dog", "x", [1, 3])]
    assert rated(read_judged(written(tmp_path, FLICKR))) == [("a dog", "1", [2, 3, 3]), ("a cat", "1", [1])]


@pytest.mark.parametrize("refs", [json.dumps(REFERENCES), str(REFERENCES)])
def test_a_csv_file_has_lists_as_text(tmp_path, refs):
    with (tmp_path / "polaris.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["imgid", "refs", "score", "cand"], ["x", refs, "0.5", "a dog"]])
    judged = read_judged(tmp_path / "polaris.csv")
    assert rated(judged) == [("a dog", "x", [0.5])]
    assert judged.samples[0].references == REFERENCES


def choices(judged):
    texts = [sample.generated_answer for sample in judged.samples]
    return [(texts[each.better], texts[each.worse], each.category, each.is_tie) for each in judged.choices]


def test_pairs_and_foils(tmp_path):
    judged = read_judged(written(tmp_path, PASCAL))
    assert (judged.form, choices(judged)) == ("pairs", [("a dog", "a cat", "HC", False)])
    second = {**PASCAL["HC"][0], "label": 1}
    assert choices(read_judged(written(tmp_path, [second]))) == [("a cat", "a dog", "", False)]
    judged = read_judged(written(tmp_path, [FOIL]))
    assert (judged.form, choices(judged)) == ("foils", [("a dog", "a cat", "in", False)])


def test_foil_has_its_references_in_the_file_of_coco(tmp_path):
    shared = {"image_id": 7, "id": 1, "target_word": "ORIG"}
    foil = {
        "annotations": [
            {**shared, "caption": "a dog", "foil": False, "foil_word": "ORIG", "foil_id": 0},
            {**shared, "caption": "a cat", "foil": True, "foil_word": "cat", "foil_id": 1},
        ]
    }
    path = written(tmp_path, foil, "foil.json")
    with pytest.raises(InputError, match=r"put COCO's captions_val2014\.json into the same folder"):
        read_judged(path)
    coco = [{"image_id": 7, "caption": text} for text in ("a dog ", *REFERENCES)]
    written(tmp_path, {"annotations": coco}, "captions_val2014.json")
    judged = read_judged(path)
    assert choices(judged) == [("a dog", "a cat", "", False)]
    assert judged.samples[0].references == REFERENCES  # without the caption itself
    assert sets_in(tmp_path) == [path]


def test_labels_of_words(tmp_path):
    judged = read_judged(written(tmp_path, [HAT]))
    assert (judged.form, judged.wrong_words) == ("tokens", [0.25])


@pytest.mark.parametrize(
    ("winner", "systems", "is_tie"),
    [("small", ("small", "big"), False), ("big", ("big", "small"), False), ("equal", ("big", "small"), True)],
)
def test_battles(tmp_path, winner, systems, is_tie):
    judged = read_judged(written(tmp_path, [{**ARENA, "winner": winner}]))
    (choice,) = judged.choices
    assert (judged.form, choice.systems, choice.is_tie) == ("systems", systems, is_tie)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({**FOIL, "references": []}, "`references` must be a list of captions"),
        ({**FOIL, "references": [" "]}, "all `references` are blank"),
        ({**PASCAL["HC"][0], "label": 2}, "must be 0 or 1"),
        ({**PASCAL["HC"][0], "captions": ["a dog"]}, "a pair has two captions. Got 1"),
        ({**ARENA, "winner": "other"}, "the name of a system, tie"),
        ({**HAT, "grounding": [["a", "no"]]}, "must be a list of [word, true or false]"),
        ({"caption": "a", "references": ["a"], "human": "x"}, "a rating must be a number"),
        ({"caption": " ", "references": ["a"], "human": 1}, "`candidate` must be a caption"),
        ({"text": "a"}, "the first record has 'text', which are not those of a set of human judgments"),
    ],
)
def test_what_cannot_be_used_is_an_error(tmp_path, record, message):
    with pytest.raises(InputError) as refused:
        read_judged(written(tmp_path, [record], "set.jsonl"))
    assert message in str(refused.value)


def test_other_files_are_no_sets(tmp_path):
    assert form_of(written(tmp_path, [{"id": "1", "generated_answer": "a", "references": ["b"]}])) is None
    assert form_of(written(tmp_path, [])) is None


def test_odd_values_are_problems_and_nothing_else(tmp_path):
    odd = [None, True, -1.5, "", "[1", [], [None], [["a"]], {}, ["a", 3], [["w", 2]]]
    records = [FOIL, PASCAL["HC"][0], HAT, {**ARENA, "winner": "big"}]
    records += [{"caption": "a", "references": ["a"], "human": 1}, FLICKR["1"]["human_judgement"][0]]
    for record in records:
        for name in record:
            for value in odd:
                path = written(tmp_path, [{**record, name: value}], "odd.jsonl")
                try:
                    assert read_judged(path).samples
                except InputError:
                    continue
    for value in odd:
        for content in ([value], {"annotations": value}, {"1": {"ground_truth": value, "human_judgement": [value]}}):
            with pytest.raises(InputError):
                read_judged(written(tmp_path, content, "odd.json"))
