"""The compare page: the choice of runs, the verdict, the forest plot, and comparisons that are not possible."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from multimodal_eval import Run, evaluate
from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison, System
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.display.comparison_verdict import of_comparison
from multimodal_eval.report.viewer.app import create_app
from multimodal_eval.report.viewer.drawings import forests_of
from multimodal_eval.report.viewer.guard import host_check
from tests.report.viewer.viewed import HOST, PORT, client, compared, make_runs
from tests.run_info import run_info


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of the same samples, two of other samples, and one of samples with the same ids and other texts."""
    runs = tmp_path_factory.mktemp("compared") / "runs"
    make_runs(runs)
    for name, answer in (("echo", "a cat"), ("foxtrot", "a dog")):
        texts = [Sample(str(number), references=["a cat"], generated_answer=answer) for number in range(9)]
        evaluate(texts, metrics=["rouge_l", "wer"], output=runs / name)
    same_ids = [Sample(str(number), references=["the sea"], generated_answer="the sea") for number in range(9)]
    evaluate(same_ids, metrics=["rouge_l"], output=runs / "golf")
    return runs


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


def groups(text: str) -> list[list[str]]:
    """The names of the runs in each group of the choice, in order."""
    return [re.findall(r'name="run" value="([^"]+)"', group) for group in text.split("<fieldset")[1:]]


def checked(text: str) -> list[str]:
    return re.findall(r'name="run" value="([^"]+)" checked', text)


def test_without_runs_the_page_invites_a_choice(browser: TestClient):
    answer = browser.get("/compare")
    assert answer.status_code == 200
    assert groups(answer.text) == [["alba", "boreas", "deeper/cirrus"], ["echo", "foxtrot"], ["golf"]]
    assert checked(answer.text) == []


def test_runs_that_fit_the_chosen_one_come_first(browser: TestClient):
    answer = browser.get("/compare?run=foxtrot")
    assert answer.status_code == 200
    assert groups(answer.text) == [["foxtrot", "echo"], ["alba", "boreas", "deeper/cirrus"], ["golf"]]
    assert checked(answer.text) == ["foxtrot"]
    assert "other samples than the selected run" in answer.text


@pytest.mark.parametrize("query", ["run=alba&run=alba", "run=alba"])
def test_one_run_twice_is_one_run(browser: TestClient, query: str):
    assert checked(browser.get(f"/compare?{query}").text) == ["alba"]


def test_runs_of_different_samples_are_explained(browser: TestClient):
    answer = browser.get("/compare?run=alba&run=echo")
    assert answer.status_code == 409
    assert "cannot be shown side by side" in answer.text
    assert "the sample is not in the run" in answer.text
    assert checked(answer.text) == ["alba", "echo"]
    assert len(groups(answer.text)) == 3


def test_the_same_ids_with_other_texts_are_explained(browser: TestClient):
    answer = browser.get("/compare?run=echo&run=golf")
    assert answer.status_code == 409
    assert "different questions, references or annotations" in answer.text


def test_more_runs_than_can_be_compared_are_refused(browser: TestClient, folder: Path, tmp_path: Path):
    for number in range(9):
        shutil.copytree(folder / "echo", tmp_path / f"run-{number}")
    answer = client(tmp_path).get("/compare?" + "&".join(f"run=run-{number}" for number in range(9)))
    assert answer.status_code == 409
    assert "at most 8 runs. Got 9" in answer.text


def test_unfinished_and_damaged_runs_are_not_offered(folder: Path, tmp_path: Path):
    shutil.copytree(folder / "echo", tmp_path / "echo")
    RunFolder.create(tmp_path / "running", run_info())
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    answer = client(tmp_path).get("/compare")
    assert groups(answer.text) == [["echo"]]
    assert "2 runs are not listed" in answer.text
    assert "No two finished runs" in answer.text
    refused = client(tmp_path).get("/compare?run=echo&run=running")
    assert refused.status_code == 409
    assert "running is not finished" in refused.text


def test_an_empty_folder_says_how_to_start(tmp_path: Path):
    assert "There is no finished run" in client(tmp_path).get("/compare").text


def test_the_verdict_is_the_sentence_of_all_displays(browser: TestClient, folder: Path):
    text = browser.get("/compare?run=alba&run=boreas").text
    said = " ".join(re.sub(r"<[^>]+>", "", unescape(text).split('class="verdicts"')[1].split("</section>")[0]).split())
    for verdict in of_comparison(compared([Run(folder / "alba"), Run(folder / "boreas")]), "bleu"):
        assert f"{verdict.question} {verdict.answer}" in said
    assert "boreas is worse than alba by" in said
    assert "118 of 120 samples are scored in both" in said


def test_wins_ties_and_losses_link_to_their_samples(browser: TestClient):
    text = browser.get("/compare?run=alba&run=boreas").text
    rows = json.loads(browser.get("/pairs.json?run=alba&run=boreas&number=rouge_l").text)
    differences = [row["difference"] for row in rows if row["difference"] is not None]
    for outcome, number in (
        ("second", sum(value > 0 for value in differences)),
        ("tie", sum(value == 0 for value in differences)),
        ("first", sum(value < 0 for value in differences)),
    ):
        link = re.search(
            rf'href="/pairs\?run=alba&amp;run=boreas&amp;number=rouge_l&amp;outcome={outcome}"[^>]*>(\d+)<', text
        )
        assert link is not None, outcome
        assert int(link[1]) == number


def test_every_score_and_difference_has_its_counts(browser: TestClient):
    text = browser.get("/compare?run=alba&run=boreas").text
    rows = json.loads(browser.get("/compare/numbers.json?run=alba&run=boreas").text)
    assert {(row["metric"], row["n_scored"], row["n_total"]) for row in rows} == {
        (name, 118, 120) for name in ("bleu", "rouge_l", "cider_d")
    }
    assert text.count(">118 / 120</td>") == 3  # of the differences
    assert "118 / 120 scored; higher is better" in text  # of the scores
    several = browser.get("/compare?run=alba&run=boreas&run=deeper/cirrus").text
    assert several.count("118 / 120 scored; higher is better") == 3  # one table per metric


def test_a_large_comparison_is_loaded_after_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("multimodal_eval.report.viewer.comparison_pages.COMPARED_AT_ONCE", 100)
    calls: list[int] = []

    def counted(runs):
        calls.append(len(runs))
        return compared(runs)

    app = create_app(folder, compare=counted, accepts_host=host_check("127.0.0.1", PORT))
    browser = TestClient(app, base_url=f"http://{HOST}")
    address = "run=alba&run=boreas"
    text = browser.get(f"/compare?{address}").text
    assert 'hx-get="/compare/numbers?run=alba&amp;run=boreas"' in text
    assert "Verdict" not in text
    assert calls == []
    assert "Verdict" in browser.get(f"/compare/numbers?{address}").text
    assert "Verdict" in browser.get(f"/compare?{address}").text  # now it is known
    assert calls == [2]
    assert browser.get("/compare/numbers?run=alba").status_code == 400


def comparison(*, difference: float, low: float, high: float, direction: str, verdict: str) -> RunComparison:
    """One metric `m` over 60 samples, 10 of which are unscored, and one without bounds."""
    pair = Pair("a", "b", difference, 0.1, low, high, "", 0.002, 0.004, 30, 5, 15, None, None, verdict)
    systems = (System("a", 0.5, None, None, None, "", None), System("b", 0.5, None, None, None, "", None))
    metrics = [MetricComparison(name, direction, "", 50, 10, None, systems, (pair,)) for name in ("free", "m")]
    return RunComparison(("a", "b"), 60, 10, 0, 0.95, tuple(metrics), (), "m")


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_right_of_the_line_the_second_run_is_better(direction: str):
    sign = -1 if direction == "lower" else 1
    values = {"difference": 2.0 * sign, "low": min(1.0 * sign, 4.0 * sign), "high": max(1.0 * sign, 4.0 * sign)}
    info = msgspec.structs.replace(run_info(), bounds={"m": (0, 10), "free": (0, None)})
    bounded, free = forests_of(comparison(**values, direction=direction, verdict="better"), info)
    # As shares of the range of 10, the ends are 0, 0.1, 0.2 and 0.4; the margin is 4% of 0.4 at both ends.
    (row,) = bounded.rows
    width = 0.4 * 1.08
    expected = [100 * (share + 0.016) / width for share in (0, 0.1, 0.2, 0.4)]
    assert [bounded.zero, row.low, row.at, row.high] == pytest.approx(expected)
    assert (bounded.is_share, free.is_share) == (True, False)
    assert [tick.label for tick in free.ticks] == ["0", "2", "4"]


def test_means_and_wins_are_shown_before_the_comparison(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("multimodal_eval.report.viewer.comparison_pages.COMPARED_AT_ONCE", 10)
    browser = client(folder)
    text = browser.get("/compare?run=echo&run=foxtrot").text
    rows = {
        name: re.sub(r"<[^>]+>|\s+", " ", row)
        for name, row in re.findall(r"number=(\w+)\"><bdi>[\w-]+</bdi></a></th>(.*?)</tr>", text, re.DOTALL)
    }
    # All nine answers of echo are right ("a cat"), all of foxtrot share one of two words.
    assert set(rows) == {"rouge_l", "wer"}
    assert re.findall(r"[-+\d.]+", rows["rouge_l"]) == ["9", "1.0000", "0.5000", "-0.5000", "0", "0", "9"]
    assert re.findall(r"[-+\d.]+", rows["wer"]) == [
        "9",
        "0.0000",
        "0.5000",
        "+0.5000",
        "0",
        "0",
        "9",
    ]  # lower is better


def test_why_two_numbers_differ(browser: TestClient):
    assert "/why?run=alba&amp;run=boreas" in browser.get("/compare?run=alba&run=boreas").text
    answer = browser.get("/why?run=alba&run=boreas")
    assert answer.status_code == 200
    text = re.sub(r"<[^>]+>", " ", answer.text)
    assert re.search(r"boreas is \d+\.\d+ points (above|below) alba: ", text)
    assert "exactly the difference" in text
    assert browser.get("/why?run=alba").status_code == 200


def test_the_tests_and_the_selection_are_named(folder: Path, tmp_path: Path):
    samples = [{"id": str(n), "references": ["a"], "generated_answer": "ab"[n % 2]} for n in range(9)]
    for name in ("one", "other"):
        evaluate(samples, metrics=["exact_match"], limit=8, output=tmp_path / name, progress=False, skip_lint=True)
    viewer = client(tmp_path)
    page = viewer.get("/compare?run=one&run=other").text
    numbers = re.sub(r"<[^>]+>", "", viewer.get("/compare/numbers?run=one&run=other").text)
    assert "p: score test for scores of 0 and 1, else randomization of samples" in numbers
    for text in (page, viewer.get("/run/one").text):
        assert "8 samples (--limit 8)" in text
    assert "8 (--limit 8)" in viewer.get("/").text
