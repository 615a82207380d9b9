"""Labelling by forms: one answer or two, any scale, skip, undo, change, resume; several annotators."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from tests.report.viewer.labelling.annotators import Annotator, make_labelled_runs, records, server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled") / "runs"
    make_labelled_runs(folder)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def test_every_answer_of_both_runs_is_labelled_once(folder: Path, file: Path):
    ann = Annotator(server(folder, file, metric="exact_match"))
    while ann.next():
        (answer,) = ann.answers
        ann.send(label="yes" if "red" in answer else "no")
    assert "All 23 done" in ann.text  # 12 and 12, without the one that failed
    labels = records(file)
    assert len({(each["run"], each["id"]) for each in labels}) == len(labels) == 23
    for each in labels:
        assert (each["annotator"], each["metric"]) == ("ann", "exact_match")
        assert each["label"] == {"parrot": "yes", "owl": "no"}[each["run"]]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", each["time"])
    assert ("owl", "s3") not in {(each["run"], each["id"]) for each in labels}
    order = [(each["run"], each["id"]) for each in labels]
    assert order != sorted(order)
    assert {run for run, _ in order[:6]} == {"parrot", "owl"}  # mixed


def test_a_comparison_is_stored_as_the_outcome_of_the_first_run(folder: Path, file: Path):
    site = server(folder, file, pairwise=True, runs=("parrot", "owl"))
    sides: list[str] = []
    for name, wanted in (("ann", "red"), ("bob", "blue"), ("eve", "")):
        annotator = Annotator(site, name)
        while annotator.next():
            left, right = annotator.answers
            assert {"red" in left, "red" in right} == {True, False}
            sides.append("red" if "red" in left else "blue")
            label = "tie" if not wanted else "left" if wanted in left else "right"
            annotator.send(label=label)
    labels = records(file)
    assert len(labels) == 33
    outcome = {"ann": "win", "bob": "loss", "eve": "tie"}
    for each, side in zip(labels, sides, strict=True):
        assert (each["run"], each["baseline"]) == ("parrot", "owl")
        assert each["label"] == outcome[each["annotator"]]
        assert each["left"] == {"red": "parrot", "blue": "owl"}[side]
    for start in (0, 11, 22):  # both sides occur for every annotator, and not in the same places
        assert set(sides[start : start + 11]) == {"red", "blue"}
    assert len({tuple(sides[start : start + 11]) for start in (0, 11, 22)}) == 3


def test_the_order_depends_on_the_seed_alone(folder: Path, tmp_path: Path):
    def order(name: str, **options) -> list[tuple[str, str]]:
        file = tmp_path / f"{name}.jsonl"
        ann = Annotator(server(folder, file, scale="1-5", **options), name)
        while ann.next():
            ann.send(label="3")
        return [(each["run"], each["id"]) for each in records(file)]

    first = order("ann", seed=5)
    assert order("bob", seed=5) == first
    assert order("eve", seed=6) != first
    assert order("few", seed=5, labels=4) != first
    few = order("few2", seed=5, labels=4)
    assert len({sample for _, sample in few}) == 4
    assert len(few) in (7, 8)  # the same samples of both runs


def test_labelling_resumes_where_it_stopped(folder: Path, file: Path):
    ann = Annotator(server(folder, file, scale="1-5", labels=5))
    for _ in range(4):
        ann.next()
        ann.send(label="4")
    ann.next()
    stopped = ann.answers
    again = Annotator(server(folder, file, scale="1-5", labels=5))  # a new process
    again.next()
    assert again.answers == stopped
    assert "4 done" in again.text
    assert Annotator(server(folder, file, scale="1-5", labels=5), "bob").open("/label/next").count("0 done") == 1


def test_skip_undo_and_change(folder: Path, file: Path):
    ann = Annotator(server(folder, file, scale="1-5"))
    ann.next()
    first = ann.answers
    ann.send(label="2", comment=" it is\r\nlate ")
    ann.next()
    second = ann.answers
    ann.send(action="skip")
    ann.next()
    assert "Skipped answer 2" in ann.text
    ann.undo()
    assert ann.answers == second
    ann.undo()
    assert ann.answers == first
    ann.send(label="5")
    ann.next()
    assert ann.answers == second
    ann.send(label="1")
    ann.open("/label/mine")
    address = re.findall(r'href="(/label/item/1-[^"]+)"', ann.text)[0]
    ann.open(address)
    assert re.search(r'value="5"[^>]*aria-current', ann.text)
    ann.send(label="4")
    assert [(each["label"], each.get("action")) for each in records(file)] == [
        (2, None),
        (None, "skip"),
        (None, "undo"),
        (None, "undo"),
        (5, None),
        (1, None),
        (4, None),
    ]
    assert records(file)[0]["comment"] == "it is\nlate"


def test_skipped_items_are_offered_again(folder: Path, file: Path):
    ann = Annotator(server(folder, file, scale="1-5", labels=2, runs=("parrot",)))
    ann.next()
    skipped = ann.answers
    ann.send(action="skip", comment="unclear")
    ann.next()
    ann.send(label="3")
    assert not ann.next()
    assert "Show the 1 skipped again" in ann.text
    ann.open("/label/skipped")
    assert ann.answers == skipped
    assert "unclear</textarea>" in ann.text
    ann.send(label="1")
    ann.open("/label")
    assert "All 2 done" in ann.text
    assert "skipped again" not in ann.text


def test_the_same_label_twice_is_one_record(folder: Path, file: Path):
    ann = Annotator(server(folder, file, scale="1-5"))
    ann.next()
    for _ in range(3):
        ann.send(label="3")
    assert len(records(file)) == 1
    assert ann.browser.get(ann.address).status_code == 200


@pytest.mark.parametrize(
    ("scale", "given", "stored"),
    [
        ("1-5", "5", 5),
        ("0-10", "10", 10),
        ("-2..2", "-2", -2),
        ("0-100", "37", 37),
        ("0.0-1.0", "0,25", 0.25),
        ("yes,no", "no", "no"),
        ("poor, fair,good", "fair", "fair"),
        ("0,0.5,1", "0.5", 0.5),
    ],
)
def test_scales(folder: Path, file: Path, scale: str, given: str, stored: object):
    ann = Annotator(server(folder, file, scale=scale))
    ann.next()
    ann.send(label=given)
    (label,) = records(file)
    assert (label["label"], type(label["label"])) == (stored, type(stored))
    assert "metric" not in label


@pytest.mark.parametrize("label", ["", "6", "0", "2.5", "nan", "inf", "yes", "1e400", "５", "left", "3\n4"])
def test_labels_off_the_scale_are_refused(folder: Path, file: Path, label: str):
    ann = Annotator(server(folder, file, scale="1-5"))
    ann.next()
    answer = ann.post(ann.address, annotator="ann", label=label)
    assert answer.status_code == 400
    assert "nothing was saved" in answer.text
    assert records(file) == []
    number = Annotator(server(folder, file, scale="20-40"))
    number.next()
    assert number.post(number.address, annotator="ann", label=label).status_code == 400
    assert records(file) == []


@pytest.mark.parametrize("scale", ["", "5-1", "1-1", "yes", "yes,yes", "Yes,yes", "a,,b", "x" * 99 + ",y", "a\x1b,b"])
def test_other_scales_are_refused(folder: Path, file: Path, scale: str):
    with pytest.raises(ConfigError, match=r"--scale"):
        server(folder, file, scale=scale)


def test_options_that_do_not_fit(folder: Path, file: Path):
    with pytest.raises(ConfigError, match="does not fit --metrics exact_match: the human label 2 is not on the scale"):
        server(folder, file, metric="exact_match", scale="1-5")
    with pytest.raises(UnknownNameError, match="bleu"):
        server(folder, file, metric="bleu")
    with pytest.raises(UnknownNameError, match="parot"):
        server(folder, file, runs=("parot",))
    with pytest.raises(ConfigError, match=r"--pairwise compares two runs\. Got 1"):
        server(folder, file, pairwise=True, runs=("owl",))
    with pytest.raises(ConfigError, match="no effect on comparisons"):
        server(folder, file, pairwise=True, scale="1-5")
    with pytest.raises(ConfigError, match="--labels 99: only 12 samples"):
        server(folder, file, labels=99, scale="1-5")
    assert not file.exists()


def test_runs_without_a_shared_metric_can_have_tags_all_the_same(folder: Path, file: Path, tmp_path: Path):
    mixed = tmp_path / "runs"
    make_labelled_runs(mixed, 2)
    evaluate([Sample("1", references=["a"], generated_answer="a")], metrics=["contains"], output=mixed / "other")
    site = server(mixed, file)
    assert "no shared metric to label" in site.get("/label").text
    assert site.get("/label/next").status_code == 404
    assert site.get("/notes/other").status_code == 200
    with pytest.raises(ConfigError, match="no shared metric"):
        server(mixed, file, labels=1)


def test_the_name_of_the_annotator_can_be_fixed(folder: Path, file: Path):
    ann = Annotator(server(folder, file, scale="1-5", annotator="Zoë"), None)
    assert 'name="annotator"' not in ann.text
    ann.next()
    ann.send(label="2")
    assert records(file)[0]["annotator"] == "Zoë"
    assert ann.post("/label/annotator", annotator="other").status_code == 400


def test_references_can_be_hidden(folder: Path, file: Path):
    for shown in (True, False):
        ann = Annotator(server(folder, file, scale="1-5", references=shown))
        ann.next()
        assert ("references" in ann.text) is shown


def test_the_start_page_has_counts_and_agreement_but_no_run(folder: Path, file: Path):
    site = server(folder, file, metric="exact_match")
    ann, bob = Annotator(site, "ann"), Annotator(site, "bob")
    for _ in range(8):
        for each in (ann, bob):
            each.next()
            each.send(label="yes" if "red" in each.answers[0] else "no")
    ann.next()
    ann.send(action="skip")
    text = ann.open("/label")
    rows = re.findall(r'<th scope="row"><bdi>(\w+)</bdi></th>((?:<td class="number">[\d,]+</td>)+)', text)
    assert [(name, re.findall(r">(\d+)<", cells)) for name, cells in rows] == [
        ("ann", ["8", "1", "23"]),
        ("bob", ["8", "0", "23"]),
    ]
    assert "8 items have labels of two or more annotators" in text
    assert "alpha: 1.0000" in text  # they agree everywhere
    assert "parrot" not in text
    assert "owl" not in text


def test_only_labels_are_served_if_that_is_wanted(folder: Path, file: Path):
    site = server(folder, file, scale="1-5", only=True)
    assert site.get("/").headers["location"] == "/label"
    for address in ("/run/parrot", "/samples/parrot", "/runs.csv", "/compare?run=parrot&run=owl", "/notes/parrot"):
        assert site.get(address).status_code == 404, address
    ann = Annotator(site)
    ann.next()
    ann.send(label="1")
    assert len(records(file)) == 1
    assert site.get("/assets/labelling.js").status_code == 200
