"""The parts of a prompt that the forms share: what the judge sees of a sample."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.protocol import MediaKind
from multimodal_eval.generate.template import letters
from multimodal_eval.generate.turns import Draft, Reference, media_of
from multimodal_eval.judges.fence import RULE, fenced
from multimodal_eval.judges.template import Shown, template_of

__all__ = ["drafts_of", "quotable", "shown_media", "shown_texts"]


def shown_texts(config: JudgeConfig, sample: Sample) -> Iterator[str]:
    """The question, the choices and the references of a sample, each in its fence."""
    for text in (_question(config, sample), _choices(config, sample)):
        if text is not None:
            yield text
    yield from _references(config, sample)


def _question(config: JudgeConfig, sample: Sample) -> str | None:
    question = sample.question or sample.prompt
    return fenced("question", question) if question and "question" in config.show else None


def _choices(config: JudgeConfig, sample: Sample) -> str | None:
    choices = letters(sample) if "choices" in config.show else {}
    return fenced("choices", "\n".join(f"{letter}. {text}" for letter, text in choices.items())) if choices else None


def _references(config: JudgeConfig, sample: Sample) -> list[str]:
    texts = sample.reference_texts if "references" in config.show else ()
    return [fenced(f"reference-{number}", text) for number, text in enumerate(texts, 1)]


def shown_media(config: JudgeConfig, sample: Sample) -> list[Reference]:
    """The media of a sample."""
    return [reference for references in _media(config, sample).values() for reference in references]


def _media(config: JudgeConfig, sample: Sample) -> dict[MediaKind, list[Reference]]:
    return {} if "media" not in config.show or config.media_as == "none" else media_of(sample)


def quotable(config: JudgeConfig, sample: Sample) -> list[str]:
    """The texts of a sample that a judge may quote in its reply."""
    other = sample.metadata.get(config.baseline)
    others = other if isinstance(other, list) else [other]
    texts = (sample.generated_answer, sample.question, sample.prompt, *letters(sample).values(), *others)
    return [text for text in (*texts, *sample.reference_texts) if isinstance(text, str)]


def drafts_of(
    config: JudgeConfig, sample: Sample, instruction: str, texts: list[str], ending: str
) -> tuple[Draft, ...]:
    """The turns of a question: the instruction, what is shown, and how to reply.

    `texts` are the judged answers in their fences, in the order in which they are shown.
    """
    system = (Draft("system", (config.system,)),) if config.system else ()
    if config.template is None:
        text = "\n\n".join([instruction, RULE, *shown_texts(config, sample), *texts, ending])
        return (*system, Draft("user", (*shown_media(config, sample), text)))
    shown = Shown(
        question=_question(config, sample),
        choices=_choices(config, sample),
        references=_references(config, sample),
        answers=texts,
        media=_media(config, sample),
    )
    named = {"instruction": instruction, "rule": RULE, "reply": ending}
    return (*system, Draft("user", tuple(template_of(config).parts(config, shown, named))))
