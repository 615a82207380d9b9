"""A submission against the gold: every reply has an answer and a perplexity, and nothing is left over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from pathlib import Path
from unicodedata import normalize

from multimodal_eval.contests.dialogue.dialogues import Asked, Dialogue, Question, Reply, Surprise
from multimodal_eval.contests.dialogue.files import GoldDialogue, read_answers, read_surprises
from multimodal_eval.contests.dialogue.types import AUDIO, IMAGE, IMAGE_AUDIO, WEIGHTS, type_of
from multimodal_eval.core.conversation import Part
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.evaluation.metrics.hidden_metric import HiddenMetric
from multimodal_eval.evaluation.tasks_config import check_weights

SHOWN_IDS = 10
MEDIA = {IMAGE: {"image"}, AUDIO: {"audio"}, IMAGE_AUDIO: {"image", "audio"}}


def read_submission(
    gold: Mapping[str, GoldDialogue], output: Path, perplexities: Path, problems: Problems
) -> list[Dialogue]:
    """The gold's dialogues with the answers and perplexities of one model, in the gold's order.

    What is wrong is noted; the dialogues are whole only where nothing was.
    """
    answers, surprises = read_answers(output, problems), read_surprises(perplexities, problems)
    _note_unmatched(gold, answers, output, "MISSING_REPLY", "answers", problems)
    _note_unmatched(gold, surprises, perplexities, "MISSING_PERPLEXITY", "perplexities", problems)
    for own, file, what in ((answers, output, "answers"), (surprises, perplexities, "perplexities")):
        _note_lengths(gold, own, file, what, problems)
    whole = [name for name in gold if name in answers and name in surprises]
    return [
        Dialogue(name, gold[name].type, _replies(gold[name], answers[name], surprises[name]))
        for name in whole
        if len(gold[name].replies) == len(answers[name]) == len(surprises[name])
    ]


def _replies(gold: GoldDialogue, answers: Sequence[str], surprises: Sequence[Surprise]) -> tuple[Reply, ...]:
    return tuple(Reply(*parts) for parts in zip(answers, gold.replies, surprises, gold.languages, strict=True))


def _note_unmatched(
    gold: Mapping[str, GoldDialogue],
    own: Mapping[str, object],
    file: Path,
    code: str,
    what: str,
    problems: Problems,
) -> None:
    told = [problem.id for problem in problems.kept if problem.file == str(file)]
    if None in told or problems.is_full:  # of a file that cannot be read, nothing is missing besides
        return
    refused = {normalize("NFC", name) for name in told if name is not None}
    missing = [name for name in gold if name not in own and name not in refused]
    extra = [name for name in own if name not in gold]
    if missing:
        message = f"{len(missing):,} of {len(gold):,} dialogues have no {what} (first: {_listed(missing)})."
        problems.add(code, message, file=str(file))
    if extra:
        message = f"{len(extra):,} dialogues are not in the gold (first: {_listed(extra)})."
        problems.add("UNMATCHED", message, file=str(file))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:SHOWN_IDS]))


def _note_lengths(
    gold: Mapping[str, GoldDialogue], own: Mapping[str, Sequence[object]], file: Path, what: str, problems: Problems
) -> None:
    for name, values in own.items():
        if name in gold and len(values) != len(gold[name].replies):
            message = f"{len(values)} {what} for {len(gold[name].replies)} replies."
            problems.add("LENGTH", message, file=str(file), id=name)


def hidden_values(
    samples: Sequence[Sample], metric: HiddenMetric, file: str | None, problems: Problems
) -> list[float | None]:
    """The hidden metric of each reply; those that lack what its rule needs, or that it fails on, are noted.

    A reply without a value would be left out of its dialogue's mean, and a submission could gain by it.
    """
    others = {"perplexity": "choice", "metadata.candidates": "confidence"}
    rule = metric.rule
    scores = score_batch(metric, metric.open(None), samples, ())
    for sample, score in zip(samples, scores, strict=True):
        if score.value is not None:
            continue
        missing = next((need for need in rule.needs if not has(sample, need)), None)
        place, code, hint = f"reply {sample.metadata['reply']}", "RULE", None
        if missing is None:
            message = f"{place}: the rule {rule.name!r} gives no number from 0 to 1: {score.reason}"
        else:
            code, other = "MISSING_PERPLEXITY", others.get(missing)
            message = f"{place} has no {missing.removeprefix('metadata.')}, which the rule {rule.name!r} needs."
            hint = f"For the other kind of file: --rule {other}." if other and rule.ours else None
        problems.add(code, message, file=file, id=sample.group, hint=hint)
    return [score.value for score in scores]


def checked_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Weights by type: the contest's, or one's own; a type that they do not name weighs nothing."""
    if weights is None:
        return dict(WEIGHTS)
    known: dict[str, float] = {}
    for name, weight in weights.items():
        found = type_of(name)
        if found is None or found in known:
            fault = "occurs twice among the types" if found else "is no type of dialogue"
            raise ConfigError(f"WEIGHTS: {name!r} {fault}. Known: {', '.join(WEIGHTS)}")
        known[found] = weight
    check_weights(known, "the dialogue types")
    return {name: float(known.get(name, 0)) for name in WEIGHTS}


def present_weights(
    weights: Mapping[str, float], types: set[str], *, present_only: bool
) -> tuple[dict[str, float], list[str]]:
    """The weights to score with, and the types left out: those without a dialogue, where that is allowed.

    The weights of the others are then divided by their sum. Without leave, a type with a weight and no dialogue is an
    error: the score would be out of less than 1.
    """
    absent = [name for name, weight in weights.items() if weight > 0 and name not in types]
    if absent and not present_only:
        raise ConfigError(
            f"WEIGHTS: no dialogue has the type {', '.join(absent)}, and it has a weight. "
            "To score the others alone, with their weights scaled up to 1: --present-types-only"
        )
    kept = {name: weight for name, weight in weights.items() if name not in absent}
    total = fsum(kept.values())
    if total <= 0:
        raise ConfigError("WEIGHTS: none of the types that have dialogues has a weight")
    return ({name: weight / total for name, weight in kept.items()} if absent else kept), absent


def asked(
    questions: Mapping[str, Sequence[tuple[Part, ...]]],
    gold: Mapping[str, GoldDialogue],
    file: Path,
    problems: Problems,
) -> Asked:
    """What was asked, a question a reply; another number of turns than the gold has replies is noted."""
    _note_lengths(gold, questions, file, "turns", problems)
    missing = [name for name in gold if name not in questions]
    if missing and questions:  # of a file that cannot be read, nothing is missing besides
        message = f"{len(missing):,} dialogues of the gold have no questions (first: {_listed(missing)})."
        problems.add("UNMATCHED", message, file=str(file))
    return Asked({name: tuple(map(_question, turns)) for name, turns in questions.items()})


def _question(parts: tuple[Part, ...]) -> Question:
    texts = [part.content for part in parts if part.type == "text"]
    image = next((part.content for part in parts if part.type == "image"), None)
    audio = next((part.content for part in parts if part.type == "audio"), None)
    return Question("\n".join(texts) or None, image, audio)


def other_media(questions: Mapping[str, Sequence[tuple[Part, ...]]], gold: Mapping[str, GoldDialogue]) -> list[str]:
    """Dialogues whose parts are not those that their type names."""
    return [
        name
        for name, own in gold.items()
        if name in questions
        and {part.type for turn in questions[name] for part in turn} - {"text"} != MEDIA.get(own.type, set())
    ]
