"""What the forms share that compare answers: which they are, and the order in which they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.metric import Aggregate, Bounds
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.template import PromptError
from multimodal_eval.judges.fence import fenced

__all__ = ["Compared", "baseline_of", "baselines_of", "shown_answers", "shown_order", "systems_of"]


class Compared:
    """What the forms share that compare the answer of a sample with others."""

    bounds: Bounds = (0.0, 1.0)
    part_bounds: Mapping[str, Bounds] = MappingProxyType({})
    part_aggregates: Mapping[str, Aggregate] = MappingProxyType({})

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        references = ["references"] if config.require_references else []
        self.needs: tuple[str, ...] = ("generated_answer", f"metadata.{config.baseline}", *references)
        self.orders: tuple[int, ...] = (0, 1) if config.orders == "both" else (0,)


def baseline_of(config: JudgeConfig, sample: Sample) -> str:
    """The other answer of a pair. Raises PromptError if it is not a text."""
    text = sample.metadata.get(config.baseline)
    if not isinstance(text, str):
        raise PromptError(f"`{config.baseline}` must be a text, the other answer. Got {shorten(text)} instead")
    return text


def baselines_of(config: JudgeConfig, sample: Sample) -> list[str]:
    """The other answers of a list. Raises PromptError if they are not a list of texts."""
    texts = sample.metadata.get(config.baseline)
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        got = shorten(texts)
        raise PromptError(f"`{config.baseline}` must be a list of texts, the other answers. Got {got} instead")
    return list(texts)


def shown_order(sample: Sample, answers: Sequence[str], order: int, *, mixes: bool) -> list[int]:
    """The numbers of the answers in the order in which the judge sees them; order 1 is the reverse of order 0.

    With `mixes`, the order is random: by a digest of the group (or the id) of the sample and the text of each answer.
    So it depends neither on the systems nor on the order in which they are given.
    """
    numbers = list(range(len(answers)))
    if mixes:
        place = sample.id if sample.group is None else sample.group
        numbers.sort(key=lambda number: _digest(f"{place}\0{answers[number]}"))
    return numbers[::-1] if order == 1 else numbers


def shown_answers(answers: Sequence[str], order: Sequence[int]) -> list[str]:
    """The answers in their fences, in the order in which the judge sees them."""
    return [fenced(f"answer-{place}", answers[number]) for place, number in enumerate(order, 1)]


def systems_of(sample: Sample, count: int) -> list[str]:
    """The names of the systems whose answers are compared: by the metadata of the sample, or else numbers."""
    others = sample.metadata.get("baseline_system")
    names = [sample.metadata.get("system"), *(others if isinstance(others, list) else [others])]
    is_complete = len(names) == count == len(set(map(str, names))) and all(isinstance(name, str) for name in names)
    return [str(name) for name in names] if is_complete else [str(number) for number in range(1, count + 1)]


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
