"""The parts of a prompt that the forms share: what the judge sees of a sample."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.template import letters
from multimodal_eval.generate.turns import Draft, Reference, media_of
from multimodal_eval.judges.fence import RULE, fenced

__all__ = ["drafts_of", "shown_media", "shown_texts"]


def shown_texts(config: JudgeConfig, sample: Sample) -> Iterator[str]:
    """The question, the choices and the references of a sample, each in its fence."""
    if "question" in config.show and (question := sample.question or sample.prompt):
        yield fenced("question", question)
    if "choices" in config.show and (choices := letters(sample)):
        yield fenced("choices", "\n".join(f"{letter}. {text}" for letter, text in choices.items()))
    if "references" in config.show:
        for number, text in enumerate(sample.reference_texts, 1):
            yield fenced(f"reference-{number}", text)


def shown_media(config: JudgeConfig, sample: Sample) -> list[Reference]:
    """The media of a sample."""
    if "media" not in config.show or config.media_as == "none":
        return []
    return [reference for references in media_of(sample).values() for reference in references]


def drafts_of(
    config: JudgeConfig, sample: Sample, instruction: str, texts: list[str], ending: str
) -> tuple[Draft, ...]:
    """The turns of a question: the instruction, what is shown, and how to reply."""
    system = (Draft("system", (config.system,)),) if config.system else ()
    text = "\n\n".join([instruction, RULE, *shown_texts(config, sample), *texts, ending])
    return (*system, Draft("user", (*shown_media(config, sample), text)))
