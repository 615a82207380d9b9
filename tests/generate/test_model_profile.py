"""Model profiles: what a model is asked as its publisher asks it, and how its thinking is cut from the answers."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import generate
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.generate.model_profile import profiles
from multimodal_eval.generate.protocol import Answer, Exchange, apart, outcome_of, without_thinking
from multimodal_eval.run.config import merged_generation
from tests.generate.server import Behaviour, Reply, Server

DATA = [{"id": "1", "question": "Which?", "choices": ["a cup", "a book"], "expected_answer": "B"}]
PROFILE = """
about: a model
source: nowhere
system: Be brief.
prompts: {mcq: "{{ question }} {{ choices | tojson }}"}
parameters: {temperature: 0.6, extra: {top_k: 7, depth: 1}}
thinking: {start: "◁think▷", end: "◁/think▷", disabled: {chat_template_kwargs: {enable_thinking: false}}}
"""


def asked(server, **generation):
    """The settings of the run, its answers, and the body of the only request."""
    settings = {"model": "vllm:tiny", "base_url": server.url, "use_cache": False, "use_probe": False, **generation}
    server.bodies.clear()
    run = generate(DATA, generation=settings, task="mcq")
    (body,) = map(json.loads, server.bodies.values())
    return run.generation.settings, run.answers(), body


def test_a_profile_is_below_the_settings_of_the_run_and_in_the_signature(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(PROFILE)
    with Server(Behaviour(script=lambda body, earlier: Reply("◁think▷A or B?◁/think▷ B"))) as server:
        settings, answers, body = asked(server, profile=str(file), thinking=False)
        assert [message["content"] for message in body["messages"]] == [
            "Be brief.",
            'Which? {"A": "a cup", "B": "a book"}',
        ]
        assert (body["temperature"], body["top_k"], body["depth"]) == (0.6, 7, 1)
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
        assert answers.column("text").to_pylist() == ["B"]
        assert answers.column("reasoning").to_pylist() == ["A or B?"]
        chosen = {"temperature": 0, "extra": {"depth": 2}}
        other, _, body = asked(server, profile=str(file), parameters=chosen, system="Be kind.", prompt="plain")
        assert [message["content"] for message in body["messages"]] == ["Be kind.", "Which?"]
        assert (body["temperature"], body["top_k"], body["depth"]) == (0, 7, 2)
        assert "chat_template_kwargs" not in body
        file.write_text(PROFILE.replace("nowhere", "a card"))
        changed, _, _ = asked(server, profile=str(file), thinking=False)
    assert settings["profile"] == other["profile"] != changed["profile"]
    assert settings["profile"].startswith("mine.yaml@")
    assert settings["thinking"] == "off"


def test_profiles_of_the_package_send_what_their_publishers_name():
    with Server(Behaviour(script=lambda body, earlier: Reply("B"))) as server:
        bodies = {name: asked(server, profile=name)[2] for name in profiles()}
    # https://huggingface.co/Qwen/Qwen3-VL-8B-Instruct, "Generation Hyperparameters", VL
    wanted = {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "presence_penalty": 1.5, "max_tokens": 16384}
    assert wanted.items() <= bodies["qwen3-vl-instruct"].items()
    text = bodies["qwen2-vl"]["messages"][-1]["content"]
    assert (
        text
        == "Question: Which?\nOptions:\nA. a cup\nB. a book\nPlease select the correct answer from the options above."
    )


def test_profiles_that_cannot_be_used(tmp_path):
    file = tmp_path / "mine.yaml"
    with pytest.raises(UnknownNameError, match=r"no model profile is named 'qwen3-vl'\. Did you mean"):
        merged_generation({}, {"profile": "qwen3-vl"})
    file.write_text("about: a model\nsource: nowhere\nprompts: {mqc: x}")
    with pytest.raises(UnknownNameError, match="no prompt is named 'mqc'"):
        merged_generation({}, {"profile": str(file)})
    file.write_text("about: a model\nsource: nowhere\ntemperature: 1")
    with pytest.raises(ConfigError, match=r"the model profile .*mine\.yaml: .*temperature"):
        merged_generation({}, {"profile": str(file)})
    with pytest.raises(ConfigError, match="`thinking` needs a `profile` whose section `thinking` says how it is"):
        generate(DATA, generation={"model": "echo:", "thinking": True, "profile": "qwen2-vl"})
    of_models = merged_generation({}, {"profile": "qwen2-vl"})
    with pytest.raises(ConfigError, match=r"a model has one profile\. Got 'qwen2-vl' and 'qwen3-vl-thinking'"):
        merged_generation(of_models, {"profile": "qwen3-vl-thinking"})
    replaced = merged_generation({"profile": "qwen2-vl"}, {"profile": "qwen3-vl-thinking"})
    assert "max_pixels" not in replaced


def test_thinking_is_cut_at_the_marks_of_the_profile():
    assert apart("[T]hm[/T] B", "[T]", "[/T]") == ("B", "hm")
    assert apart("hm[/T]B", "[T]", "[/T]") == ("B", "hm")  # the first mark is part of the prompt
    assert apart("[T]hm", "[T]", "[/T]") == ("", "hm")
    assert apart("<think>hm</think>B", "[T]", "[/T]") == ("<think>hm</think>B", None)
    thinking = Exchange(outcome_of(Answer("[T]hm", finish="length")), "digest")
    cut = without_thinking(thinking, "[T]", "[/T]", accept_truncated=True)
    assert (cut.outcome.status, cut.outcome.answer.reasoning) == ("truncated", "hm")  # never an answer
