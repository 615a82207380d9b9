"""A submission is checked against the gold file: one answer and one perplexity per reply, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from unicodedata import normalize

from multimodal_eval.contests.dialogue.dialogues import (
    AUDIO,
    IMAGE,
    IMAGE_AUDIO,
    Dialogue,
    DialogueQuestions,
    Question,
    Reply,
    Surprise,
)
from multimodal_eval.contests.dialogue.files import GoldDialogue, read_answers, read_surprises
from multimodal_eval.contests.dialogue.sources import Source
from multimodal_eval.core.conversation import Part
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.evaluation.metrics.hidden_metric import HiddenRule

SHOWN_IDS = 10
MEDIA = {IMAGE: {"image"}, AUDIO: {"audio"}, IMAGE_AUDIO: {"image", "audio"}}


def read_submission(
    gold: Mapping[str, GoldDialogue], output: Source, perplexities: Source, problems: Problems
) -> list[Dialogue]:
    """The dialogues with the answers and perplexities of one model, in the order of the gold file.

    Problems are noted, and dialogues with problems are left out.
    """
    order = list(gold)
    answers, surprises = read_answers(output, problems, order), read_surprises(perplexities, problems, order)
    _note_unmatched(gold, answers, output, "MISSING_REPLY", "answers", problems)
    _note_unmatched(gold, surprises, perplexities, "MISSING_PERPLEXITY", "perplexities", problems)
    _note_lengths(gold, answers, output, "answers", problems)
    _note_lengths(gold, surprises, perplexities, "perplexities", problems)
    complete = [name for name in gold if name in answers and name in surprises]
    return [
        Dialogue(name, gold[name].type, _replies(gold[name], answers[name], surprises[name]))
        for name in complete
        if len(gold[name].replies) == len(answers[name]) == len(surprises[name])
    ]


def _replies(gold: GoldDialogue, answers: Sequence[str], surprises: Sequence[Surprise]) -> tuple[Reply, ...]:
    return tuple(Reply(*parts) for parts in zip(answers, gold.replies, surprises, gold.languages, strict=True))


def _note_unmatched(
    gold: Mapping[str, GoldDialogue],
    submitted: Mapping[str, object],
    file: Source,
    code: str,
    what: str,
    problems: Problems,
) -> None:
    ids = [problem.id for problem in problems.kept if problem.file == str(file)]
    if None in ids or problems.is_full:  # the whole file could not be read
        return
    refused = {normalize("NFC", name) for name in ids if name is not None}
    missing = [name for name in gold if name not in submitted and name not in refused]
    extra = [name for name in submitted if name not in gold]
    if missing:
        message = f"{len(missing):,} of {len(gold):,} dialogues have no {what} (first: {_listed(missing)})."
        problems.add(code, message, file=str(file))
    if extra:
        message = f"{len(extra):,} dialogues are not in the gold file (first: {_listed(extra)})."
        problems.add("UNMATCHED", message, file=str(file))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:SHOWN_IDS]))


def _note_lengths(
    gold: Mapping[str, GoldDialogue],
    submitted: Mapping[str, Sequence[object]],
    file: Source,
    what: str,
    problems: Problems,
) -> None:
    for name, values in submitted.items():
        if name in gold and len(values) != len(gold[name].replies):
            message = f"{len(values)} {what} for {len(gold[name].replies)} replies."
            problems.add("LENGTH", message, file=str(file), id=name)


def note_missing(samples: Sequence[Sample], rule: HiddenRule, file: str | None, problems: Problems) -> None:
    """Note replies without a field that the rule of the hidden metric needs."""
    other_rules = {"perplexity": "choice", "metadata.candidates": "confidence"}
    for sample in samples:
        missing = next((need for need in rule.needs if not has(sample, need)), None)
        if missing is None:
            continue
        field, other = missing.removeprefix("metadata."), other_rules.get(missing)
        message = f"reply {sample.metadata['reply']} has no {field}, which the rule {rule.name!r} needs."
        hint = f"For the other kind of file: --rule {other}." if other and rule.ours else None
        problems.add("MISSING_PERPLEXITY", message, file=file, id=sample.group, hint=hint)


def note_unscored(dialogue: str, reply: object, rule: str, reason: str, file: str | None, problems: Problems) -> None:
    """Note a reply on which the rule of the hidden metric fails.

    Without a value it would be left out of its dialogue's mean, which could raise the score.
    """
    message = f"reply {reply}: the rule {rule!r} does not return a number from 0 to 1: {reason}"
    problems.add("RULE", message, file=file, id=dialogue)


def dialogue_questions(
    questions: Mapping[str, Sequence[tuple[Part, ...]]],
    gold: Mapping[str, GoldDialogue],
    file: Path,
    problems: Problems,
) -> DialogueQuestions:
    """One question per reply; a number of turns that differs from the number of replies is noted."""
    _note_lengths(gold, questions, file, "turns", problems)
    missing = [name for name in gold if name not in questions]
    if missing and questions:  # without questions, the file could not be read
        message = f"{len(missing):,} dialogues of the gold file have no questions (first: {_listed(missing)})."
        problems.add("UNMATCHED", message, file=str(file))
    return DialogueQuestions({name: tuple(map(_question, turns)) for name, turns in questions.items()})


def _question(parts: tuple[Part, ...]) -> Question:
    texts = [part.content for part in parts if part.type == "text"]
    image = next((part.content for part in parts if part.type == "image"), None)
    audio = next((part.content for part in parts if part.type == "audio"), None)
    return Question("\n".join(texts) or None, image, audio)


def mismatched_media(
    questions: Mapping[str, Sequence[tuple[Part, ...]]], gold: Mapping[str, GoldDialogue]
) -> list[str]:
    """Dialogues whose parts do not match their type."""
    return [
        name
        for name, dialogue in gold.items()
        if name in questions
        and {part.type for turn in questions[name] for part in turn} - {"text"} != MEDIA.get(dialogue.type, set())
    ]
