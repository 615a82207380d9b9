"""Families of models by their names: a judge tends to prefer answers of its own family."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["families_of", "shared_families"]

# Family -> a pattern of one word of a model's name. Words are separated by anything but letters, digits and dots.
_PATTERNS = {
    "gpt": r"(chat)?gpt(\d.*)?|davinci",
    "claude": r"claude.*",
    "gemini": r"gemini.*",
    "gemma": r"(pali|code|med|rec)?gemma.*",
    "llama": r"(code|tiny|open)?llama(\d.*)?|vicuna.*",
    "qwen": r"(code)?qwen.*|qwq|qvq",
    "mistral": r"(mis|mix|pix|minis|magis|codes|devs|vox)tral.*",
    "deepseek": r"deepseek.*|janus",
    "phi": r"phi(\d.*)?",
    "internlm": r"intern(vl|lm|video|s\d).*|internvl|internlm|intern",
    "glm": r"(chat)?glm.*|cog(vlm|agent).*",
    "yi": r"yi",
    "grok": r"grok.*",
    "command": r"command|c4ai|aya",
    "kimi": r"kimi.*|moonshot.*|moonlight",
    "minicpm": r"minicpm.*",
    "olmo": r"(ol|mol)mo\w*",
    "smollm": r"smol(lm|vlm).*",
    "granite": r"granite.*",
    "falcon": r"falcon.*",
    "nova": r"nova",
    "ernie": r"ernie.*",
    "hunyuan": r"hunyuan.*",
    "doubao": r"doubao.*",
    "minimax": r"minimax.*",
}
_LLAVA = re.compile(r"llava.*")
_REASONING = re.compile(r"o[1-9]")  # OpenAI's o-series, only as the first word of a name
_WORDS = re.compile(r"[a-z0-9.]+")
_FAMILIES = {family: re.compile(pattern) for family, pattern in _PATTERNS.items()}


def families_of(model: str) -> frozenset[str]:
    """The families in the name of a model, such as {"qwen", "deepseek"} of deepseek-r1-distill-qwen-7b.

    A provider (`openai:`) and an organisation (`meta-llama/`) are not part of the name. LLaVA belongs to the family of
    its language model if the name tells it. Empty if no family is known.
    """
    words = _WORDS.findall(_bare(model))
    families = {name for name, pattern in _FAMILIES.items() if any(map(pattern.fullmatch, words))}
    if words and _REASONING.fullmatch(words[0]):
        families.add("gpt")
    if not families and any(map(_LLAVA.fullmatch, words)):
        families.add("llava")
    return frozenset(families)


def shared_families(judge: str, systems: Iterable[str]) -> dict[str, list[str]]:
    """System -> the families that it shares with the judge, for those that share one."""
    of_judge = families_of(judge)
    return {system: sorted(shared) for system in systems if (shared := of_judge & families_of(system))}


def _bare(model: str) -> str:
    """The name without its provider and organisation, in lower case."""
    from multimodal_eval.generate.registry import BUILT_IN

    provider, colon, name = model.lower().partition(":")
    text = name if colon and provider in BUILT_IN else model.lower()
    return text.rstrip("/").rsplit("/", 1)[-1]
