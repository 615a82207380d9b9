"""Published sets of human judgments of captions, read from JSON, JSON Lines or CSV, in one of five forms.

    ratings   a caption with one score, or with one for each annotator
    pairs     two captions of an image and which of them people prefer; with the names of two systems: `systems`
    foils     a right caption and the same with a mistake
    tokens    a caption whose words are labelled as right or hallucinated

The form follows from the fields of the first record. `FIELDS` has the names under which they are published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import msgspec

from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.metric import is_number
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.formats import DELIMITERS, read_delimited
from multimodal_eval.data.readers.json_file import read_json_value, read_jsonl
from multimodal_eval.data.readers.problems import Columns, Problems

__all__ = ["FORMS", "SUFFIXES", "Choice", "Form", "JudgedSet", "form_of", "read_judged", "set_name", "sets_in"]

Form = Literal["ratings", "pairs", "foils", "tokens", "systems"]
FORMS: tuple[Form, ...] = ("ratings", "pairs", "foils", "tokens", "systems")
SUFFIXES = (".json", ".jsonl", *DELIMITERS)
FIELDS: Mapping[str, tuple[str, ...]] = {
    "image": ("image", "imgid", "img", "image_id", "image_path", "imgId", "cocoid"),
    "references": ("references", "refs", "ref", "reference", "ground_truth"),
    "caption": ("candidate", "caption", "cand", "mt", "generated_answer"),
    "human": ("human", "score", "rating", "human_score", "human_scores", "ratings", "scores"),
    "captions": ("captions",),
    "preferred": ("human_prefers", "label", "preferred", "winner"),
    "category": ("category", "domain", "cluster"),
    "right": ("baseline", "right", "correct"),
    "wrong": ("foil", "wrong"),
    "words": ("words", "grounding", "tokens"),
    "systems": ("systems",),
}
_NUMBERED = (("captions", "caption{}"), ("systems", "source{}"))  # "caption1" and "caption2" for a list of two
_TIES = frozenset({"tie", "equal", "both", "tie (bothbad)", "-1", "0.5"})
_CONTAINERS = ("annotations", "samples", "data", "records")
_REFERENCES = "captions_*"  # a file of COCO captions beside FOIL's annotations
_HUMAN = "human_{}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Two samples, by their numbers, of which people prefer the first."""

    better: int
    worse: int
    image: str
    category: str = ""
    systems: tuple[str, str] | None = None  # of the better and the worse
    is_tie: bool = False


@dataclass(slots=True)
class JudgedSet:
    """Captions to score, and what people said about them."""

    name: str
    form: Form
    samples: list[Sample] = field(default_factory=list)
    human: tuple[str, ...] = ()  # ratings: columns of the samples' metadata
    choices: list[Choice] = field(default_factory=list)  # pairs, foils, systems
    wrong_words: list[float] = field(default_factory=list)  # tokens: the share of each sample


def set_name(path: Path) -> str:
    """`nebula` for nebula.jsonl.gz."""
    return path.name.partition(".")[0]


def sets_in(folder: Path) -> list[Path]:
    """The files of a folder that may be judged sets."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and bare_suffix(path) in SUFFIXES and not path.match(_REFERENCES)
    )


def form_of(path: Path) -> Form | None:
    """The form of the first record; None if its fields are those of no form."""
    first = next(_records(path, Problems()), None)
    return None if first is None else _form(first[1])


def read_judged(path: Path) -> JudgedSet:
    """All judgments of a file; every record that cannot be used is a problem."""
    problems = Problems()
    records = list(_records(path, problems))
    form = _form(records[0][1]) if records else None
    problems.raise_if_any()
    if form is None:
        known = "; ".join(f"{name}: {', '.join(names)}" for name, names in FIELDS.items())
        has = ", ".join(map(repr, records[0][1])) if records else "no record"
        message = f"the first record has {has}, which are not those of a set of human judgments. The fields are {known}"
        raise InputError([Problem(code="FORMAT", message=message, file=str(path))])
    judged = JudgedSet(set_name(path), form)
    reader = _Reader(judged, str(path), problems)
    for line, record in _with_references(records, path, problems) if _is_foil_v1(records[0][1]) else records:
        reader.add(line, record)
    problems.raise_if_any()
    reader.finish()
    return judged


def _form(record: Mapping[str, Any]) -> Form | None:
    has = {name for name in FIELDS if _value(record, name) is not None}
    if ("right" in has and isinstance(_value(record, "wrong"), str)) or _is_foil_v1(record):
        return "foils"
    if {"captions", "preferred"} <= has:
        return "systems" if "systems" in has else "pairs"
    if {"caption", "words"} <= has:
        return "tokens"
    return "ratings" if {"caption", "human", "references"} <= has else None


def _is_foil_v1(record: Mapping[str, Any]) -> bool:
    """Whether it is an annotation of FOIL-COCO: one caption, which is a foil or not."""
    return isinstance(record.get("foil"), bool) and "foil_word" in record


def _value(record: Mapping[str, Any], name: str) -> Any:
    for key in FIELDS[name]:
        if record.get(key) is not None:
            return record[key]
    for numbered, key in _NUMBERED:
        if name == numbered and record.get(key.format(1)) is not None:
            return [record.get(key.format(number)) for number in (1, 2)]
    return None


# Records of a file, whatever is around them.


def _records(path: Path, problems: Problems) -> Iterator[tuple[int | None, Columns]]:
    suffix = bare_suffix(path)
    if suffix in DELIMITERS:
        yield from read_delimited(path, problems, DELIMITERS[suffix])
    elif suffix == ".jsonl":
        yield from read_jsonl(path, problems)
    else:
        value = read_json_value(path, str(path), problems)
        yield from ((None, record) for record in _listed(value) if isinstance(record, dict))


def _listed(value: Any) -> Iterator[Any]:
    """The records of a list, of a list in an object, of lists by category, or of images with their judgments."""
    if isinstance(value, list):
        yield from value
        return
    for key in _CONTAINERS:
        if isinstance((value or {}).get(key), list):
            yield from value[key]
            return
    for name, entry in (value or {}).items():
        if isinstance(entry, list):
            yield from ({"category": name, **record} for record in entry if isinstance(record, dict))
        elif isinstance(entry, dict) and isinstance(entry.get("human_judgement"), list):
            shared = {"image": name, "references": entry.get("ground_truth")}
            for judgment in filter(_is_object, entry["human_judgement"]):
                yield {**shared, "caption": judgment.get("caption"), "human": judgment.get("rating")}


def _with_references(
    records: Sequence[tuple[int | None, Columns]], path: Path, problems: Problems
) -> Iterator[tuple[int | None, Columns]]:
    """FOIL's pairs of captions with the other captions of their image, from COCO's file in the same folder."""
    beside = next((other for other in sorted(path.parent.glob(_REFERENCES)) if bare_suffix(other) == ".json"), None)
    if beside is None:
        message = "FOIL has no references: put COCO's captions_val2014.json into the same folder"
        raise InputError([Problem(code="NOT_FOUND", message=message, file=str(path))])
    captions: dict[str, list[str]] = {}
    for _, record in _records(beside, problems):
        captions.setdefault(str(record.get("image_id")), []).append(str(record.get("caption")))
    right = {str(record.get("id")): str(record.get("caption")) for _, record in records if record.get("foil") is False}
    for line, record in records:
        text = right.get(str(record.get("id")))
        if record.get("foil") is True and text is not None:
            others = [other for other in captions.get(str(record.get("image_id")), []) if other.strip() != text.strip()]
            image = record.get("image_id")
            yield line, {"image": image, "references": others, "right": text, "wrong": record.get("caption")}


# Records to samples and judgments.


class _Reader:
    def __init__(self, judged: JudgedSet, file: str, problems: Problems) -> None:
        self.judged, self.file, self.problems = judged, file, problems
        self._numbers: dict[tuple[str, str], int] = {}  # image and caption -> sample
        self._ratings: list[list[float]] = []

    def add(self, line: int | None, record: Mapping[str, Any]) -> None:
        """Add one record, or a problem."""
        try:
            self._add(record)
        except _UnusableError as fault:
            self.problems.add(fault.code, str(fault), file=self.file, line=line, value=shorten(fault.value))

    def _add(self, record: Mapping[str, Any]) -> None:
        form = self.judged.form
        image, references = str(_value(record, "image")), _texts(_value(record, "references"), "references")
        if form == "ratings":
            self._rate(image, references, record)
        elif form == "tokens":
            labels = _labels(_value(record, "words"))
            self._sample(image, references, _text(record, "caption"), is_new=True)
            self.judged.wrong_words.append(sum(labels) / len(labels))
        elif form == "foils":
            self._choose(image, references, record, [_text(record, "right"), _text(record, "wrong")], 0)
        else:
            texts = _texts(_value(record, "captions"), "captions")
            if len(texts) != 2:
                raise _UnusableError("LENGTH", f"a pair has two captions. Got {len(texts)} instead.", texts)
            self._choose(image, references, record, texts, _preferred(record))

    def _rate(self, image: str, references: list[str], record: Mapping[str, Any]) -> None:
        """A caption that occurs several times has one rating for each."""
        scores = _numbers(_value(record, "human"))
        number = self._sample(image, references, _text(record, "caption"))
        if number == len(self._ratings):
            self._ratings.append([])
        self._ratings[number] += scores

    def _choose(
        self, image: str, references: list[str], record: Mapping[str, Any], texts: Sequence[str], first: int | None
    ) -> None:
        numbers = [self._sample(image, references, text) for text in texts]
        systems = _systems(record)
        order = (1, 0) if first == 1 else (0, 1)
        named = None if systems is None else (str(systems[order[0]]), str(systems[order[1]]))
        category = str(_value(record, "category") or "")
        better, worse = (numbers[place] for place in order)
        self.judged.choices.append(Choice(better, worse, image, category, named, first is None))

    def _sample(self, image: str, references: list[str], text: str, *, is_new: bool = False) -> int:
        samples = self.judged.samples
        number = len(samples) if is_new else self._numbers.setdefault((image, text), len(samples))
        if number == len(samples):
            samples.append(
                Sample(id=str(number), generated_answer=text, references=references, group=image, metadata={})
            )
        return number

    def finish(self) -> None:
        """Put the ratings into columns, one for each annotator."""
        count = max(map(len, self._ratings), default=0)
        self.judged.human = tuple(_HUMAN.format(place + 1) for place in range(count))
        for number, ratings in enumerate(self._ratings):
            columns = dict(zip(self.judged.human, ratings, strict=False))
            self.judged.samples[number] = msgspec.structs.replace(self.judged.samples[number], metadata=columns)


class _UnusableError(Exception):
    def __init__(self, code: str, message: str, value: object) -> None:
        super().__init__(message)
        self.code, self.value = code, value


def _text(record: Mapping[str, Any], name: str) -> str:
    value = _value(record, name)
    if not isinstance(value, str) or not value.strip():
        raise _UnusableError("TYPE", f"`{FIELDS[name][0]}` must be a caption. Got {shorten(value)} instead.", value)
    return value


def _texts(value: Any, name: str) -> list[str]:
    """A list of texts, which a CSV file has as JSON, or as Python writes it."""
    listed = _parsed(value) if isinstance(value, str) else value
    texts = [listed] if isinstance(listed, str) else listed
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise _UnusableError("TYPE", f"`{name}` must be a list of captions. Got {shorten(value)} instead.", value)
    kept = [text for text in texts if text.strip()]
    if not kept:
        raise _UnusableError("EMPTY_REFERENCE", f"all `{name}` are blank", value)
    return kept


def _parsed(text: str) -> Any:
    from ast import literal_eval

    if not text.lstrip().startswith("["):
        return text
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _numbers(value: Any) -> list[float]:
    if isinstance(value, str):
        value = _parsed(value)
        try:
            value = float(value) if isinstance(value, str) else value
        except ValueError:
            raise _UnusableError("TYPE", f"a rating must be a number. Got {shorten(value)} instead.", value) from None
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(is_number(number) for number in numbers):
        raise _UnusableError("TYPE", f"a rating must be a number. Got {shorten(value)} instead.", value)
    if not all(isfinite(number) for number in numbers):
        raise _UnusableError("NONFINITE", f"a rating is not finite: {shorten(value)}", value)
    return [float(number) for number in numbers]


def _labels(value: Any) -> list[bool]:
    """Whether each word is hallucinated: a list of [word, label], or of labels."""
    listed = _parsed(value) if isinstance(value, str) else value
    listed = listed if isinstance(listed, list) else []
    entries = [entry[-1] if isinstance(entry, list | tuple) and entry else entry for entry in listed]
    if not entries or not all(isinstance(entry, bool) or entry in (0, 1) for entry in entries):
        raise _UnusableError("TYPE", f"`words` must be a list of [word, true or false]. Got {shorten(value)}.", value)
    return [bool(entry) for entry in entries]


def _systems(record: Mapping[str, Any]) -> list[str] | None:
    systems = _value(record, "systems")
    if systems is None:
        return None
    if not isinstance(systems, list) or len({str(name) for name in systems if isinstance(name, str)}) != 2:
        raise _UnusableError("TYPE", f"a battle has two systems. Got {shorten(systems)} instead.", systems)
    return systems


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _preferred(record: Mapping[str, Any]) -> int | None:
    """0 or 1 for the caption that people prefer, None for a tie. A winner may be named by its system."""
    value, systems = _value(record, "preferred"), _systems(record)
    if systems is not None and value in systems:
        return systems.index(value)
    if str(value).strip().lower() in _TIES:
        return None
    if str(value) in ("0", "1", "0.0", "1.0") and not isinstance(value, bool):
        return int(float(value))
    names = "the name of a system, tie" if systems is not None else "0 or 1, the number of the better caption, or tie"
    raise _UnusableError("TYPE", f"the preferred caption must be {names}. Got {shorten(value)} instead.", value)
