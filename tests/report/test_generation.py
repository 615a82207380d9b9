"""The section Generation of the report and of the viewer, and the outcome of a sample."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import msgspec
import pytest

from multimodal_eval import evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.config import GenerationConfig, RunConfig
from multimodal_eval.core.records import GenerationInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.checksums import EXCHANGES
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.answer_tables import answer_table
from multimodal_eval.generate.protocol import Answer, Exchange, Outcome
from tests.run_info import run_info

pytest.importorskip("duckdb")
pytest.importorskip("starlette")
from tests.report.viewer.viewed import client  # needs the packages checked above


def asked(request):
    if request.id == "s2":
        return Answer("I must not", finish="refusal", reasoning="Is it allowed?")
    return Answer("a cat", reasoning="It purrs.", input_tokens=1000, output_tokens=20, model="cats-1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    runs = tmp_path_factory.mktemp("generated") / "runs"
    samples = [Sample(f"s{number}", question=f"what? {number}", references=["a cat"]) for number in range(4)]
    generation = {"use_cache": False, "base_url": "http://127.0.0.1:1/v1", "parameters": {"temperature": 0.5}}
    evaluate(samples, metrics=["rouge_l"], model=asked, output=runs / "cats", generation=generation)
    answered = [msgspec.structs.replace(sample, generated_answer="a cat") for sample in samples]
    evaluate(answered, metrics=["rouge_l"], output=runs / "given")
    return runs


def shown(page: str) -> str:
    """The text of a page, without tags, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.partition("<body>")[2])).split())


@pytest.mark.parametrize("source", ["report", "viewer"])
def test_a_page_says_how_the_answers_were_generated(folder, source):
    page = page_of([_run(folder)]) if source == "report" else client(folder).get("/run/cats").text
    assert '<h2 id="generation">Generation</h2>' in page
    text = shown(page)
    for part in (
        "the endpoint names it cats-1",
        "endpoint http://127.0.0.1:1/v1",
        "temperature 0.5",
        "3,000 in, 60 out",
        "ok 3 75.0%",
        "refused 1 × the model refused: 'I must not' 1 25.0%",
        "of 4 requests",
        "generation|v:1|model:python:asked@",
    ):
        assert part in text, part


def _run(folder: Path):
    from multimodal_eval.data.runs.run import Run

    return Run(folder / "cats")


def test_a_run_whose_samples_had_answers_has_no_such_section(folder):
    from multimodal_eval.data.runs.run import Run

    assert 'id="generation"' not in page_of([Run(folder / "given")])
    browser = client(folder)
    assert 'id="generation"' not in browser.get("/run/given").text
    assert "generation" not in shown(browser.get("/sample/given?row=0").text)


def test_a_sample_shows_its_outcome_and_its_reasoning(folder):
    browser = client(folder)
    answered, refused = (shown(browser.get(f"/sample/cats?row={row}").text) for row in (0, 2))
    assert "reasoning 9 characters It purrs." in answered
    assert re.search(r"generation answered, [\d.e-]+ s, tokens: 1,000 in, 20 out", answered)
    assert "no answer" in refused
    assert "refused the model refused: 'I must not'" in refused
    assert "text that is not scored I must not" in refused
    assert "reasoning 14 characters Is it allowed?" in refused
    assert refused.count("the model refused: 'I must not'") == 2  # as outcome and in the scores, not as a field `error`


def test_the_report_shows_the_outcome_of_its_samples(folder):
    page = page_of([_run(folder)])
    assert "text that is not scored I must not" in shown(page)
    assert page.count("<dt>reasoning</dt>") == page.count('<article class="sample">')


def generating(folder: Path, state: str, committed: int, metrics: tuple[str, ...] = ("exact_match",)) -> RunFolder:
    """A run of two parts with two samples each, some of which have answers."""
    generation = GenerationInfo(
        signature="generation|v:1|model:cats",
        settings={"model": "cats"},
        statuses={"ok": 4} if state == "generated" else {},
    )
    config = RunConfig(generation=GenerationConfig(model="cats"))
    info = run_info(state=state, parts=[2, 2], generation=generation, config=config, metrics=list(metrics))
    run = RunFolder.create(folder, info)
    for part in range(committed):
        exchanges = [Exchange(Outcome("ok", Answer("a cat")), "")] * 2
        run.write_part("answers", part, answer_table(2 * part, exchanges))
    return run


def test_the_viewer_shows_the_progress_of_generation(tmp_path):
    generating(tmp_path / "first", "generating", 1)
    browser = client(tmp_path)
    assert "2 of 4" in shown(browser.get("/").text)
    page = browser.get("/run/first").text
    assert 'aria-label="samples answered"' in page
    assert "1 of 2 parts are committed." in shown(page)
    assert "their samples" not in page  # only scored samples have a page
    assert "mmeval run --resume" in page
    assert "model cats" in shown(page)


def test_the_command_of_a_run_that_stops_after_the_answers(tmp_path):
    generating(tmp_path / "first", "generating", 1, metrics=())
    assert "mmeval run --resume" in client(tmp_path).get("/run/first").text


def test_outcomes_of_unfinished_parts_count(tmp_path):
    run = generating(tmp_path / "first", "generating", 1)
    exchange = Exchange(Outcome("ok", Answer("a cat")), "")
    with Journal(run.path / "answers/journal.jsonl") as journal:
        for row in (2, 0, 2, 99):  # twice, of a committed part, and outside the run
            journal.append(msgspec.json.encode((row, exchange)))
        journal.append(b'{"not": "a record"}')
    assert "3 of 4" in shown(client(tmp_path).get("/").text)


def test_a_generated_run_waits_to_be_scored(tmp_path):
    generating(tmp_path / "first", "generated", 2)
    browser = client(tmp_path)
    listing = browser.get("/").text
    assert "every 2s" not in listing  # nothing is in progress
    assert "generated" in shown(listing)
    text = shown(browser.get("/run/first").text)
    assert "none is scored yet" in text
    assert f"mmeval score {tmp_path}/first" in text
    assert "ok 4 100.0%" in text
    assert browser.get("/samples/first").status_code == 200


def test_runs_are_filtered_by_the_states_of_generation(tmp_path):
    generating(tmp_path / "first", "generated", 2)
    generating(tmp_path / "second", "generating", 0)
    browser = client(tmp_path)
    for state, name in (("generated", "first"), ("generating", "second")):
        page = browser.get(f"/?state={state}").text
        assert f"<option selected>{state}</option>" in page
        assert re.findall(r'href="/run/([^"]+)"', page) == [name]


def test_links_out_of_the_folder_are_refused(tmp_path):
    elsewhere = generating(tmp_path / "elsewhere", "generated", 2)
    run = generating(tmp_path / "runs" / "first", "generated", 1)
    for name in ("answers/part-00001.parquet", EXCHANGES, "answers/journal.jsonl"):
        link = run.path / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(elsewhere.part("answers", 1))
        answer = client(tmp_path / "runs").get("/run/first")
        assert answer.status_code == 404
        assert "leads out of the folder" in answer.text
        link.unlink()
