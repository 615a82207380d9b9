"""Families of models by their names."""

from __future__ import annotations

import pytest

from multimodal_eval.analysis.judges import families_of, shared_families


@pytest.mark.parametrize(
    ("model", "families"),
    [
        ("openai:gpt-4o-2024-08-06", {"gpt"}),
        ("gpt4_1106_preview", {"gpt"}),
        ("openai:o3-mini", {"gpt"}),
        ("chatgpt-4o-latest", {"gpt"}),
        ("anthropic:claude-sonnet-4-5", {"claude"}),
        ("gemini:gemini-2.5-pro", {"gemini"}),
        ("vllm:meta-llama/Llama-3.2-11B-Vision-Instruct", {"llama"}),
        ("vllm:Qwen/Qwen2.5-VL-7B-Instruct", {"qwen"}),
        ("ollama:llama3.2:3b", {"llama"}),
        ("llama3.2:3b", {"llama"}),
        ("mistralai/Pixtral-12B-2409", {"mistral"}),
        ("Mixtral-8x7B-Instruct-v0.1", {"mistral"}),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", {"deepseek", "qwen"}),
        ("microsoft/Phi-4-multimodal-instruct", {"phi"}),
        ("google/gemma-3-12b-it", {"gemma"}),
        ("google/paligemma2-10b", {"gemma"}),
        ("OpenGVLab/InternVL3-8B", {"internlm"}),
        ("internlm/internlm2-chat-20b", {"internlm"}),
        # LLaVA by its base, if the name tells it
        ("llava-hf/llava-v1.6-mistral-7b-hf", {"mistral"}),
        ("lmms-lab/llava-onevision-qwen2-7b-ov", {"qwen"}),
        ("liuhaotian/llava-v1.5-7b", {"llava"}),
        # names that only look like a family
        ("TheBloke/Llama-2-7B-GPTQ", {"llama"}),
        ("MiniGPT-4", set()),
        ("phiona", set()),
        ("AIDC-AI/Marco-o1", set()),
        ("meta-llama/unknown-model", set()),  # the organisation is not the model
        ("llama:/models/qwen2-0.5b", {"qwen"}),  # `llama` is the provider
        ("my judge", set()),
        ("", set()),
    ],
)
def test_the_family_of_a_name(model, families):
    assert families_of(model) == families


def test_systems_of_the_judge_s_family():
    systems = ["gpt-4o-mini", "claude-haiku", "o1"]
    assert shared_families("openai:gpt-5", systems) == {"gpt-4o-mini": ["gpt"], "o1": ["gpt"]}
    assert shared_families("my judge", systems) == {}
