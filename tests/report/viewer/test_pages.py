"""The pages of the viewer: runs, samples, comparisons, progress."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from PIL import Image
from starlette.testclient import TestClient

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.report.viewer.viewed import COUNT, client, make_runs
from tests.run_info import run_info


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("viewed") / "runs"
    make_runs(runs)
    return runs


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


def page(browser: TestClient, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


def ids(text: str) -> list[str]:
    """The sample ids of a page, in order."""
    return re.findall(r"<a href=\"/sample/[^\"]*\"><bdi>(scene-\d+)</bdi>", text)


def exported(browser: TestClient, query: str = "", run: str = "alba") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(page(browser, f"/export/samples.csv/{run}?{query}"))))


def test_every_run_is_listed_with_its_headline(browser: TestClient):
    text = page(browser, "/")
    assert sorted(re.findall(r'href="/run/([^"]+)"', text)) == ["alba", "boreas", "deeper/cirrus"]
    assert re.findall(r'title="headline">.', text) == ['title="headline">★']  # of bleu, which leads all runs


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("q=ALB", ["alba"]),
        ("q=cirrus deeper", ["deeper/cirrus"]),
        ("q=nothing", []),
        ("state=scoring", []),
        ("sort=name&desc=1", ["deeper/cirrus", "boreas", "alba"]),
        ("sort=samples", ["alba", "boreas", "deeper/cirrus"]),
    ],
)
def test_the_list_is_searched_filtered_and_sorted(browser: TestClient, query: str, shown: list[str]):
    assert re.findall(r'href="/run/([^"]+)"', page(browser, f"/?{query}")) == shown


def test_a_single_run_folder_is_shown_too(folder: Path):
    assert 'href="/run/alba"' in page(client(folder / "alba"), "/")
    assert "Scores" in page(client(folder / "alba"), "/run/alba")
    assert client(folder / "alba").get("/run/boreas").status_code == 404


def test_a_broken_run_is_listed_as_damaged(tmp_path: Path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    assert "damaged" in page(client(tmp_path), "/")
    assert client(tmp_path).get("/run/broken").status_code == 409


def test_damaged_parts_are_an_error_of_the_run(folder: Path, tmp_path: Path):
    for kind in ("samples", "scores"):
        shutil.copytree(folder / "alba", tmp_path / kind)
        (tmp_path / kind / kind / "part-00000.parquet").write_bytes(b"PAR1 no more PAR1")
        answer = client(tmp_path).get(f"/samples/{kind}?q=red&sort=bleu")
        assert answer.status_code in (400, 409)
        assert "cannot be read" in answer.text


def test_a_run_shows_scores_intervals_warnings_slices_and_signatures(folder: Path, browser: TestClient):
    text = page(browser, "/run/alba")
    results = RunFolder(folder / "alba").read_results()
    entry = results.metrics["rouge_l"]
    assert f"{entry.value:.4f}" in text
    assert f"{entry.low:.4f} … {entry.high:.4f}" in text
    assert entry.signed is not None
    assert entry.signed in text
    assert "2 of 120 (1.7%): samples unscored" in text
    assert "By <bdi>language</bdi>" in text
    assert f"{results.slices['language']['en'].metrics['bleu'].value:.4f}" in text


def test_samples_are_split_into_pages(browser: TestClient):
    pages = [ids(page(browser, f"/samples/alba?offset={offset}")) for offset in (0, 50, 100, 150)]
    assert [len(names) for names in pages] == [50, 50, 20, 0]
    assert [name for names in pages for name in names] == [f"scene-{number:03d}" for number in range(COUNT)]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("metric", ["bleu", "rouge_l", "cider_d", "bleu.bleu_1"])
def test_samples_are_sorted_by_any_metric_with_unscored_ones_last(browser: TestClient, metric: str, descending: bool):
    rows = exported(browser)
    scored = [row for row in rows if row[metric]]
    # ties stay in input order in both directions
    expected = sorted(scored, key=lambda row: float(row[metric]) * (-1 if descending else 1))
    expected += [row for row in rows if not row[metric]]
    query = f"sort={metric}" + ("&desc=1" if descending else "")
    pages = [ids(page(browser, f"/samples/alba?{query}&offset={offset}")) for offset in (0, 50, 100)]
    shown = [name for names in pages for name in names]
    assert shown == [row["id"] for row in expected]
    assert [row["id"] for row in exported(browser, query)] == shown


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("q=BLUE+cross", lambda row: "blue cross" in (row["generated_answer"] or "")),
        ("q=image+11&in=question", lambda row: "image 11" in row["question"]),
        ("q=red+star&in=references", lambda row: int(row["row"]) % 12 == 9),
        ("q=scene-00&in=id", lambda row: row["id"].startswith("scene-00")),
        ("q=100%25_", lambda row: False),
        ("status=ok", lambda row: row["bleu:status"] == "ok"),
        ("status=unscored", lambda row: row["bleu:status"] != "ok"),
        ("status=missing_input", lambda row: row["bleu:status"] == "missing_input"),
        ("status=error", lambda row: row["bleu:status"] == "error"),
        ("min.rouge_l=0.5", lambda row: row["rouge_l"] and float(row["rouge_l"]) >= 0.5),
        ("min.cider_d=0.1&max.rouge_l=.9", lambda row: row["cider_d"] >= "0.1" and row["rouge_l"] <= "0.9"),
        ("meta=language&value=en", lambda row: int(row["row"]) % 5 == 0),
        ("meta=place&value=3", lambda row: int(row["row"]) % 4 == 3),
        ("meta=a/b~c&value=x", lambda row: True),
        ("meta=count&value=1", lambda row: row["row"] == "1"),
        ("meta=language&value=e", lambda row: False),
        ("meta=language&value=en&q=red", lambda row: int(row["row"]) % 15 == 0),
        ("meta=language&value=en&q=red&min.bleu=0&sort=bleu&desc=1", lambda row: int(row["row"]) % 15 == 0),
    ],
)  # fmt: skip
def test_samples_are_searched_and_filtered(browser: TestClient, query: str, matches):
    expected = {row["id"] for row in exported(browser) if matches(row)}
    text = page(browser, f"/samples/alba?{query}")
    shown = ids(text)
    assert set(shown) <= expected
    assert len(shown) == min(len(expected), 50)
    assert f"{len(expected)} of {COUNT} samples match" in text
    assert {row["id"] for row in exported(browser, query)} == expected


def test_a_sample_page_shows_all_fields_and_scores(browser: TestClient):
    text = page(browser, "/sample/alba?row=5&at=5")
    for expected in (
        "What is in image 5?",
        "the <mark",
        'mark class="shared"',
        "silence.wav",
        "blue.png",
        "CIDEr-D",
        "bleu.bleu_2",
    ):
        assert expected in text, expected
    assert 'src="/media/alba?row=5&amp;kind=image"' in text
    failed = page(browser, "/sample/alba?row=9")
    assert "the generator ran out of memory" in failed
    assert ">error<" in failed


def test_neighbours_follow_the_order_of_the_table(browser: TestClient):
    query = "sort=rouge_l&desc=1&q=blue"
    shown = ids(page(browser, f"/samples/alba?{query}"))
    row = int(shown[1].removeprefix("scene-"))
    text = page(browser, f"/sample/alba?row={row}&at=1&{query}")
    around = [int(row) for row in re.findall(r'row=(\d+)&amp;at=\d+[^"]*" data-key', text)]
    assert around == [int(shown[0].removeprefix("scene-")), int(shown[2].removeprefix("scene-"))]
    assert re.findall(r'data-key="([np])"', page(browser, "/sample/alba?row=0&at=0")) == ["n"]


def test_missing_rows_and_runs_are_not_found(browser: TestClient):
    assert browser.get(f"/sample/alba?row={COUNT}").status_code == 404
    assert browser.get("/samples/nobody").status_code == 404


def test_images_are_encoded_again_and_audio_supports_ranges(browser: TestClient):
    image = browser.get("/media/alba?row=0")
    assert image.headers["content-type"] in ("image/png", "image/jpeg")
    audio = browser.get("/media/alba?row=1&kind=audio")
    assert audio.headers["content-type"] == "audio/wav"
    piece = browser.get("/media/alba?row=1&kind=audio", headers={"range": "bytes=4-9"})
    assert (piece.status_code, piece.content) == (206, audio.content[4:10])
    assert piece.headers["content-range"] == f"bytes 4-9/{len(audio.content)}"
    assert browser.get("/media/alba?row=1&kind=audio", headers={"range": "bytes=99999-"}).status_code == 416
    assert browser.get("/media/alba?row=0&kind=audio").status_code == 404  # the sample has no audio


def test_images_in_the_run_folder_are_shown(tmp_path: Path):
    images = [io.BytesIO() for _ in range(2)]
    for image in images:
        Image.new("RGB", (20, 10), "red").save(image, format="PNG")
    samples = [
        Sample(str(n), image=image.getvalue() if n else None, references=["a"], generated_answer="a")
        for n, image in enumerate(images)
    ]
    evaluate(samples, metrics=["rouge_l"], output=tmp_path / "runs" / "a")
    browser = client(tmp_path / "runs")
    assert re.findall(r'src="/media/a\?row=(\d)', page(browser, "/samples/a")) == ["1"]
    assert "(in the run folder)" in page(browser, "/sample/a?row=1")
    assert browser.get("/media/a?row=1").status_code == 200
    assert browser.get("/media/a?row=0").status_code == 404


def test_two_runs_are_compared_by_scores_and_samples(browser: TestClient):
    assert "Comparison of 2 runs" in page(browser, "/compare?run=alba&run=boreas")
    scores = page(browser, "/compare/numbers?run=alba&run=boreas")
    assert "Paired differences" in scores
    table = json.loads(page(browser, "/compare/numbers.json?run=alba&run=boreas"))
    assert [row["metric"] for row in table] == ["bleu", "rouge_l", "cider_d"]
    assert table[0]["difference"] == pytest.approx(table[0]["second value"] - table[0]["first value"])
    assert f"{table[0]['difference']:+.4f}" in scores

    first = {row["id"]: row["rouge_l"] for row in exported(browser)}
    second = {row["id"]: row["rouge_l"] for row in exported(browser, run="boreas")}
    rows = json.loads(page(browser, "/pairs.json?run=alba&run=boreas&number=rouge_l&desc=1"))
    differences = {name: float(second[name]) - float(first[name]) for name in first if first[name] and second[name]}
    assert {row["id"]: row["difference"] for row in rows if row["difference"] is not None} == pytest.approx(differences)
    shown = ids(page(browser, "/pairs?run=alba&run=boreas&number=rouge_l&desc=1"))
    assert shown == [row["id"] for row in rows[:50]]
    in_order = [row["difference"] for row in rows if row["difference"] is not None]
    assert in_order == sorted(in_order, reverse=True)


def test_samples_in_different_order_are_paired_by_id(tmp_path: Path):
    samples = [Sample(str(n), references=["a cat"], generated_answer="a cat" if n else "a dog") for n in range(4)]
    evaluate(samples, metrics=["rouge_l"], output=tmp_path / "runs" / "a")
    evaluate(samples[::-1], metrics=["rouge_l"], output=tmp_path / "runs" / "b")
    rows = json.loads(page(client(tmp_path / "runs"), "/pairs.json?run=a&run=b&number=rouge_l"))
    assert [row["difference"] for row in rows] == [0, 0, 0, 0]


def test_three_runs_are_ranked(browser: TestClient):
    text = page(browser, "/compare/numbers?run=alba&run=boreas&run=deeper/cirrus")
    scores = text.partition('id="numbers"')[2]
    assert scores.count("<bdi>rank</bdi>") == 3  # a table per metric
    assert re.search(r"<bdi>1</bdi></th><td[^>]*><bdi>\w+</bdi>", scores)


def test_a_comparison_with_an_unknown_run_is_refused(browser: TestClient):
    assert browser.get("/compare?run=alba&run=nobody").status_code == 404


def test_a_run_in_progress_shows_its_progress(folder: Path, tmp_path: Path):
    running = _running(folder, tmp_path)
    browser = client(tmp_path)
    assert 'hx-trigger="every 1s"' in page(browser, "/run/running")
    assert "0 of 120" in page(browser, "/progress/running")
    assert 'hx-trigger="every 2s"' in page(browser, "/")
    assert "0 samples" in page(browser, "/samples/running")
    running.write_part("scores", 0, RunFolder(folder / "alba").read_part("scores", 0).slice(0, 50))
    assert "50 of 120" in page(browser, "/progress/running")
    assert "1 of 2 parts are committed" in page(browser, "/progress/running")
    shown = ids(page(browser, "/samples/running?sort=bleu"))
    assert len(shown) == 50
    assert browser.get("/sample/running?row=70").status_code == 404
    assert browser.get("/compare?run=running&run=other").status_code in (404, 409)
    running.write_part("scores", 1, RunFolder(folder / "alba").read_part("scores", 0).slice(50))
    running.write_results(RunFolder(folder / "alba").read_results())
    running.write_info(msgspec.structs.replace(running.read_info(), state="done"))
    answer = browser.get("/progress/running")
    assert (answer.status_code, answer.headers["hx-refresh"]) == (204, "true")
    assert "Scores" in page(browser, "/run/running")


def test_a_run_that_is_still_reading_has_no_total(folder: Path, tmp_path: Path):
    running = _running(folder, tmp_path)
    running.write_info(msgspec.structs.replace(running.read_info(), parts=[], state="reading"))
    assert "2 parts read" in page(client(tmp_path), "/progress/running")


def _running(folder: Path, target: Path) -> RunFolder:
    """The first run before any part was scored, split into two parts."""
    done = RunFolder(folder / "alba")
    running = RunFolder.create(target / "running", run_info())
    samples = done.read_part("samples", 0)
    running.write_part("samples", 0, samples.slice(0, 50))
    running.write_part("samples", 1, samples.slice(50))
    running.write_info(msgspec.structs.replace(done.read_info(), state="scoring", parts=[50, COUNT - 50]))
    return running


def test_a_folder_with_pattern_characters_is_read(folder: Path, tmp_path: Path):
    strange = tmp_path / "a[1]*?'\"" / "b c#%"
    strange.parent.mkdir()
    (folder / "alba").rename(strange)
    try:
        name = quote("a[1]*?'\"/b c#%", safe="/")
        assert len(ids(page(client(tmp_path), f"/samples/{name}?sort=bleu"))) == 50
        assert len(ids(page(client(tmp_path), f"/samples/{name}?q=red"))) > 0
        assert "Scores" in page(client(tmp_path), f"/run/{name}")
    finally:
        strange.rename(folder / "alba")
