"""Runs with judges that are continued, repaired, or not one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from multimodal_eval import JudgeModel, evaluate, rescore, resume
from multimodal_eval.core.errors import ConfigError, OpenSamplesError, RunFolderError
from multimodal_eval.generate.protocol import Answer, Request
from multimodal_eval.judges import panel
from multimodal_eval.run.verify import verify_run
from tests.generate.server import Behaviour
from tests.hostile.foreign import received
from tests.judges.server import judge_server, scripted_judge
from tests.run.judging.judged_runs import SAMPLES, failing, judge, rows


def test_a_run_of_a_python_judge_is_continued_in_python(tmp_path):
    folder = tmp_path / "run"

    class Down:
        label = "flaky"
        is_cacheable = False
        fails = True

        async def answer(self, request: Request) -> Answer:
            if self.fails:
                raise ConnectionError("down")
            return Answer('{"score": 4}')

    model = Down()
    with pytest.raises(OpenSamplesError):
        evaluate(rows(2), metrics=[judge(retries=0)], judge=model, output=folder, progress=False)
    panel._OWN.clear()  # as in another process
    with pytest.raises(RunFolderError, match=r"a judge of a Python program.*resume\("):
        resume(folder, progress=False)
    model.fails = False
    assert resume(folder, judge=model, progress=False)["good"]["value"] == 4.0


@pytest.mark.parametrize("is_missing", [False, True])
def test_damaged_verdicts_are_asked_again(tmp_path, is_missing):
    folder = tmp_path / "run"
    with judge_server() as server:
        before = evaluate(rows(), metrics=[judge(server, use_cache=False)], output=folder, progress=False)
        file = folder / "verdicts" / "good.part-00001.parquet"
        if is_missing:
            file.unlink()
        else:
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        assert [fault.name for fault in verify_run(folder).faults] == ["verdicts/good.part-00001.parquet"]
        results = before.results
        run = resume(folder, progress=False)
        assert server.requests == SAMPLES + 16  # one part
    assert run.results == results
    assert not verify_run(folder, deep=True).faults


def test_damaged_exchanges_of_a_judge_are_replaced(tmp_path):
    folder = tmp_path / "run"
    with judge_server() as server:
        evaluate(rows(), metrics=[judge(server)], output=folder, progress=False)
        (folder / "exchanges" / "good.part-00002.parquet").write_bytes(b"x")
        run = resume(folder, progress=False)
        assert server.requests == SAMPLES
    assert len(run.folder.read_part("exchanges/good", 2)) == 16


def test_another_effort_is_stored_and_another_question_refused(tmp_path):
    folder = tmp_path / "run"
    with judge_server() as server:
        server.behaviour = Behaviour(script=failing(7, 2))
        with pytest.raises(OpenSamplesError):
            evaluate(rows(), metrics=[judge(server, retries=0)], output=folder, progress=False)
        with pytest.raises(ConfigError, match="'question' of a judge cannot change"):
            resume(folder, judging={"question": "?"}, progress=False)
        run = resume(folder, judging={"retries": 3, "concurrency": 2}, progress=False)
    assert run.info.config.judges["good"].concurrency == 2
    (folder / "scores" / "part-00000.parquet").unlink()
    with pytest.raises(ConfigError, match="asks no judge any more"):
        resume(folder, judging={"retries": 3}, progress=False)


def test_nothing_is_asked_for_a_run_of_somebody_else(tmp_path):
    folder = tmp_path / "run"
    with judge_server() as server:
        evaluate(rows(), metrics=[judge(server)], output=folder, progress=False)
        foreign = received(folder, tmp_path / "foreign")
        server.counts.clear()
        # its verdicts can be scored in another way
        rescore(foreign, {"judges": {"good": {"combine": "median"}}}, progress=False)
        with pytest.raises(RunFolderError, match=r"good would send requests to http"):
            rescore(foreign, {"judges": {"good": {"question": "Why?"}}}, progress=False)
        for file in (foreign / "verdicts").iterdir():
            file.unlink()
        with pytest.raises(RunFolderError):
            rescore(foreign, {"judges": {"good": {"combine": "median"}}}, progress=False)
        with pytest.raises(RunFolderError, match=r"good would send requests to http"):
            resume(foreign, progress=False)
        assert not server.requests
        named = JudgeModel(model="openai:tiny", base_url=server.url, revision="mine")
        rescore(foreign, {"judges": {"good": {"use_probe": False}}}, judge=named, progress=False)
        assert server.requests == SAMPLES


def test_the_judge_of_a_foreign_run_is_asked_if_the_user_names_it(tmp_path):
    folder, foreign = tmp_path / "run", tmp_path / "foreign"
    with judge_server() as server:
        evaluate(rows(), metrics=[judge(server, use_cache=False)], output=folder, progress=False)
        received(folder, foreign)
        server.counts.clear()
        model = JudgeModel(model="openai:tiny", base_url=server.url)
        question = {"judges": {"good": {"question": "Why?", "use_cache": False, "use_probe": False}}}
        rescore(foreign, question, judge=model, progress=False)
        assert server.requests == SAMPLES
        declared = {"judges": {"good": {**question["judges"]["good"], "models": [{"model": "openai:tiny"}]}}}
        declared["judges"]["good"]["models"][0]["base_url"] = server.url
        rescore(foreign, declared, progress=False)
        assert server.requests == 2 * SAMPLES
        with pytest.raises(RunFolderError, match=r"`mmeval rescore` or `mmeval score` with --judge"):
            rescore(foreign, question, progress=False)
        assert server.requests == 2 * SAMPLES


def test_a_foreign_run_is_not_changed_before_its_judge_is_refused(tmp_path):
    folder, foreign = tmp_path / "run", tmp_path / "foreign"
    with judge_server() as server:
        server.behaviour = Behaviour(script=failing(7))
        with pytest.raises(OpenSamplesError):
            evaluate(rows(), metrics=[judge(server, retries=0)], output=folder, progress=False)
        received(folder, foreign)
        server.counts.clear()
        before = (foreign / "run.json").read_bytes()
        with pytest.raises(RunFolderError, match=f"good would send requests to {server.url},"):
            resume(foreign, judging={"base_url": "http://localhost:1/v1"}, progress=False)
        assert (foreign / "run.json").read_bytes() == before
        assert not server.requests


def test_an_old_file_is_not_read_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("good.yaml").write_text("model: python:x\nscale: [0, 10]\n")
    run = evaluate(rows(5), metrics=["judge:good.yaml"], judge=scripted_judge(), progress=False)
    assert run.info.config.judges["good"].scale == (0, 10)
    assert run.info.config.metrics == ["good"]
