"""The progress of a run whose judges are asked, in the viewer."""

from __future__ import annotations

import msgspec
import pytest

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.judge_config import JudgeConfig, JudgeModel
from multimodal_eval.core.records import JudgingInfo
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.protocol import Answer, Exchange, Outcome
from multimodal_eval.judges.form import Place
from multimodal_eval.judges.verdict_tables import Judged, verdict_table
from tests.run_info import run_info

pytest.importorskip("duckdb")
pytest.importorskip("starlette")
from tests.report.viewer.viewed import client  # needs the packages checked above

REPLY = Exchange(Outcome("ok", Answer('{"score": 3}')), "")


@pytest.fixture
def judging(tmp_path):
    """A run of two parts with two samples each, two models, and one committed part."""
    judge = JudgeConfig(name="good", models=[JudgeModel(model="a:a"), JudgeModel(model="b:b")])
    config = RunConfig(judges={"good": judge}, metrics=["good"])
    info = run_info(
        state="judging", parts=[2, 2], metrics=["good"], config=config, judging={"good": JudgingInfo(settings={})}
    )
    run = RunFolder.create(tmp_path / "runs" / "first", info)
    run.write_part(
        "verdicts/good", 0, verdict_table([Judged(row, Place(model), REPLY) for row in (0, 1) for model in (0, 1)])
    )
    return run


def test_the_viewer_shows_the_progress_of_judging(judging, tmp_path):
    browser = client(tmp_path / "runs")
    assert "2 of 4" in browser.get("/").text
    page = browser.get("/run/first").text
    assert 'aria-label="samples judged"' in page
    assert "1 of 2 parts are committed." in page
    assert "their samples" not in page  # only scored samples have a page
    assert "mmeval score --resume" in page
    with Journal(judging.path / "verdicts/good.jsonl") as journal:
        for row, model in ((2, 0), (2, 1), (3, 0)):  # one verdict on the last sample is missing
            journal.append(msgspec.json.encode((row, Place(model), REPLY)))
    assert "3 of 4" in browser.get("/progress/first").text
    assert "first" in browser.get("/?state=judging").text


def test_verdicts_outside_the_folder_are_not_read(judging, tmp_path):
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_text("")
    (judging.path / "verdicts/good.jsonl").symlink_to(elsewhere)
    assert "leads out of the folder" in client(tmp_path / "runs").get("/run/first").text
