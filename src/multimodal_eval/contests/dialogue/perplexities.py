"""The perplexity of every answer of a dialogue: the content of the contest's `ppl_output.json`.

    PPL = exp( -1/t * sum_i ln p(x_i | the turns before the answer, x_<i) )

over the t tokens of the answer. Reply k is read after the user's turns 1 to k, with the answers 1 to k-1 between them.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from multimodal_eval.core.conversation import Part, PartType, Turn
from multimodal_eval.core.errors import InputError, MediaError
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.evaluation.metrics.perplexity import perplexity
from multimodal_eval.media.audio import load_audio
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.models.language.conversations import ConversationLM
from multimodal_eval.text.languages import fits

__all__ = ["perplexities"]

Questions = Mapping[str, Sequence[tuple[Part, ...]]]
Answers = Mapping[str, Sequence[str]]

REPLIES_PER_BATCH = 64
MEDIA_PER_BATCH = 8  # opened images and audio files in memory, unless one dialogue has more
_OPEN: dict[PartType, Callable[..., Any]] = {"image": load_image_any, "audio": load_audio}
_PLURAL = {"image": "images", "audio": "audio files", "text": "texts"}


def perplexities(
    questions: Questions,
    answers: Answers,
    model: ConversationLM,
    *,
    policy: MediaPolicy | None = None,
    any_language: bool = False,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> dict[str, list[float]]:
    """One perplexity per answer, in the order of `answers`.

    `questions` are the user's turns of each dialogue; images and audio in them are sources that `load_image_any` and
    `load_audio` open under `policy`. Parts that the model does not read are left out, and `tell` (by default a warning)
    receives a note with their number. All problems are raised before the model reads anything: dialogues and replies
    that do not match, blank answers, media that cannot be opened, and, unless `any_language`, answers in a language
    that the model does not support.
    """
    tell = tell or (lambda note: warnings.warn(note, stacklevel=3))
    problems = Problems()
    _check_pairs(questions, answers, problems)
    problems.raise_if_any()
    _check_answers(answers, model, problems, any_language=any_language)
    _check_media(questions, answers, model, policy, problems)
    problems.raise_if_any()
    if note := _unread(questions, answers, model):
        tell(note)
    results: dict[str, list[float]] = {}
    total = sum(map(len, answers.values()))
    for batch in _batches(questions, answers, model):
        results |= _read({name: questions[name] for name in batch}, answers, model, policy)
        if progress:
            progress("replies", sum(map(len, results.values())), total)
    return results


def _check_pairs(questions: Questions, answers: Answers, problems: Problems) -> None:
    for name in answers:
        if name not in questions:
            problems.add("UNMATCHED", "the dialogue has answers but no questions.", id=name)
        elif len(answers[name]) != len(questions[name]):
            message = f"there are {len(questions[name])} turns of the user but {len(answers[name])} answers."
            problems.add("LENGTH", message, id=name, hint="Every turn of the user needs one answer.")
    for name in questions:
        if name not in answers:
            problems.add("UNMATCHED", "the dialogue has questions but no answers.", id=name)


def _check_answers(answers: Answers, model: ConversationLM, problems: Problems, *, any_language: bool) -> None:
    unfit: list[tuple[str, int]] = []
    for name, number, answer in _replies(answers):
        if not answer.strip():
            problems.add("BLANK", f"answer {number} is blank and has no perplexity.", id=name)
        elif not any_language and not fits(answer, model.languages):
            unfit.append((name, number))
    if unfit:
        name, number = unfit[0]
        problems.add(
            "LANGUAGE",
            f"{len(unfit)} of {sum(map(len, answers.values()))} answers are in a language that {model.label} does not "
            f"support (it supports {', '.join(sorted(model.languages))}). The first is answer {number} of this "
            "dialogue. Their perplexities would be meaningless.",
            id=name,
            hint="Use another model (--model), or compute it anyway (--any-language, any_language=True).",
        )


def _replies(answers: Answers) -> Iterator[tuple[str, int, str]]:
    for name, replies in answers.items():
        for number, answer in enumerate(replies, 1):
            yield name, number, answer


def _check_media(
    questions: Questions, answers: Answers, model: ConversationLM, policy: MediaPolicy | None, problems: Problems
) -> None:
    for name in answers:
        for number, parts in enumerate(questions[name], 1):
            for part in parts:
                if part.type != "text" and part.type in model.reads:
                    try:
                        _OPEN[part.type](part.content, policy=policy)
                    except MediaError as error:
                        problems.add(part.type.upper(), f"turn {number}: {error}", id=name)


def _unread(questions: Questions, answers: Answers, model: ConversationLM) -> str | None:
    """A note on how many parts of each kind the model does not read."""
    counts: Counter[PartType] = Counter()
    dialogues: set[str] = set()
    for name in answers:
        for part in (part for parts in questions[name] for part in parts if part.type not in model.reads):
            counts[part.type] += 1
            dialogues.add(name)
    if not counts:
        return None
    what = " and ".join(f"{count} {_PLURAL[kind]}" for kind, count in sorted(counts.items()))
    return f"{what} in {len(dialogues)} of {len(answers)} dialogues were left out: {model.label} does not read them"


def _batches(questions: Questions, answers: Answers, model: ConversationLM) -> Iterator[list[str]]:
    """Whole dialogues, so that their media are opened once, and few at a time, so that memory stays bounded."""
    batch: list[str] = []
    replies = media = 0
    for name in answers:
        count = sum(part.type != "text" and part.type in model.reads for parts in questions[name] for part in parts)
        if batch and (replies + len(answers[name]) > REPLIES_PER_BATCH or media + count > MEDIA_PER_BATCH):
            yield batch
            batch, replies, media = [], 0, 0
        batch.append(name)
        replies, media = replies + len(answers[name]), media + count
    if batch:
        yield batch


def _read(
    questions: Questions, answers: Answers, model: ConversationLM, policy: MediaPolicy | None
) -> dict[str, list[float]]:
    conversations: list[list[Turn]] = []
    for name, turns in questions.items():
        conversation: list[Turn] = []
        for parts, answer in zip(turns, answers[name], strict=True):
            conversation.append(Turn("user", _opened(parts, model, policy)))
            conversations.append(list(conversation))
            conversation.append(Turn("assistant", (Part("text", answer),)))
    texts = [answer for name in questions for answer in answers[name]]
    rows = iter(model.log_probabilities(conversations, texts))
    return {
        name: [_perplexity(next(rows), name, number) for number in range(1, len(answers[name]) + 1)]
        for name in questions
    }


def _opened(parts: Sequence[Part], model: ConversationLM, policy: MediaPolicy | None) -> tuple[Part, ...]:
    read = (part for part in parts if part.type in model.reads)
    return tuple(
        part if part.type == "text" else Part(part.type, _OPEN[part.type](part.content, policy=policy)) for part in read
    )


def _perplexity(row: Any, name: str, number: int) -> float:
    try:
        return perplexity(row.tolist())
    except InputError as refusal:
        raise InputError(
            msgspec.structs.replace(problem, id=name, message=f"answer {number}: {problem.message}", hint=None)
            for problem in refusal.problems
        ) from None
