"""The templates that come with the package, and the default template of a sample."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.template import PromptTemplate

__all__ = ["built_in", "prompt_text", "prompts", "usual_prompt"]

_FOLDER = files("multimodal_eval.generate").joinpath("templates")
_SUFFIX = ".md"
# A task that is not listed asks the sample's question as it is. So does `mme`: its questions end with the instruction.
_BY_TASK = {
    "captioning": "caption",
    "vqa": "vqa",
    "docvqa": "vqa",
    "chartqa": "vqa",
    "textvqa": "vqa",
    "ocr": "vqa",
    "mcq": "mcq",
    "pope": "yes_no",
    "asr": "transcription",
}


@cache
def prompts() -> dict[str, str]:
    """The names of the templates, and what each is for."""
    names = sorted(file.name.removesuffix(_SUFFIX) for file in _FOLDER.iterdir() if file.name.endswith(_SUFFIX))
    return {name: prompt_text(name).partition("{#")[2].partition("#}")[0].strip() for name in names}


def prompt_text(name: str) -> str:
    """The text of a template."""
    file = _FOLDER.joinpath(f"{name}{_SUFFIX}")
    if "/" in name or "\\" in name or not file.is_file():
        raise UnknownNameError("prompt", name, prompts())
    return file.read_text(encoding="utf-8")


@cache
def built_in(name: str) -> PromptTemplate:
    """A template of the package, compiled."""
    return PromptTemplate(prompt_text(name), name)


def usual_prompt(sample: Sample, task: str | None, *, history: bool = False) -> str:
    """The name of the template for a sample.

    A sample with a `prompt` is asked just that. Otherwise the task decides; a question with choices gets `mcq`, unless
    the task has a template that is not about a question.
    """
    if sample.prompt is not None:
        return "plain"
    name = _BY_TASK.get(task or sample.task or "", "dialogue" if history else "plain")
    return "mcq" if sample.choices and name in ("vqa", "plain", "dialogue") else name
