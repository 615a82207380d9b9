"""Rescoring of runs with judges: what asks again, and what does not."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest

from multimodal_eval import JudgeModel, evaluate, generate, rescore
from multimodal_eval.core.config import Parameters
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import Criterion, JudgeConfig, JudgeForm
from multimodal_eval.core.metric import signature_of
from multimodal_eval.evaluation.judge_metric import JudgeMetric
from tests.judges.server import judge_server, scripted_judge
from tests.run.judging.judged_runs import SAMPLES, judge, rows, values, verdicts


def test_rescoring_with_the_same_questions_asks_nothing(tmp_path):
    with judge_server() as server:
        run = evaluate(rows(), metrics=[judge(server)], output=tmp_path / "run", progress=False)
        changed = judge(server, combine="median")
        again = rescore(run, {"metrics": ["good", "rouge_l"], "judges": {"good": changed}}, progress=False)
        kept = rescore(run, {"metrics": ["good"], "judges": {"good": {"name": "good"}}}, progress=False)
        assert server.requests == SAMPLES
    assert again["good"]["signature"] != run["good"]["signature"]
    assert values(again) == values(run)
    assert verdicts(again) == verdicts(run)
    assert kept.info.config.judges["good"].models == run.info.config.judges["good"].models


def test_rescoring_with_another_question_or_model_asks_again(tmp_path):
    with judge_server(models=("tiny", "other")) as server:
        run = evaluate(rows(), metrics=[judge(server)], output=tmp_path / "run", progress=False)
        other = judge(server, question="Is it short?")
        again = rescore(run, {"judges": {"good": other}}, progress=False)
        assert server.requests == 2 * SAMPLES
        assert again["good"]["signature"] != run["good"]["signature"]
        model = JudgeModel(model="openai:other", base_url=server.url)
        rescore(run, {}, judge=model, progress=False)
        assert server.requests == 3 * SAMPLES
        rescore(run, {}, judge=model, progress=False)  # from the cache
        assert server.requests == 3 * SAMPLES


def test_other_weights_need_no_script_that_was_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    criteria = [Criterion(name="a", question="?"), Criterion(name="b", question="?")]
    config = JudgeConfig(name="good", form="rubric", criteria=criteria)
    replies = {row["id"]: '{"a": 5, "b": 1}' for row in rows(4)}
    (tmp_path / "replies.json").write_text(json.dumps(replies))
    old = evaluate(rows(4), metrics=[config], judge="script:replies.json", output=tmp_path / "old", progress=False)
    (tmp_path / "replies.json").unlink()
    weighted = [{"name": "a", "question": "?", "weight": 3}, {"name": "b", "question": "?"}]
    changed = {"judges": {"good": {"form": "rubric", "criteria": weighted}}}
    new = rescore(old, changed, output=tmp_path / "new", progress=False)
    assert (values(old), values(new)) == ([0.5] * 4, [0.75] * 4)
    other = {"judges": {"good": {"question": "How good is it?"}}}
    with pytest.raises(ConfigError, match=r"the script 'replies\.json' cannot be read"):
        rescore(old, other, output=tmp_path / "other", progress=False)


def test_answers_that_are_failures_now_are_judged_again(tmp_path):
    with judge_server() as server:
        run = evaluate(rows(20), metrics=[judge(server)], output=tmp_path / "run", progress=False)
        again = rescore(run, {"error_patterns": ["answer 7"]}, output=tmp_path / "again", progress=False)
        back = rescore(again, {"error_patterns": ["default"]}, progress=False)
        assert server.requests == 20  # the rest comes from the cache
    assert again["good"]["n_scored"] == 19
    assert back["good"]["n_scored"] == 20


def test_answers_are_judged_where_they_were_generated(tmp_path):
    data = [{key: value for key, value in row.items() if key != "generated_answer"} for row in rows(20)]
    folder = tmp_path / "run"
    made = generate(data, model=lambda request: "answer 1", task="vqa", output=folder, progress=False)
    run = made.score(metrics=[judge()], judge=scripted_judge(), progress=False)
    assert run["good"]["n_scored"] == 20


def asking(**settings: Any) -> dict[str, object]:
    return JudgeMetric(judge(**{"models": [JudgeModel(model="openai:tiny")], **settings})).asking


@pytest.mark.parametrize(
    "settings",
    [
        {"question": "Is it true?"},
        {"scale": (0, 10)},
        {"show": ("question",)},
        {"show": ("question", "references", "choices")},  # without media
        {"require_references": True},
        {"system": "You are strict."},
        {"explain": True},
        {"structured": False},
        {"expected": True},
        {"repeats": 2},
        {"parameters": {"temperature": 1.0}},
        {"max_pixels": 1000},
        {"detail": "low"},
        {"frames": 4},
        {"media_as": "none"},
        {"template": "{{ answer }}"},
        {"models": [JudgeModel(model="openai:tiny", revision="2")]},
        {"models": [JudgeModel(model="openai:other")]},
        {"models": [JudgeModel(model="openai:tiny"), JudgeModel(model="openai:tiny", revision="2")]},
    ],
)
def test_what_changes_a_request_is_known(settings):
    if "parameters" in settings:
        settings = {"parameters": msgspec.convert(settings["parameters"], Parameters)}
    assert asking(**settings) != asking()


@pytest.mark.parametrize("settings", [{"baseline": "other"}, {"orders": "given"}, {"skip_identical": True}])
def test_what_changes_a_comparison_is_known(settings):
    assert asking(form="pairwise", **settings) != asking(form="pairwise")


@pytest.mark.parametrize("form", get_args(JudgeForm))
def test_a_written_default_is_as_if_left_out(form):
    criteria = [Criterion(name="a", question="Is it true?")] if form == "rubric" else []
    written = {name: written_anew(getattr(JudgeConfig(), name)) for name in JudgeConfig.__struct_fields__}
    chosen = {"name": "good", "form": form, "criteria": criteria, "models": [JudgeModel(model="openai:tiny")]}
    everything = JudgeMetric(JudgeConfig(**(written | chosen)))
    only = JudgeMetric(JudgeConfig(**chosen))
    assert signature_of(everything) == signature_of(only)
    assert everything.asking == only.asking


def written_anew(value: object) -> object:
    """An equal value that is another object, as that of a file is."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))


def test_the_order_of_what_is_shown_changes_no_request():
    assert asking(show=("references", "question")) == asking(show=("question", "references"))


def test_a_criterion_with_the_scale_of_its_judge():
    def asked(scale: tuple[int, int] | None) -> dict[str, object]:
        return asking(form="rubric", scale=(0, 3), criteria=[Criterion(name="a", question="?", scale=scale)])

    assert asked((0, 3)) == asked(None) != asked((1, 5))


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "other"},
        {"combine": "median"},
        {"concurrency": 3},
        {"timeout": 3.0},
        {"retries": 1},
        {"budget": 3.0},
        {"prices": "prices.yaml"},
        {"use_cache": False},
        {"use_probe": True},
        {"prompt": "a-file.md"},  # its content counts
        {"models": [JudgeModel(model="openai:tiny", base_url="http://localhost:1/v1", key_env="OTHER")]},
    ],
)
def test_what_changes_no_request_is_not(settings):
    assert asking(**settings) == asking()
