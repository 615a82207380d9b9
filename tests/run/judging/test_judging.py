"""The judging step of a run, against a server that counts what it is asked."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import msgspec
import pytest

from multimodal_eval import JudgeModel, Run, evaluate, resume
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, OpenSamplesError
from multimodal_eval.generate.meter import BudgetError
from multimodal_eval.generate.protocol import Answer, EndpointError, RejectedError, Request
from tests.generate.server import Behaviour, Reply
from tests.judges.server import Leanings, judge_server, scripted_judge
from tests.run.judging.judged_runs import SAMPLES, failing, judge, rows, values, verdicts


def test_every_sample_is_asked_once_and_scored_by_its_verdict():
    with judge_server() as server:
        run = evaluate(rows(), metrics=[judge(server), "exact_match"], progress=False)
        asked = server.requests
    assert asked == SAMPLES
    leanings = Leanings()
    # the scripted judge gives round(1 + 4 * quality) to the text of each answer
    expected = [round(1 + 4 * leanings.quality(f"answer {n}")) for n in range(SAMPLES)]
    assert values(run) == expected
    assert run["good"]["value"] == pytest.approx(sum(expected) / SAMPLES)
    assert run.info.judging["good"].statuses == {"ok": SAMPLES}
    assert run.info.judging["good"].input_tokens == 7 * SAMPLES  # seven per request of the server
    assert run.info.state == "done"
    assert not (run.path / "verdicts" / "good.jsonl").exists()


def test_a_second_run_asks_nothing():
    with judge_server() as server:
        first = evaluate(rows(), metrics=[judge(server)], progress=False)
        again = evaluate(rows(), metrics=[judge(server)], progress=False)
        assert server.requests == SAMPLES
        evaluate(rows(), metrics=[judge(server, use_cache=False)], progress=False)
        assert server.requests == 2 * SAMPLES
    assert again["good"]["value"] == first["good"]["value"]
    assert again.info.signatures == first.info.signatures


def test_a_panel_and_repetitions_multiply_the_questions():
    with judge_server(Leanings(noise=0.2)) as server:
        models = [JudgeModel(model="openai:tiny", base_url=server.url, revision=name) for name in ("a", "b")]
        run = evaluate(rows(), metrics=[judge(models=models, repeats=3)], progress=False)
        assert server.requests == SAMPLES * 2 * 3
    places = Counter((each["judge"], each["repeat"]) for each in verdicts(run))
    assert places == {(model, repeat): SAMPLES for model in (0, 1) for repeat in (1, 2, 3)}
    assert run.info.judging["good"].settings["models"] == "openai:tiny@a+openai:tiny@b"


def test_the_load_does_not_drain_between_parts():
    # 60 samples in parts of 16: part by part, no more than 16 could be in flight at the same time
    with judge_server(latency=0.5) as server:
        evaluate(rows(), metrics=[judge(server, concurrency=40)], progress=False)
        assert server.most_at_once > 16


def test_a_slow_model_does_not_stop_the_others():
    started: list[str] = []

    class Model:
        is_cacheable = False

        def __init__(self, label: str) -> None:
            self.label = label

        async def answer(self, request: Request) -> Answer:
            started.append(self.label)
            if self.label == "slow":
                while started.count("fast") < 40:
                    await asyncio.sleep(0.001)
            return Answer('{"score": 3}')

    # the slow model has only one request in flight until the fast one has answered 40 of 60 samples in parts of 16
    run = evaluate(rows(), metrics=[judge(concurrency=1)], judge=[Model("slow"), Model("fast")], progress=False)
    assert run["good"]["value"] == 3.0


def test_an_unreadable_verdict_or_a_refusal_is_unscored_and_never_zero():
    with judge_server(Leanings(unreadable=0.2, refusals=0.2)) as server:
        run = evaluate(rows(), metrics=[judge(server)], progress=False)
    statuses = run.info.judging["good"].statuses
    assert statuses["refused"] > 0
    assert run["good"]["n_scored"] < statuses["ok"]
    assert all(value is None or value >= 1 for value in values(run))


def test_a_truncated_verdict_is_a_failure():
    def script(body: dict[str, Any], attempt: int) -> Reply:
        return Reply('{"score": 5}', finish="length" if "question 7" in str(body) else "stop")

    with judge_server() as server:
        server.behaviour = Behaviour(script=script)
        run = evaluate(rows(20), metrics=[judge(server)], progress=False)
    assert run.info.judging["good"].statuses == {"ok": 19, "truncated": 1}
    assert values(run).count(None) == 1


def test_faults_of_the_endpoint_are_retried():
    faults = {"error": 0.2, "reset": 0.1, "rate_limit": 0.1}
    with judge_server(faults=faults) as server:
        run = evaluate(rows(), metrics=[judge(server)], progress=False)
    assert run.info.judging["good"].statuses == {"ok": SAMPLES}


def test_open_questions_are_asked_again_with_resume(tmp_path):
    folder = tmp_path / "run"
    with judge_server() as server:
        server.behaviour = Behaviour(script=failing(7, 2))  # the second pass fails, too
        with pytest.raises(OpenSamplesError, match=r"without a verdict of good so far: 1 \('s7'.*--resume"):
            evaluate(rows(), metrics=[judge(server, retries=0)], output=folder, progress=False)
        assert json.loads((folder / "run.json").read_text())["state"] == "judging"
        before = server.requests
        with pytest.raises(OpenSamplesError):
            resume(folder, progress=False)
        run = resume(folder, progress=False)
        assert server.requests == before + 2
    assert run["good"]["n_scored"] == SAMPLES


def test_a_question_that_stays_open_can_be_accepted_as_an_error(tmp_path):
    folder = tmp_path / "run"
    with judge_server() as server:
        server.behaviour = Behaviour(script=failing(7))
        with pytest.raises(OpenSamplesError):
            evaluate(rows(), metrics=[judge(server, retries=0)], output=folder, progress=False)
        run = resume(folder, accept_open=True, progress=False)
    assert run.info.judging["good"].statuses == {"ok": SAMPLES - 1, "unanswered": 1}
    assert run["good"]["n_scored"] == SAMPLES - 1


def test_an_endpoint_that_refuses_everything_leaves_no_folder(tmp_path):
    with judge_server() as server:
        other = judge(models=[JudgeModel(model="openai:missing", base_url=server.url)])
        with pytest.raises(EndpointError, match="good: "):
            evaluate(rows(), metrics=[other], output=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_answers_of_a_model_are_kept_if_the_judge_refuses_everything(tmp_path):
    folder = tmp_path / "run"
    with judge_server() as server:
        other = judge(models=[JudgeModel(model="openai:missing", base_url=server.url)])
        data = [{key: value for key, value in row.items() if key != "generated_answer"} for row in rows(5)]
        with pytest.raises(EndpointError, match=r"The answers are kept\. Continue with: mmeval run --resume"):
            evaluate(data, metrics=[other], model=lambda request: "an answer", output=folder, progress=False)
    assert json.loads((folder / "run.json").read_text())["state"] == "judging"


def attempts_of(run: Run) -> int:
    """The requests that were sent for the verdicts of a run: one each, but for those whose connection failed."""
    parts = [run.folder.read_part("exchanges/good", part) for part in range(len(run.info.parts))]
    attempts = [count for part in parts for count in part.column("attempts").to_pylist()]
    assert len(attempts) == 2 * len(run)
    return sum(attempts)


PRICES = "tiny: {input: 1000000, output: 0}\nother: {input: 2000000, output: 0}\n"  # 1 and 2 per token


def test_a_budget_is_shared_by_all_models_each_at_its_price(tmp_path):
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICES)
    with judge_server(models=("tiny", "other")) as server:
        models = [JudgeModel(model=f"openai:{name}", base_url=server.url) for name in ("tiny", "other")]
        settings = {"models": models, "prices": str(prices), "parameters": {"max_tokens": 50}, "use_probe": False}
        settings["concurrency"] = 8  # a request that the stop of a run cancels has no exchange to be counted
        whole = evaluate(rows(10), metrics=["good"], judges={"good": settings}, progress=False)
        # seven tokens per request: 10 * 7 * 1 + 10 * 7 * 2
        assert whole.info.judging["good"].cost == 210
        assert whole.info.judging["good"].currency == "USD"
        folder = tmp_path / "run"
        limited = {**settings, "budget": 2000.0, "use_cache": False}
        with pytest.raises(BudgetError, match=r"--resume .*run.* --config FILE with .*budget: AMOUNT"):
            evaluate(rows(100), metrics=["good"], judges={"good": limited}, output=folder, progress=False)
        spent = server.requests - attempts_of(whole)
        assert 0 < spent < 200
        run = resume(folder, judging={"budget": 100_000.0}, progress=False)
        assert server.requests == attempts_of(whole) + attempts_of(run)  # nothing that has a reply is asked again
    assert run["good"]["n_scored"] == 100
    assert run.info.config.judges["good"].budget == 100_000.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 5.0}, "a budget needs prices"),
        ({"budget": 5.0, "prices": "prices.yaml"}, "needs a limit of tokens per verdict"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(settings, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text(PRICES)
    with pytest.raises(ConfigError, match=message):
        evaluate(rows(3), metrics=["good"], judges={"good": settings}, judge="openai:tiny", progress=False)


def test_functions_judge_and_have_labels_of_their_own():
    run = evaluate(
        rows(8),
        metrics=[judge()],
        judge=[scripted_judge(Leanings()), scripted_judge(Leanings(leniency=1.0))],
        progress=False,
    )
    first, second = run.info.config.judges["good"].models
    assert second.model == f"{first.model}#2"  # the same source, but another function
    assert [each["text"] for each in verdicts(run) if each["judge"] == 1] == ['{"score": 5}'] * 8


def test_a_function_that_raises_is_a_failure_of_that_sample():
    def broken(request: Request) -> str:
        if request.sample is not None and request.sample.id == "s3":
            raise ValueError("no")
        return '{"score": 2}'

    run = evaluate(rows(8), metrics=[judge()], judge=broken, progress=False)
    assert run.info.judging["good"].statuses == {"ok": 7, "raised": 1}


def test_a_rejected_question_is_not_asked_again():
    class Rejecting:
        label = "rejecting"
        is_cacheable = False
        asked = 0

        async def answer(self, request: Request) -> Answer:
            self.asked += 1
            raise RejectedError("too long")

    model = Rejecting()
    run = evaluate(rows(8), metrics=[judge()], judge=model, allow_empty=True, progress=False)
    assert model.asked == 8
    assert run.info.judging["good"].statuses == {"rejected": 8}


def test_a_judge_without_a_metric_is_refused():
    with pytest.raises(ConfigError, match="no metric of this run asks one"):
        evaluate(rows(3), metrics=["exact_match"], judge="openai:tiny", progress=False)


def test_a_misspelt_fallback_is_named_before_the_missing_judge():
    options = {"multiple_choice": {"fallback": "jugde"}}
    with pytest.raises(ConfigError, match=r"`fallback` of multiple_choice must be one of none, judge\. Got 'jugde'"):
        evaluate(rows(3), metrics=["multiple_choice"], options=options, judge="openai:tiny", progress=False)


def test_a_judge_with_the_name_of_a_metric_is_refused():
    with pytest.raises(ConfigError, match=r"the judge 'exact_match' has the name of a metric, which it would replace"):
        evaluate(rows(3), metrics=[judge(name="exact_match")], judge="openai:tiny", progress=False)


def test_a_judge_that_only_reads_answers_is_not_a_metric():
    with pytest.raises(ConfigError, match=r"the judge 'good' has the form extract.*`fallback: judge`"):
        evaluate(rows(3), metrics=[judge(form="extract")], judge="openai:tiny", progress=False)


def test_a_judge_without_a_model_is_refused():
    with pytest.raises(ConfigError, match=r"has no model\. Name one with --judge"):
        evaluate(rows(3), metrics=[judge()], progress=False)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("opnai:tiny", "no provider is named 'opnai'. Did you mean 'openai'?"),
        ("gpt-4o", "`model` must be PROVIDER:NAME, such as openai:gpt-4o. Providers: openai, "),
    ],
)
def test_a_judge_of_an_unknown_provider_is_refused_like_a_model(model, message, tmp_path):
    settings = {"output": tmp_path / "run", "progress": False}
    with pytest.raises(MultimodalEvalError) as named:
        evaluate(rows(3), metrics=[judge()], judge=model, **settings)
    with pytest.raises(MultimodalEvalError) as written:
        evaluate(rows(3), metrics=[judge(models=[JudgeModel(model=model)])], **settings)
    for error in (named, written):
        assert str(error.value).startswith(message)
    assert not (tmp_path / "run").exists()


def test_two_models_that_the_cache_cannot_tell_apart_are_refused():
    """The address is not part of the cache's key: each would get the replies of the other."""
    with judge_server() as server, judge_server() as other:
        models = [JudgeModel(model="openai:tiny", base_url=each.url) for each in (server, other)]
        with pytest.raises(ConfigError, match="'openai:tiny' is in the panel twice"):
            evaluate(rows(3), metrics=[judge()], judge=models, progress=False)
        assert not server.requests + other.requests
        named = [msgspec.structs.replace(model, revision=name) for model, name in zip(models, "ab", strict=True)]
        evaluate(rows(3), metrics=[judge()], judge=named, progress=False)
        assert server.requests == other.requests == 3


def test_a_judge_that_no_metric_names_is_refused():
    with pytest.raises(ConfigError, match="does not compute 'good'"):
        evaluate(rows(3), metrics=["exact_match"], judges={"good": {}}, progress=False)


def test_until_cannot_decide_by_a_judge():
    settings = {"generation": {"until": {"metric": "good", "width": 0.1}}}
    with pytest.raises(ConfigError, match="asks a judge after all samples are answered"):
        evaluate(rows(3), metrics=[judge()], judge=scripted_judge(), model=lambda r: "x", progress=False, **settings)
