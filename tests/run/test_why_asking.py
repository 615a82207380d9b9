"""`compare --why --ask`: what the prompt and the parameters contribute is measured by asking again."""

from __future__ import annotations

import json
import random
from itertools import count

import pytest

from multimodal_eval import evaluate, why
from multimodal_eval.core.errors import ConfigError
from tests.cli.command_line import mmeval
from tests.data.logs.fixture_logs import LM_EVAL, log_of
from tests.generate.server import Behaviour, Reply, Server, user_text

ROWS = [{"id": str(n), "question": f"number {n}", "references": ["yes"]} for n in range(20)]


@pytest.fixture(autouse=True)
def without_cache(monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")


def run_of(model, template, rows=ROWS, **parameters):
    generation = {"template": template, "parameters": parameters, "use_cache": False}
    settings = {"metrics": ["exact_match"], "generation": generation, "progress": False, "skip_lint": True}
    return evaluate(rows, model=model, **settings)


def scripted(body, earlier):
    """The hint helps questions 0 to 9; with less tokens, 0 to 3 are wrong again."""
    text = user_text(body)
    number = int(text.split()[-1])
    is_cut = body.get("max_tokens") == 8 and number < 4
    return Reply("yes" if "Think!" in text and number < 10 and not is_cut else "no")


def test_a_prompt_and_a_parameter_are_told_apart_over_http(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "plain.md").write_text("{{ question }}")
    (tmp_path / "hint.md").write_text("Think! {{ question }}")
    with Server(Behaviour(script=scripted)) as server:
        model = ("--model", "openai:tiny", "--base-url", server.url, "--metrics", "exact_match", "--no-report")
        mmeval("run", "data.jsonl", *model, "--prompt", "plain.md", "-o", "a")
        mmeval("run", "data.jsonl", *model, "--prompt", "hint.md", "--max-tokens", "8", "-o", "b")
        done = mmeval("compare", "--why", "a", "b", "--ask", "20", "--format", "json")
    result = json.loads(done.stdout)
    parts = {part["name"]: (part["value"], part["confidence"]) for part in result["parts"] if part["value"]}
    # 10 of 20 become right by the hint, and 4 of these wrong again by the limit of tokens.
    assert parts == {"prompt": (50.0, "measured"), "decoding": (-20.0, "measured")}
    assert (result["sum_error"], result["difference"], result["settled"]) == ("0", 30.0, 1.0)
    unasked = json.loads(mmeval("compare", "--why", "a", "b", "--format", "json").stdout)
    assert [part["name"] for part in unasked["parts"] if part["value"]] == ["prompt + decoding + answer"]


def test_a_part_of_the_samples_stands_for_all():
    def model(request):
        return "yes" if "Think!" in request.prompt and int(request.id) % 2 else "no"

    first, second = run_of(model, "{{ question }}"), run_of(model, "Think! {{ question }}")
    result = why(first, second, names=("A", "B"), ask=8, model=model)
    parts = {part.name: part for part in result.parts if part.value}
    # 10 of 20 were wrong and are right: all of them that are asked again are so by the prompt.
    assert {name: (part.value, part.confidence) for name, part in parts.items()} == {"prompt": (50, "measured")}
    assert parts["prompt"].figure.low < 50 < parts["prompt"].figure.high
    assert "8 of 20 samples asked again" in parts["prompt"].figure.method
    assert len(parts["prompt"].ids) == 4
    assert result.sum_error == 0


def test_another_draw_is_not_the_prompt():
    answers = iter(["no"] * 20 + ["yes"] * 20)
    first, second = (run_of(lambda request: next(answers), text) for text in ("{{ question }}", "Now: {{ question }}"))
    result = why(first, second, names=("A", "B"), ask=20, model=lambda request: "yes")
    assert {part.name: part.value for part in result.parts if part.value} == {"answer": 100}


def test_the_prompts_of_logs_are_asked_again(tmp_path):
    """lm-eval's log has the prompts and the parameters; its rule is found."""
    log = log_of(LM_EVAL, "toy_sum")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        arguments = line["arguments"]["gen_args_0"]
        arguments["arg_0"] = "Think! " + arguments["arg_0"]
        line |= {"resps": [[line["target"]]], "filtered_resps": [line["target"]], "exact_match": 1.0}
    (tmp_path / log.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    right = {str(line["doc_id"]): line["target"] for line in lines}

    def model(request):
        return right[request.id.partition("/")[0]] if "Think!" in request.prompt else "The answer is no"

    metrics = ["exact_match_strict-match"]
    result = why(log, tmp_path / log.name, metrics=metrics, ask=6, model=model)
    parts = {part.name: (part.value, part.confidence) for part in result.parts if part.value}
    assert {confidence for _, confidence in parts.values()} == {"measured"}
    assert float(parts["prompt"][0]) == pytest.approx(100)  # A's first answers were partly right: noise, the other way
    assert float(parts["answer"][0]) == pytest.approx(float(result.difference) - 100)


def test_what_cannot_be_asked_is_said():
    first = run_of(lambda request: "yes", "{{ question }}")
    same = why(first, run_of(lambda request: "no", "{{ question }}"), names=("A", "B"), ask=5, model=lambda r: "yes")
    assert any("nothing was asked again: no sample has another request" in note for note in same.notes)
    answered = evaluate([{**row, "generated_answer": "no"} for row in ROWS], metrics=["exact_match"], progress=False)
    unknown = why(first, answered, names=("A", "B"), ask=5, model=lambda request: "yes")
    assert any("the prompts or the parameters are not known" in note for note in unknown.notes)
    second = run_of(lambda request: "no", "Now: {{ question }}")
    with pytest.raises(ConfigError, match="--model"):
        why(first, second, names=("A", "B"), ask=5)
    with pytest.raises(ConfigError, match="number of samples"):
        why(first, second, ask=-1)

    def broken(request):
        raise ValueError("no")

    with pytest.raises(ConfigError, match="none of 5 samples got an answer"):
        why(first, second, names=("A", "B"), ask=5, model=broken)
    assert "--ask needs --why" in mmeval("compare", "a", "b", "--ask", "3", code=2).stderr
    assert "--model needs --ask" in mmeval("compare", "--why", "a", "b", "--model", "x:y", code=2).stderr


@pytest.mark.slow
def test_intervals_of_measured_parts_contain_the_truth():
    """A model with noise: the hint adds .3 to its chance, the limit of tokens takes .15. No other draw changes it."""
    draws, truth = count(), {"prompt": 30.0, "decoding": -15.0, "answer": 0.0}

    def model(request):
        chance = 0.4 + 0.3 * ("Think!" in request.prompt) - 0.15 * (request.parameters.max_tokens == 64)
        draw = next(draws)
        is_other = random.Random(f"{draw}").random() < 0.1
        return "yes" if random.Random(f"{request.id} {draw if is_other else ''}").random() < chance else "no"

    inside = dict.fromkeys(truth, 0)
    for seed in range(60):
        rows = [{**row, "id": f"{seed} {n}"} for n, row in enumerate(ROWS * 5)]
        first = run_of(model, "{{ question }}", rows, temperature=1)
        second = run_of(model, "Think! {{ question }}", rows, temperature=1, max_tokens=64)
        result = why(first, second, names=("A", "B"), ask=40, model=model, seed=seed)
        assert result.sum_error == 0
        for part in result.parts:
            if part.name in truth:
                inside[part.name] += part.figure.low <= truth[part.name] <= part.figure.high
    assert min(inside.values()) >= 53  # of 60: at 95 %, less is rarer than 1 in 100
