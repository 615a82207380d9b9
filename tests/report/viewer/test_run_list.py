"""The list of runs as a matrix: columns, order, scales, the best of comparable runs, pages, spreads, exports."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from multimodal_eval import evaluate
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.sample import Sample
from multimodal_eval.report.viewer.run_list import PAGE, ListedRun, ListedScore, Summaries, columns_of, listed
from multimodal_eval.report.viewer.runs import RunsFolder
from tests.report.viewer.viewed import client, make_runs

SET = ((10,), ("a", "z"))


def score(
    value: float | None, direction: Any = "higher", signature: str | None = "s", width: float = 0.1
) -> ListedScore:
    low, high = (None, None) if value is None else (value - width, value + width)
    return ListedScore(value, low, high, direction, signature)


def a_run(name: str, task: str | None = "vqa", sample_set: Any = SET, **scores: ListedScore) -> ListedRun:
    headline = next(iter(scores), None)
    metrics = tuple(scores)
    return ListedRun(name, "done", task, "", 10, headline, scores, metrics, sample_set, (name, "", "", 1))


def names(runs: list[ListedRun], *parameters: tuple[str, str]) -> list[list[str]]:
    return [[run.name for run in group.rows] for group in listed(runs, parameters).groups]


def columns(runs: list[ListedRun], *parameters: tuple[str, str]) -> list[list[str]]:
    return [[column.name for column in group.columns] for group in listed(runs, parameters).groups]


MIXED = [
    a_run("a", "vqa", exact=score(0.1), f1=score(0.2)),
    a_run("b", "captioning", cider=score(0.3), bleu=score(0.4), meteor=score(0.5)),
    a_run("c", "vqa", f1=score(0.6), exact=score(0.4)),
    a_run("d", None, bleu=score(0.7)),
]


def test_runs_of_a_task_share_a_table_whose_columns_they_have():
    assert names(MIXED) == [["b"], ["a", "c"], ["d"]]  # by task; without a task last
    assert columns(MIXED) == [["cider", "bleu", "meteor"], ["exact", "f1"], ["bleu"]]


def test_chosen_metrics_are_shown_where_runs_have_them():
    assert columns(MIXED, ("metric", "f1"), ("metric", "bleu")) == [["bleu"], ["f1"], ["bleu"]]
    assert columns(MIXED, ("metric", "meteor")) == [["meteor"], ["exact", "f1"], ["bleu"]]  # else those by default
    assert columns(MIXED, ("metric", "nobody has it")) == columns(MIXED)


def test_few_metrics_are_shown_by_default_with_all_headlines():
    many = {f"m{number}": score(0.5) for number in range(9)}
    runs = [a_run("a", **many), a_run("b", **dict(reversed(many.items())))]
    assert columns(runs) == [["m0", "m8", "m1", "m2"]]


@pytest.mark.parametrize(
    ("sort", "descending", "expected"),
    [
        ("score.f1", False, ["b", "a", "c", "d"]),
        ("score.f1", True, ["a", "b", "c", "d"]),
        ("name", True, ["d", "c", "b", "a"]),
    ],
)
def test_rows_are_sorted_by_any_metric_with_unknown_values_last(sort: str, descending: bool, expected: list[str]):
    runs = [a_run("a", f1=score(0.9)), a_run("b", f1=score(0.2)), a_run("c", f1=score(None)), a_run("d", em=score(1))]
    assert names(runs, ("sort", sort), *([("desc", "1")] if descending else [])) == [expected]


def test_an_unknown_column_is_refused():
    with pytest.raises(UnknownNameError, match=r"score\.cidr"):
        listed(MIXED, [("sort", "score.cidr")])


def test_the_scale_of_a_column_has_room_for_all_intervals():
    (column,) = columns_of([a_run("a", f1=score(0.2)), a_run("b", f1=score(0.8))], ["f1"])
    # from 0.1 to 0.9, with 4 % on both sides
    assert column.scale == pytest.approx((0.1 - 0.032, 0.9 + 0.032))
    assert columns_of([a_run("a", f1=score(None))], ["f1"])[0].scale is None
    (single,) = columns_of([a_run("a", f1=score(0.5, width=0))], ["f1"])
    assert single.scale is not None
    assert single.scale[0] < 0.5 < single.scale[1]


@pytest.mark.parametrize(
    ("runs", "best"),
    [
        ([a_run("a", m=score(0.4)), a_run("b", m=score(0.5))], {"b": 2}),
        ([a_run("a", m=score(0.4, "lower")), a_run("b", m=score(0.5, "lower"))], {"a": 2}),
        ([a_run("a", m=score(0.4)), a_run("b", m=score(0.5, signature="other"))], {}),
        ([a_run("a", m=score(0.4)), a_run("b", sample_set=((9,), ("a", "z")), m=score(0.5))], {}),
        ([a_run("a", m=score(0.4)), a_run("b", sample_set=((10,), ("b", "z")), m=score(0.5))], {}),
        ([a_run("a", m=score(0.4)), a_run("b", sample_set=None, m=score(0.5))], {}),
        ([a_run("a", m=score(0.4)), a_run("b", m=score(0.5, signature=None))], {}),
        ([a_run("a", m=score(0.5)), a_run("b", m=score(0.5))], {}),  # all are equal
        ([a_run("a", m=score(0.5)), a_run("b", m=score(0.5)), a_run("c", m=score(0.1))], {"a": 3, "b": 3}),
        ([a_run("a", m=score(None)), a_run("b", m=score(0.5))], {}),
    ],
)
def test_the_best_of_comparable_runs_is_marked(runs: list[ListedRun], best: dict[str, int]):
    assert columns_of(runs, ["m"])[0].best == best


def test_a_long_list_has_pages_which_may_start_within_a_task():
    runs = [a_run(f"r{number:03d}", "a" if number < 60 else "b", f1=score(0.5)) for number in range(PAGE + 30)]
    first, second = listed(runs, []), listed(runs, [("offset", str(PAGE))])
    assert [(group.task, len(group.rows), group.total) for group in first.groups] == [("a", 60, 60), ("b", 40, 70)]
    assert [(group.task, group.rows[0].name, len(group.rows)) for group in second.groups] == [("b", "r100", 30)]
    assert (second.matching, second.total) == (130, 130)
    assert len(listed(runs, [], whole=True).rows) == 130


def test_the_address_keeps_the_choice():
    chosen = listed(MIXED, [("metric", "f1"), ("q", "a"), ("sort", "score.f1"), ("desc", "1"), ("metric", "bleu")])
    again = listed(MIXED, chosen.parameters())
    assert (again.shown, again.text, again.sort, again.descending) == (["f1", "bleu"], "a", "score.f1", True)
    assert "metric" not in dict(listed(MIXED, []).parameters())  # those by default need no mention
    assert dict(chosen.parameters("score.f1")).get("desc") is None  # the same column again: the other direction


# the pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("listed") / "runs"
    make_runs(runs)
    samples = [Sample(str(n), references=["a cat"], generated_answer="a cat" if n else "a dog") for n in range(4)]
    evaluate(samples, metrics=["rouge_l", "chair_s"], output=runs / "small")
    return runs


@pytest.fixture
def browser(folder: Path) -> TestClient:
    return client(folder)


def test_runs_over_the_same_samples_are_comparable_and_others_are_not(folder: Path):
    runs = {run.name: run for run in Summaries(RunsFolder(folder)).all()}
    assert runs["alba"].sample_set == runs["boreas"].sample_set == runs["deeper/cirrus"].sample_set
    assert runs["small"].sample_set not in (None, runs["alba"].sample_set)
    best = columns_of(list(runs.values()), ["rouge_l"])[0].best
    highest = max(runs[name].scores["rouge_l"].value or 0 for name in runs if name != "small")
    assert {name: runs[name].scores["rouge_l"].value for name in best} == dict.fromkeys(best, highest)
    assert "small" not in best


def test_every_cell_has_value_interval_whisker_and_the_direction(browser: TestClient, folder: Path):
    text = browser.get("/?metric=chair_s&metric=rouge_l&q=small").text
    results = json.loads((folder / "small" / "results.json").read_text())["metrics"]
    for name in ("rouge_l", "chair_s"):
        entry = results[name]
        assert f"{entry['value']:.4f}" in text
        assert f"{entry['low']:.4f} … {entry['high']:.4f}" in text
    assert text.count('class="drawing"') == 2
    assert text.count("lower is better") >= 1
    assert 'data-head="CHAIRs ↓"' in text


def test_sorting_by_a_metric_follows_its_values(browser: TestClient, folder: Path):
    shown = re.findall(r'href="/run/([^"]+)"', browser.get("/?sort=score.rouge_l&desc=1").text)
    values = {run.name: run.scores["rouge_l"].value or 0.0 for run in Summaries(RunsFolder(folder)).all() if run.scores}
    assert shown == sorted(values, key=lambda name: -values[name])


def test_spreads_are_requested_once_and_then_part_of_the_list(browser: TestClient):
    before = browser.get("/?q=alba").text
    (address,) = re.findall(r'hx-get="(/spread/[^"]+)"', before)
    assert set(re.findall(r"metric=(\w+)", address)) == {"bleu", "rouge_l", "cider_d"}
    assert "sparkline" not in before
    fragment = browser.get(address.replace("&amp;", "&")).text
    ids = re.findall(r'<span id="(spread-[0-9a-f]{16})" class="spread" hx-swap-oob="true">', fragment)
    assert len(ids) == fragment.count('class="sparkline"') == 3
    assert all(f'id="{each}"' in before for each in ids)
    after = browser.get("/?q=alba").text
    assert after.count('class="sparkline"') == 3
    assert "/spread/" not in after


def test_spreads_of_unknown_metrics_and_runs(browser: TestClient):
    assert "sparkline" not in browser.get("/spread/alba?metric=nobody").text
    assert browser.get("/spread/nobody?metric=bleu").status_code == 404


def test_the_export_has_the_headline_and_every_shown_metric(browser: TestClient, folder: Path):
    rows = list(csv.DictReader(io.StringIO(browser.get("/runs.csv?sort=name&metric=chair_s&metric=cider_d").text)))
    assert [row["run"] for row in rows] == ["alba", "boreas", "deeper/cirrus", "small"]
    results = json.loads((folder / "alba" / "results.json").read_text())["metrics"]
    alba, small = rows[0], rows[-1]
    assert (alba["headline"], float(alba["score"])) == ("bleu", results["bleu"]["value"])
    assert [float(alba[key]) for key in ("cider_d", "cider_d low", "cider_d high")] == [
        results["cider_d"][key] for key in ("value", "low", "high")
    ]
    assert (alba["chair_s"], small["cider_d"]) == ("", "")
    assert small["chair_s"] != ""


def test_a_changed_run_is_read_again(folder: Path, tmp_path: Path):
    runs = tmp_path / "runs"
    shutil.copytree(folder / "alba", runs / "one")
    browser = client(runs)
    before = browser.get("/").text
    shutil.rmtree(runs / "one")
    shutil.copytree(folder / "small", runs / "one")
    assert browser.get("/").text != before
    shutil.rmtree(runs / "one")
    assert "There are no runs yet" in browser.get("/").text


def test_a_repeated_filter_is_refused(browser: TestClient):
    assert browser.get("/?q=a&q=b").status_code == 400
    assert browser.get("/?metric=bleu&metric=rouge_l").status_code == 200


def test_a_run_that_is_scored_in_part_is_not_the_best():
    whole, better = score(0.4), replace(score(0.9), unscored="37 / 200")
    runs = [a_run("a", f1=whole), a_run("b", f1=score(0.3)), a_run("half", f1=better)]
    (group,) = listed(runs, ()).groups
    (column,) = group.columns
    assert column.best == {"a": 2}


def test_a_composite_without_some_of_its_parts_is_not_the_best():
    lacks = replace(score(0.9), unscored="37 / 200")
    runs = [
        a_run("a", f1=score(0.4), composite_score=score(0.4)),
        a_run("b", f1=score(0.3), composite_score=score(0.3)),
        a_run("lacks", f1=lacks, composite_score=score(0.9)),
    ]
    assert columns_of(runs, ["composite_score"])[0].best == {"a": 2}
