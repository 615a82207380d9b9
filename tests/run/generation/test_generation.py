"""Runs that ask a model: what is stored, what is asked again, and what is refused."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from multimodal_eval import evaluate, rescore, resume
from multimodal_eval.core.errors import ConfigError, OpenSamplesError, RetryableError, RunFolderError
from multimodal_eval.data.runs.run_folder import RunFolder, faults
from multimodal_eval.generate.engine import BreakerError
from multimodal_eval.generate.protocol import Answer, EndpointError, RateLimitError, Request
from multimodal_eval.run.verify import verify_run
from tests.hostile.foreign import received
from tests.parts import set_part_size

COUNT = 30
SETTINGS: dict[str, Any] = {"metrics": ["rouge_l", "cider"], "progress": False}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
    set_part_size(monkeypatch, 10)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    rows = [{"id": f"s{n}", "question": f"question {n}", "references": [f"answer {n}"]} for n in range(COUNT)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class Model:
    """Answers "question N" with "answer N", unless `fails` says otherwise. Counts what it is asked."""

    label = "model"
    is_cacheable = True

    def __init__(self, fails: Any = None) -> None:
        self.asked: list[str] = []
        self.fails = fails

    async def answer(self, request: Request) -> Answer:
        self.asked.append(request.prompt)
        if self.fails is not None:
            self.fails(request.prompt)
        return Answer(request.prompt.replace("question", "answer"), output_tokens=2, reply='{"id": 1}')


def answered(data: Path, folder: Path, model: Any, **generation: Any) -> Path:
    settings = {"model": "model", "use_cache": False, "concurrency": 4, **generation}
    evaluate(data, model=model, output=folder, generation=settings, **SETTINGS)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    return {
        name: file.read_bytes()
        for name, file in sorted(files.items())
        if name != "run.json" and not name.startswith("exchanges")
    }


def flip(file: Path) -> None:
    damaged = bytearray(file.read_bytes())
    damaged[-20] ^= 4
    file.write_bytes(damaged)


def failing(*prompts: str) -> Any:
    def fail(prompt: str) -> None:
        if prompt in prompts:
            raise RetryableError("HTTP 500")

    return fail


def test_every_sample_is_asked_once_and_all_files_have_checksums(data, tmp_path):
    model = Model()
    folder = answered(data, tmp_path / "run", model)
    assert sorted(model.asked) == sorted(f"question {n}" for n in range(COUNT))
    verification = verify_run(folder, deep=True)
    assert verification.faults == ()
    assert verification.files == 3 * 4 + 1  # samples, answers, exchanges, scores; the statistics of cider
    assert not (folder / "answers" / "journal.jsonl").exists()
    table = pq.read_table(folder / "exchanges" / "part-00001.parquet")
    assert table.column("attempts").to_pylist() == [1] * 10
    assert table.column("row").to_pylist() == list(range(10, 20))


def test_two_runs_differ_only_in_their_times(data, tmp_path):
    runs = [answered(data, tmp_path / name, Model()) for name in ("first", "second")]
    first, second = (content(run) for run in runs)
    assert first == second
    descriptions = [json.loads((run / "run.json").read_text()) for run in runs]
    for description in descriptions:
        for name in ("created", "finished", "owner", "sha256"):
            description.pop(name)
    assert descriptions[0] == descriptions[1]


def test_equal_digests_mean_equal_requests(data, tmp_path):
    def requests(folder: Path) -> str | None:
        generation = RunFolder(folder).read_info().generation
        assert generation is not None
        return generation.requests

    whole = requests(answered(data, tmp_path / "whole", Model()))
    digests = [row["request"] for part in range(3) for row in table(tmp_path / "whole", part)]
    assert whole == hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()
    with pytest.raises(OpenSamplesError):
        answered(data, tmp_path / "resumed", Model(failing("question 7", "question 23")), retries=0)
    assert requests(tmp_path / "resumed") is None
    resume(tmp_path / "resumed", model=Model(), progress=False)
    assert requests(tmp_path / "resumed") == whole
    assert requests(answered(data, tmp_path / "others", Model(), system="Be kind.")) != whole


def table(folder: Path, part: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = RunFolder(folder).read_part("answers", part).to_pylist()
    return rows


def test_retries_bound_the_attempts_of_a_sample_and_then_only_it_is_asked_again(data, tmp_path):
    model = Model(failing("question 17"))
    with pytest.raises(
        OpenSamplesError, match=r"samples without an answer so far: 1 \('s17': HTTP 500\).*mmeval run --resume"
    ):
        answered(data, tmp_path / "run", model, retries=1)
    assert model.asked.count("question 17") == 2  # an attempt and a retry
    again = Model()
    resume(tmp_path / "run", model=again, progress=False)
    assert again.asked == ["question 17"]
    assert content(tmp_path / "run") == content(answered(data, tmp_path / "whole", Model(), retries=1))


def test_open_samples_can_be_accepted_as_errors(data, tmp_path):
    model = Model(failing("question 17"))
    with pytest.raises(OpenSamplesError):
        answered(data, tmp_path / "run", model, retries=0)
    run = resume(tmp_path / "run", model=model, accept_open=True, progress=False)
    assert run.info.generation is not None
    assert run.info.generation.statuses == {"ok": COUNT - 1, "unanswered": 1}
    assert run["rouge_l"]["n_scored"] == COUNT - 1


def test_an_exception_of_the_model_is_an_error_of_its_sample(data, tmp_path):
    def fail(prompt: str) -> None:
        if prompt == "question 3":
            raise ZeroDivisionError("division by zero")

    folder = answered(data, tmp_path / "run", Model(fail))
    (row,) = (row for row in pq.read_table(folder / "samples").to_pylist() if row["error"])
    assert (row["id"], row["error"]) == ("s3", "raised: ZeroDivisionError: division by zero")
    assert row["generated_answer"] is None


@pytest.mark.parametrize("error", [EndpointError("the key is wrong"), KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_interrupted_run_keeps_its_answers(data, tmp_path, error):
    def fail(prompt: str) -> None:
        if prompt == "question 25":
            raise error

    first = Model(fail)
    with pytest.raises((EndpointError, KeyboardInterrupt, asyncio.CancelledError)) as stop:
        answered(data, tmp_path / "run", first, concurrency=1)
    if isinstance(error, EndpointError):
        assert str(stop.value) == (
            f"the key is wrong. The answers so far are kept. Continue with: mmeval run --resume {tmp_path / 'run'}"
        )
    again = Model()
    resume(tmp_path / "run", model=again, progress=False)
    assert not set(first.asked[:25]) & set(again.asked)
    assert content(tmp_path / "run") == content(answered(data, tmp_path / "whole", Model()))


def test_an_endpoint_that_is_down_stops_the_run_with_the_command_that_continues(data, tmp_path):
    def fail(prompt: str) -> None:
        raise ConnectionRefusedError("refused")

    with pytest.raises(BreakerError, match=r"10 times in a row.*No sample has an answer yet.*mmeval run --resume"):
        answered(data, tmp_path / "run", Model(fail))
    resume(tmp_path / "run", model=Model(), progress=False)


def test_progress_shows_errors_before_the_first_answer(data, tmp_path):
    class Shown:
        def __init__(self) -> None:
            self.notes: list[str] = []

        def __call__(self, stage: str, done: int, total: int | None) -> None:
            self.done = done

        def noting(self, notes: list[str]) -> None:
            self.notes.extend(notes if self.done == 0 else ())

    def busy(prompt: str) -> None:
        if len(model.asked) <= 4:
            raise RateLimitError("HTTP 429: slow down", 0.0)

    model, shown = Model(busy), Shown()
    evaluate(data, model=model, output=tmp_path / "run", metrics=["exact_match"], progress=shown)
    assert shown.notes[:4] == [
        f"{number} {word}, last: HTTP 429" for number, word in enumerate(["error", *["errors"] * 3], 1)
    ]


def test_a_pause_that_is_too_long_stops_the_run_and_keeps_its_answers(data, tmp_path):
    def limited(prompt: str) -> None:
        if len(model.asked) > 5:
            raise RateLimitError("HTTP 429: daily limit", 3600.0)

    model = Model(limited)
    with pytest.raises(BreakerError) as stop:
        answered(data, tmp_path / "run", model)
    assert str(stop.value).startswith("the endpoint asks for a pause of 1 h 0 min (HTTP 429: daily limit). A run waits")
    assert "The answers so far are kept" in str(stop.value)
    assert str(stop.value).endswith(f"Continue with: mmeval run --resume {tmp_path / 'run'}")
    assert len(model.asked) < 5 + 2 * 4  # those in flight; nothing is asked a second time


def test_a_run_is_not_continued_with_another_model(data, tmp_path):
    with pytest.raises(OpenSamplesError):
        answered(data, tmp_path / "run", Model(failing("question 2")), retries=0)
    other = Model()
    other.label = "another"
    with pytest.raises(
        RunFolderError, match=r"was started with .*model:model\|.* and would continue with .*model:another\|"
    ):
        resume(tmp_path / "run", model=other, progress=False)


def test_a_run_at_a_url_is_refused_before_anything_is_asked(data):
    model = Model()
    with pytest.raises(ConfigError, match="needs a folder on this machine"):
        answered(data, "memory://runs/first", model)  # type: ignore[arg-type]
    assert model.asked == []


def test_a_temporary_folder_with_open_samples_can_be_resumed(data):
    settings = {"model": "model", "use_cache": False, "retries": 0}
    with pytest.raises(OpenSamplesError) as stop:
        evaluate(data, model=Model(failing("question 2")), generation=settings, **SETTINGS)
    folder = Path(str(stop.value).split("--resume ")[1].split(";")[0])
    again = Model()
    resume(folder, model=again, progress=False)
    assert again.asked == ["question 2"]
    shutil.rmtree(folder.parent)


def test_it_works_inside_a_running_event_loop(data):
    async def notebook() -> Any:
        run = evaluate(data, model=Model(), generation={"model": "model", "use_cache": False}, **SETTINGS)
        return run["rouge_l"]["n_scored"]

    assert asyncio.run(notebook()) == COUNT


def test_equal_requests_are_asked_once_also_at_the_same_time(tmp_path):
    data = tmp_path / "data.jsonl"
    rows = [{"id": f"s{n}", "question": "the same question", "references": [f"answer {n}"]} for n in range(COUNT)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = Model()
    answered(data, tmp_path / "run", model, use_cache=True)
    assert model.asked == ["the same question"]
    cached = pq.read_table(tmp_path / "run" / "exchanges").column("is_cached").to_pylist()
    assert cached == [False] + [True] * (COUNT - 1)
    model = Model()
    answered(data, tmp_path / "again", model, use_cache=True)
    assert model.asked == []
    assert content(tmp_path / "run") == content(tmp_path / "again")


@pytest.mark.parametrize("name", ["samples/part-00001.parquet", "scores/part-00001.parquet", "state/cider.bin"])
def test_damaged_files_are_made_again_without_asking(data, tmp_path, name):
    folder = answered(data, tmp_path / "run", Model())
    before = content(folder)
    flip(folder / name)
    assert [fault.name for fault in faults(RunFolder(folder))] == [name]
    model = Model()
    resume(folder, model=model, progress=False)
    assert content(folder) == before
    assert model.asked == []


def test_damaged_answers_are_asked_again(data, tmp_path):
    folder = answered(data, tmp_path / "run", Model())
    before = content(folder)
    flip(folder / "answers" / "part-00001.parquet")
    model = Model()
    resume(folder, model=model, progress=False)
    assert sorted(model.asked) == [f"question {n}" for n in range(10, 20)]
    assert content(folder) == before
    assert verify_run(folder, deep=True).faults == ()


def test_damaged_answers_come_from_the_cache_if_it_has_them(data, tmp_path):
    folder = answered(data, tmp_path / "run", Model(), use_cache=True)
    flip(folder / "answers" / "part-00002.parquet")
    model = Model()
    resume(folder, model=model, progress=False)
    assert model.asked == []


def test_a_damaged_exchange_loses_only_its_times(data, tmp_path):
    folder = answered(data, tmp_path / "run", Model())
    before = content(folder)
    flip(folder / "exchanges" / "part-00001.parquet")
    resume(folder, model=Model(), progress=False)
    assert content(folder) == before
    assert list(faults(RunFolder(folder))) == []
    tables = [pq.read_table(folder / "exchanges" / f"part-0000{part}.parquet") for part in range(3)]
    assert [table.column("latency").null_count for table in tables] == [0, 10, 0]


def test_subtitles_that_have_changed_are_refused(tmp_path):
    spoken = tmp_path / "spoken.srt"
    spoken.write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    (tmp_path / "p.md").write_text("{{ subtitles }} {{ question }}")
    rows = [{"id": f"{n}", "question": f"{n}", "subtitles": str(spoken), "references": [f"{n}"]} for n in range(4)]
    data, folder = tmp_path / "data.jsonl", tmp_path / "run"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(OpenSamplesError):
        answered(data, folder, Model(failing("Hello 3")), retries=0, prompt=str(tmp_path / "p.md"))
    before = spoken.read_text()
    spoken.write_text(before.replace("Hello", "Bye"))
    with pytest.raises(RunFolderError, match=r"run cannot be continued: .*spoken\.srt has changed since"):
        resume(folder, model=Model(), progress=False)
    spoken.write_text(before)
    again = Model()
    resume(folder, model=again, progress=False)
    assert again.asked == ["Hello 3"]


def test_a_damaged_manifest_of_the_exchanges_is_made_again(data, tmp_path):
    folder = answered(data, tmp_path / "run", Model())
    before = pq.read_table(folder / "exchanges")
    flip(folder / "exchanges.json")
    assert "exchanges.json" in [fault.name for fault in faults(RunFolder(folder))]
    resume(folder, model=Model(), progress=False)
    assert list(faults(RunFolder(folder))) == []
    assert pq.read_table(folder / "exchanges").equals(before)


def test_rescoring_carries_the_answers_over(data, tmp_path):
    folder = answered(data, tmp_path / "run", Model())
    again = rescore(folder, {"metrics": ["exact_match"]}, output=tmp_path / "again", progress=False)
    assert again.info.generation == evaluate_info(folder)
    for kind in ("samples", "answers", "exchanges"):
        for file in (folder / kind).glob("part-*"):
            assert (tmp_path / "again" / kind / file.name).read_bytes() == file.read_bytes()
    assert verify_run(tmp_path / "again", deep=True).faults == ()
    flip(tmp_path / "again" / "answers" / "part-00000.parquet")
    with pytest.raises(RunFolderError, match=r"run/answers/part-00000.parquet is damaged"):
        resume(tmp_path / "again", progress=False)


def evaluate_info(folder: Path) -> Any:
    return RunFolder(folder).read_info().generation


def test_verify_notices_answers_that_are_not_those_of_the_samples(data, tmp_path):
    folder = answered(data, tmp_path / "run", Model())
    run = RunFolder(folder)
    table = run.read_part("answers", 1)
    run.write_part(
        "answers", 1, table.set_column(3, "text", table.column("text").slice(0, 1).combine_chunks().take([0] * 10))
    )
    run.write_results(run.read_results())
    problems = [(fault.name, fault.problem) for fault in verify_run(folder, deep=True).faults]
    assert problems == [("samples/part-00001.parquet", "has other answers than answers/part-00001.parquet")]


def test_a_run_of_somebody_else_sends_nothing(data, tmp_path):
    with pytest.raises(OpenSamplesError):
        answered(data, tmp_path / "run", Model(failing("question 2")), retries=0, base_url="http://elsewhere/v1")
    received(tmp_path / "run", tmp_path / "received")
    with pytest.raises(RunFolderError, match=r"would send requests to http://elsewhere/v1\. Start a new run"):
        resume(tmp_path / "received", model=Model(), progress=False)


def test_a_run_with_new_settings_stays_the_users_own(data, tmp_path):
    failing_model = Model(failing("question 2"))
    with pytest.raises(OpenSamplesError):
        answered(data, tmp_path / "run", failing_model, retries=0)
    with pytest.raises(OpenSamplesError):
        resume(tmp_path / "run", model=failing_model, generation={"concurrency": 2}, progress=False)
    resume(tmp_path / "run", model=Model(), progress=False)
