"""The file that the viewer writes is read by the commands as it is, with the right numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from multimodal_eval import Sample, calibrate, compare_by_judge, evaluate, plan_labels
from multimodal_eval.data.labels.human import read_labels
from multimodal_eval.stats.agreement import cohen_kappa, krippendorff_alpha
from tests.cli.command_line import mmeval
from tests.judges.server import scripted_judge
from tests.report.viewer.labelling.annotators import Annotator, make_labelled_runs, records, server
from tests.run.labelled_samples import judged_samples


def labelled_by(annotator: Annotator, choose) -> None:
    """Label everything with what `choose` says of the answers."""
    while annotator.next():
        annotator.send(label=choose(annotator.answers))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_calibrate_reads_the_labels_of_each_run(place: Path):
    """Labels say that every answer of the parrot is right, and one of three of the owl."""
    make_labelled_runs(place / "runs", 30)
    site = server(place / "runs", place / "labels.jsonl", metric="exact_match")
    is_third = {f"thing {number}" for number in range(0, 30, 3)}

    def says(answers: list[str]) -> str:
        (answer,) = answers
        return "yes" if "red" in answer or answer.partition("blue ")[2] in is_third else "no"

    labelled_by(Annotator(site), says)
    content = json.loads(
        mmeval("judge", "calibrate", "runs/owl", "runs/parrot", "--human", "labels.jsonl", "--format", "json").stdout
    )
    owl, parrot = (content["runs"][name]["exact_match"] for name in ("owl", "parrot"))
    assert (owl["labels"], parrot["labels"]) == (29, 30)
    # the owl's third sample failed: 9 of its 10 thirds are labelled yes
    assert owl["human"]["value"] == pytest.approx(9 / 29)
    assert parrot["human"]["value"] == 1
    alone = mmeval("judge", "calibrate", "runs/owl", "--human", "labels.jsonl").stdout
    assert "29 of 29 samples labelled" in alone
    assert "30 labels in the file are of other runs, and are left out" in alone
    mmeval("judge", "calibrate", "runs/owl", "--human", "labels.jsonl", "-o", "calibrated")
    again = json.loads(Path("calibrated/results.json").read_text())
    assert again["metrics"]["exact_match"]["calibrated"]["labels"] == 29
    assert "Pearson" in mmeval("meta", "runs/owl", "--human", "labels.jsonl", "--metrics", "exact_match").stdout


def test_undone_and_changed_labels_do_not_count(place: Path):
    make_labelled_runs(place / "runs", 4)
    ann = Annotator(server(place / "runs", place / "labels.jsonl", metric="exact_match", runs=("parrot",)))
    for label in ("yes", "no", "yes", "yes"):
        ann.next()
        ann.send(label=label)
    ann.open("/label/mine")
    assert ann.text.count("data-line") == 4
    # Open the last item, then take it back; the second one becomes yes, the third is skipped.
    item = lambda number: next(part for part in ann.text.split('"') if part.startswith(f"/label/item/{number}-"))  # noqa: E731
    addresses = {number: item(number) for number in (2, 3, 4)}
    ann.open(addresses[2])
    ann.send(label="yes")
    ann.open(addresses[3])
    ann.send(action="skip")
    ann.open(addresses[4])
    ann.send(label="no")
    ann.open(addresses[4])
    ann.undo()
    labels = read_labels(place / "labels.jsonl")
    order = [each["id"] for each in records(place / "labels.jsonl")[:4]]
    (result,) = calibrate([place / "runs" / "parrot"], place / "labels.jsonl")
    assert {label.id for label in labels} == set(order[:2])
    assert result.metrics["exact_match"].labels == 2
    assert result.metrics["exact_match"].human.value == 1


def test_agree_reads_the_file_without_options(place: Path):
    """Two annotators, of whom one changes her mind: the last labels count, and runs are units of their own."""
    make_labelled_runs(place / "runs", 10)
    site = server(place / "runs", place / "labels.jsonl", metric="exact_match")
    ann, bob = Annotator(site, "ann"), Annotator(site, "bob")
    labelled_by(ann, lambda answers: "yes")
    labelled_by(bob, lambda answers: "yes" if "red" in answers[0] else "no")
    mine = ann.open("/label/mine")
    for address in [part for part in mine.split('"') if part.startswith("/label/item/")][:6]:
        ann.open(address)
        ann.send(label="no")
    ann.open(address)
    ann.undo()
    ann.send(label="no")
    report = json.loads(mmeval("agree", "labels.jsonl", "--format", "json", "--resamples", "0").stdout)
    last = {(each["annotator"], each["run"], each["id"]): each["label"] for each in records(place / "labels.jsonl")}
    units = sorted({key[1:] for key in last})
    table = np.array([[last[who, *unit] for who in ("ann", "bob")] for unit in units])
    assert report["units"]["total"] == len(units) == 19
    figures = {figure["name"]: figure["value"] for figure in report["figures"]}
    assert figures["Krippendorff's alpha (nominal)"] == pytest.approx(krippendorff_alpha(table, resamples=0).value)
    kappa = cohen_kappa(table[:, 0], table[:, 1], resamples=0)
    assert report["pairs"][0]["kappa"]["value"] == pytest.approx(kappa.value)
    twice = mmeval("agree", "labels.jsonl", "--unit", "id", "--annotator", "annotator", "--label", "label", code=1)
    assert "leave out --unit, --annotator and --label" in twice.stderr


def test_human_comparisons_correct_a_judge_from_both_sides(place: Path):
    """The judge reads the quality in the text; people prefer the owl in the first six of ten comparisons."""
    for name, quality in (("parrot", 0.9), ("owl", 0.2)):
        samples = [
            Sample(f"s{n}", question=f"q{n}?", references=["x"], generated_answer=f"{name} {n} [quality {quality}]")
            for n in range(10)
        ]
        evaluate(samples, metrics=["exact_match"], output=place / "runs" / name)
    for first, second in (("parrot", "owl"), ("owl", "parrot")):
        compare_by_judge(
            place / "runs" / first, place / "runs" / second, judge=scripted_judge(), output=place / f"by-{first}"
        )
    site = server(place / "runs", place / "labels.jsonl", pairwise=True, runs=("parrot", "owl"))

    def prefers(answers: list[str]) -> str:
        number = int(answers[0].split()[1])
        if number == 9:
            return "tie"
        wanted = "owl" if number < 6 else "parrot"
        return "left" if answers[0].startswith(wanted) else "right"

    labelled_by(Annotator(site), prefers)
    outcomes = {each["id"]: each["label"] for each in records(place / "labels.jsonl")}
    assert outcomes == {f"s{n}": "loss" if n < 6 else "tie" if n == 9 else "win" for n in range(10)}
    for first, share in (("parrot", 0.35), ("owl", 0.65)):  # 3 wins and a tie of ten; seen from the owl, 6 and a tie
        (result,) = calibrate([place / f"by-{first}"], place / "labels.jsonl")
        calibrated = result.metrics["preference"]
        assert calibrated.labels == 10
        assert calibrated.human.value == pytest.approx(share)
        assert calibrated.judge.value == (1 if first == "parrot" else 0)
    with pytest.raises(KeyError, match="parrot"):  # a comparison is not a label of a single answer
        calibrate([place / "runs" / "parrot"], place / "labels.jsonl")
    output = mmeval("judge", "calibrate", "by-owl", "--human", "labels.jsonl", "-o", "stored").stdout
    assert "10 of 10 samples labelled" in output
    assert "preference: 10" in mmeval("judge", "calibrate", "by-owl", "--human", "labels.jsonl").stdout
    report = json.loads(Path("stored/results.json").read_text())["metrics"]["preference"]["calibrated"]
    assert report["labels"] == 10


def test_a_run_of_comparisons_is_labelled_as_it_is(place: Path):
    for name in ("parrot", "owl"):
        samples = [
            Sample(f"s{n}", question=f"q{n}?", references=["x"], generated_answer=f"{name} {n} [quality 0.{n}]")
            for n in range(1, 9)
        ]
        evaluate(samples, metrics=["exact_match"], output=place / name)
    compare_by_judge(place / "parrot", place / "owl", judge=scripted_judge(), output=place / "runs" / "pairs")
    ann = Annotator(server(place / "runs", place / "labels.jsonl"))
    labelled_by(ann, lambda answers: "left" if answers[0].startswith("owl") else "right")
    assert {(each["label"], each["metric"], each["run"]) for each in records(place / "labels.jsonl")} == {
        ("loss", "preference", "pairs")
    }
    assert {each["left"] for each in records(place / "labels.jsonl")} == {"system", "baseline"}
    (result,) = calibrate([place / "runs" / "pairs"], place / "labels.jsonl")
    assert (result.metrics["preference"].labels, result.metrics["preference"].human.value) == (8, 0)


def test_a_plan_keeps_its_probabilities(place: Path):
    samples = [{**record, "rating": None} for record in judged_samples()]
    evaluate(samples, metrics=["exact_match"], output=place / "runs" / "judged")
    first = plan_labels(place / "runs" / "judged", labels=40, output=place / "first.jsonl")
    assert first.drawn == 40
    site = server(place / "runs", place / "labels.jsonl", plan=place / "first.jsonl", metric="exact_match")
    labelled_by(Annotator(site), lambda answers: answers[0] if answers[0] in ("yes", "no") else "no")
    planned = {record["id"]: record["human_weight"] for record in records(place / "first.jsonl")}
    labels = records(place / "labels.jsonl")
    assert [each["id"] for each in labels] == list(planned)  # the order of the plan
    assert {each["id"]: each["human_weight"] for each in labels} == planned
    # A second plan gives the known labels other probabilities: they are in the file afterwards, once.
    plan_labels(
        place / "runs" / "judged", labels=20, human=place / "labels.jsonl", seed=1, output=place / "second.jsonl"
    )
    for _ in range(2):
        site = server(place / "runs", place / "labels.jsonl", plan=place / "second.jsonl", metric="exact_match")
    labelled_by(Annotator(site), lambda answers: "no")
    second = {record["id"]: record["human_weight"] for record in records(place / "second.jsonl")}
    final = {each["id"]: each["human_weight"] for each in records(place / "labels.jsonl")}
    assert len(records(place / "labels.jsonl")) == 40 + 40 + 20
    assert final == second
    (result,) = calibrate([place / "runs" / "judged"], place / "labels.jsonl")
    assert result.metrics["exact_match"].labels == 60
    assert result.labels["exact_match"].probability is not None


def test_runs_of_the_same_name_are_told_apart(place: Path):
    for group in ("first", "second"):
        make_labelled_runs(place / "runs" / group, 4)
    ann = Annotator(server(place / "runs", place / "labels.jsonl", metric="exact_match"))
    labelled_by(ann, lambda answers: "yes" if "red" in answers[0] else "no")
    assert {each["run"] for each in records(place / "labels.jsonl")} == {
        f"{group}/{name}" for group in ("first", "second") for name in ("parrot", "owl")
    }
    (result,) = calibrate([place / "runs" / "second" / "owl"], place / "labels.jsonl")
    assert (result.metrics["exact_match"].labels, result.metrics["exact_match"].human.value) == (3, 0)
    parrots = [place / "runs" / group / "parrot" for group in ("first", "second")]
    both = calibrate(parrots, place / "labels.jsonl")
    assert [each.metrics["exact_match"].labels for each in both] == [4, 4]
