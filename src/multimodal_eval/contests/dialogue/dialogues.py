"""Dialogues, and the contest's files that they are read from.

A dialogue has a type, and replies, each with the answer, the variants of the correct answer, and the perplexity.
The type says which media a dialogue contains, and determines its weight.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from multimodal_eval.contests.archives import member_content, read_archive
from multimodal_eval.core.conversation import PART_TYPES, Part
from multimodal_eval.core.errors import did_you_mean, shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.field_checks import (
    RefusedError,
    checked_media,
    checked_name,
    checked_perplexity,
    checked_references,
    checked_text,
)
from multimodal_eval.data.readers.json_file import read_json_value
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.text.languages import Language, language_of_texts

TEXT, IMAGE, AUDIO, IMAGE_AUDIO = "Text2Text", "Image2Text", "Audio2Text", "Image-Audio2Text"

# The contest's weight of each type. Custom weights must be >= 0 and sum to 1.
WEIGHTS: dict[str, float] = {TEXT: 0.1, IMAGE: 0.2, AUDIO: 0.3, IMAGE_AUDIO: 0.4}

_MODALITIES = {
    ("text", "text"): TEXT,
    ("image", "text"): IMAGE,
    ("audio", "text"): AUDIO,
    ("image", "audio", "text"): IMAGE_AUDIO,
    ("audio", "image", "text"): IMAGE_AUDIO,
}


def type_of(spelling: str) -> str | None:
    """The type for any of its spellings (Text2Text, Text+Text, text-to-text …); None if it is not one of the four."""
    words = re.split(r"[^a-z]+to[^a-z]+|[^a-z]+", spelling.strip().lower())
    return _MODALITIES.get(tuple(words))


@dataclass(frozen=True, slots=True)
class Surprise:
    """The model's perplexity of its answer, or of several candidates, one of which is correct."""

    perplexity: float | None = None
    candidates: tuple[float, ...] | None = None
    correct: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model, with the variants of the correct answer."""

    answer: str
    variants: tuple[str, ...]
    surprise: Surprise = Surprise()
    language: Language | None = None  # of the variants, if already known


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The replies of a dialogue, in their order."""

    id: str
    type: str
    replies: tuple[Reply, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the model: the texts of a turn, and the paths of its first image and audio file."""

    text: str | None = None
    image: str | None = None
    audio: str | None = None


@dataclass(frozen=True, slots=True)
class DialogueQuestions:
    """The questions of each dialogue; empty if there is no file of questions."""

    questions: dict[str, tuple[Question, ...]] = field(default_factory=dict)

    def of(self, dialogue: str, index: int) -> Question:
        """The question of one reply."""
        questions = self.questions.get(dialogue, ())
        return questions[index] if index < len(questions) else Question()


TYPE = "dialogue_type"  # the metadata field that defines the strata of a run


def samples_of(dialogue: Dialogue, questions: DialogueQuestions | None = None) -> list[Sample]:
    """One sample per reply; the dialogue is their group."""
    return [
        _sample(dialogue, index, reply, (questions or DialogueQuestions()).of(dialogue.id, index))
        for index, reply in enumerate(dialogue.replies)
    ]


def _sample(dialogue: Dialogue, index: int, reply: Reply, question: Question) -> Sample:
    surprise = reply.surprise
    language = reply.language or language_of_texts(reply.variants)
    metadata = {TYPE: dialogue.type, "reply": index + 1, "language": language}
    if surprise.candidates is not None:
        metadata |= {"candidates": list(surprise.candidates), "correct": surprise.correct}
    return Sample(
        id=f"{dialogue.id}/{index + 1}",
        question=question.text,
        image=question.image,
        audio=question.audio,
        references=list(reply.variants),
        generated_answer=reply.answer,
        perplexity=surprise.perplexity,
        group=dialogue.id,
        metadata=metadata,
    )


# Where the files of a submission come from: two files, a folder, or a zip with both.

OUTPUT, PERPLEXITIES = "output.json", "ppl_output.json"
MAX_BYTES = 1 << 28  # of answers or perplexities
HOW = f"Make it with: zip submission.zip {OUTPUT} {PERPLEXITIES}"


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a zip, in memory."""

    archive: Path
    name: str
    content: bytes

    def __str__(self) -> str:
        return f"{self.archive}/{self.name}"


Source = Path | Member


def is_zip(path: Path) -> bool:
    """Whether a submission is a zip, by its name."""
    return path.suffix.lower() == ".zip"


def holds_both(path: Path) -> bool:
    """Whether a path can hold both files: a folder or a zip."""
    return is_zip(path) or path.is_dir()


def both_files(path: Path, problems: Problems) -> tuple[Source, Source] | None:
    """The answers and the perplexities in a folder or a zip; None if the zip has problems, which are noted."""
    if not is_zip(path):
        return path / OUTPUT, path / PERPLEXITIES
    if not path.is_file():
        problems.add("NOT_FOUND", "no such file", file=str(path))
        return None
    members = read_archive(
        path, lambda archive: [_member(archive, name, path, problems) for name in (OUTPUT, PERPLEXITIES)], problems, HOW
    )
    answers, perplexities = members or (None, None)
    return None if answers is None or perplexities is None else (answers, perplexities)


def _member(archive: zipfile.ZipFile, name: str, path: Path, problems: Problems) -> Member | None:
    """The only file with that name, in the archive itself or in a folder of it."""
    files = [member for member in archive.infolist() if not member.is_dir() and not _is_hidden(member.filename)]
    matching = [member for member in files if member.filename.rpartition("/")[2] == name]
    if len(matching) != 1:
        count = f"{len(matching)} files" if matching else "no file"
        shown = ", ".join(shorten(member.filename) for member in (matching or files)[:5]) or "nothing"
        message = f"the archive must contain one file {name!r}. Got {count} with that name: {shown}."
        problems.add("MEMBER", message, file=str(path), hint=f"{HOW}.")
        return None
    content = member_content(archive, matching[0], str(path), problems, most=MAX_BYTES, what="a submission", how=HOW)
    return None if content is None else Member(path, matching[0].filename, content)


def _is_hidden(name: str) -> bool:
    """Files that file managers add, such as __MACOSX/._output.json."""
    return any(part.startswith((".", "__")) for part in name.split("/"))


# The contest's files: questions, answers, perplexities, and gold. All of their problems are noted.
#
# questions        {dialogue: [[{"type": "text" | "image" | "audio", "content": …}, …], …]}      one turn per reply
# output.json      {dialogue: [answer, …]}
# ppl_output.json  {dialogue: [perplexity or {"candidates": [perplexity, …], "correct": k}, …]}   k counts from 0
#                  {"error": reason} instead of an answer or a perplexity: the model failed, and the file is refused
# gold             {dialogue: {"type": …, "replies": [[variant, …], …]}}
#
# Each file may also be a list of dialogues: [{"id": dialogue, "answers": [answer, …]}, …], or, without ids, in the
# order of the gold file: [[answer, …], …].

Value = TypeVar("Value")
SURPRISE_KEYS = ("perplexity", "candidates", "correct")
# Keys of the items of a list: those of the dialogue's name, and those of its content in each file.
ID_KEYS = ("id", "dialogue_id", "dialogue")
ANSWER_KEYS = ("answers", "replies", "output")
PERPLEXITY_KEYS = ("perplexities", "ppl", "replies")
QUESTION_KEYS = ("turns", "questions")

Items = Iterable[tuple[str, Any]]  # dialogues with their content, as the file names them
Order = Sequence[str] | None  # the dialogues of the gold file


@dataclass(frozen=True, slots=True)
class GoldDialogue:
    """The type of a dialogue, and the variants of the correct answer to each reply."""

    type: str
    replies: tuple[tuple[str, ...], ...]
    languages: tuple[Language, ...]  # of each reply's variants


def read_gold(path: Path, problems: Problems) -> dict[str, GoldDialogue]:
    """Read the gold file; refused dialogues are noted and left out."""
    return _read(path, problems, checked_gold)


def read_answers(source: Source, problems: Problems, order: Order = None) -> dict[str, list[str]]:
    """Read the answers of one model. `order`: the names of the dialogues of a list without ids."""
    return _read(source, problems, lambda value: _each(value, checked_answer, "the answers"), ANSWER_KEYS, order)


def read_surprises(source: Source, problems: Problems, order: Order = None) -> dict[str, list[Surprise]]:
    """Read one model's perplexities of its answers, or of candidates."""
    return _read(
        source, problems, lambda value: _each(value, checked_surprise, "the perplexities"), PERPLEXITY_KEYS, order
    )


def read_questions(path: Path, problems: Problems, order: Order = None) -> dict[str, list[tuple[Part, ...]]]:
    """Read the questions: a list of turns per dialogue, each a tuple of parts."""
    return _read(path, problems, lambda value: _each(value, _checked_turn, "a dialogue"), QUESTION_KEYS, order)


def _read(
    source: Source,
    problems: Problems,
    check: Callable[[Any], Value],
    keys: Sequence[str] = (),
    order: Order = None,
) -> dict[str, Value]:
    file = str(source)
    if isinstance(source, Path) and not source.is_file():
        problems.add(
            "NOT_FOUND", "this is a folder, but a file is needed" if source.is_dir() else "no such file", file=file
        )
        return {}
    before = problems.total
    content = read_json_value(source.content if isinstance(source, Member) else source, file, problems)
    items: Items = content.items() if isinstance(content, dict) else ()
    if isinstance(content, list) and content:
        try:
            items = _items_of_list(content, keys, order)
        except RefusedError as refused:
            problems.add(refused.code, str(refused), file=file, hint=refused.hint)
            return {}
    dialogues: dict[str, Value] = {}
    for name, value in items:
        try:
            key = checked_name("dialogue", name)
            if key in dialogues:
                twice = "" if isinstance(content, list) else ", in different Unicode forms of its name"
                raise RefusedError("DUPLICATE", f"the dialogue occurs twice{twice}")
            dialogues[key] = check(value)
        except RefusedError as refused:
            for refusal in refusals(refused):
                problems.add(refusal.code, str(refusal), file=file, id=name, hint=refusal.hint)
    if content is not None and not content and problems.total == before:
        problems.add("EMPTY", "the file has no dialogues", file=file)
    return dialogues


def has_names(source: Path) -> bool:
    """Whether a valid file names its dialogues; otherwise they are in the order of the gold file."""
    content = read_json_value(source, str(source), Problems())
    return not isinstance(content, list) or any(_name(item) is not None for item in content)


def _items_of_list(content: list[Any], keys: Sequence[str], order: Order) -> Items:
    """The dialogues of a list: by the ids of its items, or, if none has an id, in the order of the gold file."""
    names = [_name(item) for item in content]
    with_id = [name is not None for name in names]
    if any(with_id) and not all(with_id):
        number = with_id.index(False) + 1
        raise RefusedError("MISSING_ID", f"item {number} of the list has no `id`, but others have one.")
    if not any(with_id):
        if order is not None and len(order) != len(content):
            message = f"the list has {len(content):,} items, but the gold file has {len(order):,} dialogues."
            raise RefusedError("LENGTH", message, "Without ids, item i belongs to dialogue i.")
        names = list(order) if order is not None else [str(number) for number in range(1, len(content) + 1)]
    return [(str(name), _payload(item, keys)) for name, item in zip(names, content, strict=True)]


def _name(item: Any) -> Any:
    return next((item[key] for key in ID_KEYS if key in item), None) if isinstance(item, dict) else None


def _payload(item: Any, keys: Sequence[str]) -> Any:
    """The content of an item, without its id; the item itself if it has none of the keys."""
    return next((item[key] for key in keys if key in item), item) if isinstance(item, dict) else item


class _RefusedPartsError(RefusedError):
    """Several refusals in one dialogue."""

    def __init__(self, parts: Sequence[RefusedError]) -> None:
        super().__init__(parts[0].code, "; ".join(map(str, parts)))
        self.parts = parts


def refusals(refused: RefusedError) -> Sequence[RefusedError]:
    """The single refusals that an error consists of."""
    return refused.parts if isinstance(refused, _RefusedPartsError) else [refused]


def all_checked(checks: Iterable[Callable[[], Value]]) -> list[Value]:
    """The result of each check; the refusals of all of them are raised together."""
    values, refused = list[Value](), list[RefusedError]()
    for check in checks:
        try:
            values.append(check())
        except RefusedError as error:
            refused += refusals(error)
    if refused:
        raise _RefusedPartsError(refused)
    return values


def _each(value: Any, check: Callable[[str, Any], Value], what: str) -> list[Value]:
    """Check each item of a list."""
    if not isinstance(value, list | tuple):
        raise RefusedError("TYPE", f"{what} must be a list with one item per reply. Got {shorten(value)} instead.")
    if not value:
        raise RefusedError("LENGTH", f"{what} must be a list with one item per reply. Got an empty list instead.")
    return all_checked(partial(check, f"reply {number}", item) for number, item in enumerate(value, 1))


def checked_gold(value: Any) -> GoldDialogue:
    """{"type": …, "replies": [[variant, …], …]}."""
    if not isinstance(value, Mapping) or not value.keys() >= {"type", "replies"}:
        raise RefusedError("TYPE", f"must be an object with `type` and `replies`. Got {shorten(value)} instead.")
    checks: list[Callable[[], Any]] = [
        partial(_each, value["replies"], checked_variants, "`replies`"),
        partial(checked_type, value["type"]),
    ]
    replies, kind = all_checked(checks)
    return GoldDialogue(kind, tuple(map(tuple, replies)), tuple(map(language_of_texts, replies)))


def checked_variants(place: str, value: Any) -> list[str]:
    """The variants of the correct answer: one or more strings, none of them blank."""
    try:
        return checked_references(place, value)
    except RefusedError as refused:  # its hint is for samples, which may have no references
        raise RefusedError(refused.code, str(refused), "A reply needs at least one correct answer.") from None


def checked_type(value: Any) -> str:
    """One of the four types, in its canonical spelling."""
    dialogue_type = type_of(value) if isinstance(value, str) else None
    if dialogue_type is None:
        raise RefusedError(
            "UNKNOWN_TYPE", f"no dialogue type is named {shorten(value)}.{did_you_mean(value, list(WEIGHTS))}"
        )
    return dialogue_type


def checked_answer(place: str, value: Any) -> str:
    """A string, which may be blank."""
    if value is None:
        raise RefusedError("MISSING_REPLY", f"{place} has no answer: null")
    _refuse_failure("MISSING_REPLY", f"{place} has no answer", value)
    return checked_text(place, value)


def _refuse_failure(code: str, message: str, value: Any) -> None:
    """Refuse {"error": reason}, which `mmeval dialogue generate` writes if the model fails."""
    if isinstance(value, Mapping) and [*value] == ["error"]:
        raise RefusedError(code, f"{message}, because the model failed: {shorten(value['error'], 300)}")


def checked_surprise(place: str, value: Any) -> Surprise:
    """A perplexity, or the perplexities of candidates with the index of the correct one; or both, in an object."""
    if value is None:
        raise RefusedError("MISSING_PERPLEXITY", f"{place} has no perplexity: null")
    if not isinstance(value, Mapping):
        return Surprise(checked_perplexity(place, value))
    _refuse_failure("MISSING_PERPLEXITY", f"{place} has no perplexity", value)
    unknown = [key for key in value if key not in SURPRISE_KEYS]
    if unknown:
        raise RefusedError("TYPE", f"{place} has a key {unknown[0]!r}.{did_you_mean(unknown[0], SURPRISE_KEYS)}")
    perplexity = value.get("perplexity")
    if perplexity is not None:
        perplexity = checked_perplexity(f"{place}, perplexity", perplexity)
    if "candidates" not in value and "correct" not in value and perplexity is not None:
        return Surprise(perplexity)
    candidates, correct = value.get("candidates"), value.get("correct")
    if not isinstance(candidates, list | tuple) or len(candidates) < 2:
        message = (
            f"{place}: `candidates` must be a list of two or more perplexities. Got {shorten(candidates)} instead."
        )
        raise RefusedError("TYPE", message)
    if type(correct) is not int or correct not in range(len(candidates)):
        message = (
            f"{place}: `correct` must be a number from 0 to {len(candidates) - 1}. Got {shorten(correct)} instead."
        )
        raise RefusedError("RANGE", message)
    checked = all_checked(
        partial(checked_perplexity, f"{place}, candidate {number}", item) for number, item in enumerate(candidates)
    )
    return Surprise(perplexity, tuple(checked), correct)


def _checked_turn(place: str, value: Any) -> tuple[Part, ...]:
    if not isinstance(value, list) or not value:
        raise RefusedError("TYPE", f"{place}: a turn must be a list of parts. Got {shorten(value)} instead.")
    return tuple(all_checked(partial(_checked_part, place, part) for part in value))


def _checked_part(place: str, value: Any) -> Part:
    if not isinstance(value, Mapping) or not value.keys() >= {"type", "content"}:
        raise RefusedError("TYPE", f"{place}: a part must have `type` and `content`. Got {shorten(value)} instead.")
    kind, content = value["type"], value["content"]
    if kind not in PART_TYPES:
        raise RefusedError("TYPE", f"{place}: no part type is named {shorten(kind)}.{did_you_mean(kind, PART_TYPES)}")
    field = f"{place}, {kind}"
    return Part(kind, checked_text(field, content) if kind == "text" else checked_media(field, content))
