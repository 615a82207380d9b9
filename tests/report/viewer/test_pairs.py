"""The samples of two runs: search, filters, outcomes, orders, marked words and exports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from tests.report.viewer.mixed import mixed_runs
from tests.report.viewer.test_pages import page
from tests.report.viewer.viewed import COUNT, client

BOTH = "run=alba&run=boreas"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("pairs") / "runs"
    mixed_runs(runs)
    return runs


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


def ids(text: str) -> list[str]:
    """The sample ids of a page, in order."""
    return re.findall(r'<h2 class="pair-id"><a href="[^"]*"><bdi>([^<]+)</bdi>', text)


def samples(browser: TestClient, run: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in json.loads(page(browser, f"/export/samples.json/{run}"))}


@pytest.fixture(scope="module")
def pairs(browser: TestClient) -> list[dict[str, Any]]:
    """Both runs joined by id in Python, in input order, with rouge_l as `a` and `b`."""
    first, second = samples(browser, "alba"), samples(browser, "boreas")
    joined = []
    for name, row in first.items():
        a, b = row["rouge_l"], second[name]["rouge_l"]
        pair = {"id": name, "number": int(name.removeprefix("scene-")), "a": a, "b": b, "first": row}
        joined.append({**pair, "second": second[name], "d": None if a is None or b is None else b - a})
    return joined


def answers(pair: dict[str, Any]) -> str:
    return " | ".join(pair[side]["generated_answer"] or "" for side in ("first", "second"))


FILTERS: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("outcome=first", lambda pair: pair["d"] is not None and pair["d"] < 0),
    ("outcome=tie", lambda pair: pair["d"] == 0),
    ("outcome=second", lambda pair: pair["d"] is not None and pair["d"] > 0),
    ("outcome=unscored", lambda pair: pair["d"] is None),
    ("status=ok", lambda pair: pair["d"] is not None),
    ("status=unscored", lambda pair: pair["d"] is None),
    ("status=missing_input", lambda pair: pair["number"] == 8),
    ("status=error", lambda pair: pair["number"] == 9),
    ("q=HEART", lambda pair: "heart" in answers(pair)),
    ("q=blue+star", lambda pair: "blue star" in answers(pair)),
    ("q=image+11&in=question", lambda pair: "image 11" in pair["first"]["question"]),
    ("q=red+star&in=references", lambda pair: pair["number"] % 12 == 9),
    ("q=scene-00&in=id", lambda pair: pair["number"] < 10),
    ("q=100%25_", lambda pair: False),
    ("meta.language=en", lambda pair: pair["number"] % 5 == 0),
    ("meta.place=3&meta.place=1", lambda pair: pair["number"] % 2 == 1),
    ("meta.language=en&q=cross&outcome=first", lambda pair: pair["number"] % 5 == 0 and "cross" in answers(pair) and pair["d"] is not None and pair["d"] < 0),  # noqa: E501
    ("min.a.rouge_l=0.6", lambda pair: pair["a"] is not None and pair["a"] >= 0.6),
    ("max.b.rouge_l=0.5", lambda pair: pair["b"] is not None and pair["b"] <= 0.5),
    ("min.d=-0.3&max.d=0", lambda pair: pair["d"] is not None and -0.3 <= pair["d"] <= 0),
    ("min.a.cider_d=1&max.b.bleu=0.1", lambda pair: (pair["first"]["cider_d"] or 0) >= 1 and pair["second"]["bleu"] is not None and pair["second"]["bleu"] <= 0.1),  # noqa: E501
]  # fmt: skip


@pytest.mark.parametrize(("query", "matches"), FILTERS, ids=[query for query, _ in FILTERS])
def test_pairs_are_searched_and_filtered(browser: TestClient, pairs, query: str, matches):
    expected = {pair["id"] for pair in pairs if matches(pair)}
    address = f"{BOTH}&number=rouge_l&{query}"
    text = page(browser, f"/pairs?{address}")
    shown = ids(text)
    assert set(shown) <= expected
    assert len(shown) == min(len(expected), 50)
    assert f"{len(expected)} samples match" in text
    assert {row["id"] for row in json.loads(page(browser, f"/pairs.json?{address}"))} == expected


KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "difference": lambda pair: pair["d"],
    "change": lambda pair: None if pair["d"] is None else abs(pair["d"]),
    "a": lambda pair: pair["a"],
    "b": lambda pair: pair["b"],
}


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", KEYS)
def test_pairs_are_sorted_with_unscored_ones_last(browser: TestClient, pairs, sort: str, descending: bool):
    key = KEYS[sort]
    scored = sorted((pair for pair in pairs if key(pair) is not None), key=key, reverse=descending)
    if descending:  # ties stay in input order
        scored.sort(key=lambda pair: -key(pair))
    expected = [pair["id"] for pair in scored] + [pair["id"] for pair in pairs if key(pair) is None]
    query = f"{BOTH}&number=rouge_l&sort={sort}" + ("&desc=1" if descending else "")
    shown = [name for offset in (0, 50, 100, 150) for name in ids(page(browser, f"/pairs?{query}&offset={offset}"))]
    assert shown == expected
    assert [row["id"] for row in json.loads(page(browser, f"/pairs.json?{query}"))] == expected


def test_outcomes_are_counted_with_the_other_filters(browser: TestClient, pairs):
    red = [pair for pair in pairs if "red" in answers(pair)]
    counts = {
        "second": sum(pair["d"] is not None and pair["d"] > 0 for pair in red),
        "tie": sum(pair["d"] == 0 for pair in red),
        "first": sum(pair["d"] is not None and pair["d"] < 0 for pair in red),
        "unscored": sum(pair["d"] is None for pair in red),
    }
    assert counts["first"] > 0
    assert counts["unscored"] > 0
    for outcome in ("", "first"):  # the counts do not depend on the chosen outcome
        text = page(browser, f"/pairs?{BOTH}&number=rouge_l&q=red&outcome={outcome}")
        shown = dict(re.findall(r'id="outcome-(\w+)"[^>]*><span class="figures">(\d+)', text))
        assert shown == {name: str(count) for name, count in counts.items()}


def test_a_card_shows_both_answers_references_and_scores(browser: TestClient, pairs):
    pair = pairs[5]
    text = page(browser, f"/pairs?{BOTH}&number=rouge_l&q={pair['id']}&in=id")
    assert ids(text) == [pair["id"]]
    card = text.split('<li class="pair ')[1].split("</li>\n<")[0]
    plain = " ".join(re.sub(r"<[^>]+>", "", card).split())
    for expected in (
        pair["first"]["question"],
        "the blue thing",
        pair["first"]["generated_answer"],
        pair["second"]["generated_answer"],
        f"{pair['a']:.4f}",
        f"{pair['b']:.4f}",
        f"{pair['d']:+.4f}",
    ):
        assert expected in plain, expected
    assert "/media/alba?row=5" in card
    assert "kind=audio" in card
    for run in ("alba", "boreas"):
        assert f'href="/sample/{run}?row=5"' in card


def test_only_differing_content_words_are_marked(tmp_path: Path):
    for name, shape in (("a", "star"), ("b", "circle")):
        texts = [Sample("1", references=["a blue star"], generated_answer=f"a blue {shape} and the sea")]
        evaluate(texts, metrics=["rouge_l"], output=tmp_path / "runs" / name)
    text = page(client(tmp_path / "runs"), "/pairs?run=a&run=b")
    assert re.findall(r'<mark class="only">([^<]+)</mark>', text.split('<ol class="pairs">')[1].split("</ol>")[0]) == [
        "star",
        "circle",
    ]


@pytest.mark.parametrize(("better", "outcome"), [("first", "first"), ("second", "second")])
def test_a_lower_error_rate_wins(tmp_path: Path, better: str, outcome: str):
    right = [Sample(str(n), references=["a red cat"], generated_answer="a red cat") for n in range(6)]
    wrong = [Sample(str(n), references=["a red cat"], generated_answer="a red dog") for n in range(6)]
    evaluate(right if better == "first" else wrong, metrics=["wer"], output=tmp_path / "runs" / "a")
    evaluate(wrong if better == "first" else right, metrics=["wer"], output=tmp_path / "runs" / "b")
    browser = client(tmp_path / "runs")
    text = page(browser, f"/pairs?run=a&run=b&number=wer&outcome={outcome}")
    assert len(ids(text)) == 6
    assert "lower is better" in text
    assert text.count(f'<span class="outcome-{outcome}">') == 6


def test_runs_without_a_common_sample_are_explained(browser: TestClient, folder: Path, tmp_path: Path):
    for name, start in (("a", 0), ("b", 100)):
        texts = [Sample(str(start + n), references=["a cat"], generated_answer="a cat") for n in range(4)]
        evaluate(texts, metrics=["rouge_l"], output=tmp_path / "runs" / name)
    other = [Sample(str(n), references=["a cat"], generated_answer="a cat") for n in range(4)]
    evaluate(other, metrics=["bleu"], output=tmp_path / "runs" / "c")
    browser = client(tmp_path / "runs")
    assert "no sample in common" in page(browser, "/pairs?run=a&run=b")
    no_metric = browser.get("/pairs?run=a&run=c")
    assert no_metric.status_code == 409
    assert "no metric in common" in no_metric.text


@pytest.mark.parametrize("query", ["", "run=alba", "run=alba&run=boreas&run=cirrus"])
def test_other_numbers_of_runs_lead_to_a_choice(browser: TestClient, query: str):
    answer = browser.get(f"/pairs?{query}")
    assert answer.status_code == (409 if query.count("run") > 2 else 200)
    assert 'action="/pairs"' in answer.text
    assert answer.text.count('type="checkbox"') == 2


@pytest.mark.parametrize(
    "query",
    [
        "outcome=won", "sort=c", "desc=2", "status=fine", "number=none", "min.c.bleu=1", "min.a.none=1", "min.a=1",
        "max.d.bleu=0", "min.d=x", "max.b.bleu=inf", "offset=-1",
    ],
)  # fmt: skip
def test_invalid_parameters_are_refused(browser: TestClient, query: str):
    assert browser.get(f"/pairs?{BOTH}&{query}").status_code == 400
    assert browser.get(f"/pairs.json?{BOTH}&{query}").status_code == 400


def test_links_of_a_page_keep_its_filters(browser: TestClient):
    query = f"{BOTH}&number=bleu&q=a&meta.language=ru&min.a.rouge_l=0.1&min.d=-0.9&sort=b&desc=1"
    text = page(browser, f"/pairs?{query}")
    for link in re.findall(r'(?:id="to-next" href|href)="(/pairs[.?][^"]*(?:offset|csv|outcome)[^"]*)"', text):
        for piece in ("q=a", "meta.language=ru", "min.a.rouge_l=0.1", "min.d=-0.9", "sort=b", "desc=1", "number=bleu"):
            assert piece in link, (piece, link)
    assert 'type="hidden" name="min.a.rouge_l" value="0.1"' in text  # not in the form, since the metric is bleu


def test_a_pair_has_all_samples_without_filters(browser: TestClient):
    assert f"{COUNT} samples in both runs" in page(browser, f"/pairs?{BOTH}")
