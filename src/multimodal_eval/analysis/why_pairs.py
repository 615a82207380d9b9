"""Two numbers of one benchmark, side by side: which samples are the same, and in what each of them differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Bounds

__all__ = [
    "PARTS",
    "Key",
    "Mask",
    "Pairs",
    "Ruling",
    "Side",
    "Strata",
    "Texts",
    "Vector",
    "causes_of",
    "is_reordered",
    "joined",
    "thinks",
]

# The order of the chain. Each part replaces one ingredient of A by that of B.
PARTS = ("samples", "gold", "prompt", "decoding", "answer", "failure", "reading", "scoring", "aggregation")
Key = tuple[str, ...]  # a part, or several that change the same samples and cannot be told apart
Texts = Sequence[str | None]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]
_THINKING = re.compile(r"(?s)^.*?</think(?:ing)?>\s*")


@dataclass(frozen=True)
class Ruling:
    """How answers become scores: what reads them, what gives credit, and what those without a score count as."""

    reading: Mapping[str, object]
    scoring: Mapping[str, object]
    failure: Mapping[str, object]

    @property
    def reads(self) -> object:
        """What is read: a letter, a box, the normalised text. Only what both read can get the credit of the other."""
        return self.reading.get("reads")


@dataclass(frozen=True)
class Strata:
    """The weights of the values of a column, and the value of each sample. A cluster counts once in its stratum."""

    by: str
    weights: Mapping[str, float]
    of: Sequence[str]


@dataclass(frozen=True)
class Side:
    """A number, and what is known about how it came about. Columns have one entry per sample."""

    name: str
    metric: str
    program: str  # which computed the scores, with its version
    headline: Fraction  # as stated
    scale: int  # 100 if the headline is in percent
    decimals: int | None  # to which the headline is rounded
    average: str
    ids: Sequence[str]
    values: Vector  # in the average: NaN if the sample is left out
    bounds: Bounds
    question: Texts
    choices: Texts
    media: Texts
    gold: Texts
    answer: Texts
    failed: Mask  # no usable answer
    request: Texts | None  # the rendered prompt, or its digest; None if it is unknown
    prompting: Mapping[str, object] | None  # settings of the prompt
    decoding: Mapping[str, object] | None  # parameters of the generation
    is_cut: Mask  # answers that stopped at the limit of tokens
    read: Texts  # what was extracted from the answer, if it is stored
    groups: Texts  # clusters
    rule: Ruling | None
    reproduced: Mask  # samples whose score the rule computes
    explained_by_read: Mask  # samples whose score a rule computes from what the log says was extracted
    keys: Callable[[tuple[str, ...]], Texts]  # the groups of samples by columns
    asked_with: Callable[[Sequence[int], Mapping[str, object]], Texts] | None = None  # digests, with other parameters
    strata: Strata | None = None
    model: str | None = None
    is_fitted: bool = False  # the rule has statistics of all samples
    notes: Sequence[str] = ()  # what is not known, and what would settle it
    settles: Mapping[str, str] = field(default_factory=dict)  # part -> what would settle it

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Pairs:
    """The samples of both sides: those in both first, then those in A only, then those in B only."""

    rows: tuple[Codes, Codes]  # of each side, -1 if the sample is not in it
    ids: Sequence[str]
    both: int
    revised: int  # samples with the same id and another question, choices or media: they count as different ones
    duplicates: tuple[int, int]  # further copies of a sample, by its content
    by: Literal["id", "content"]
    notes: Sequence[str]


def joined(a: Side, b: Side) -> Pairs:
    """Pair the samples by id, or by their questions if the ids name different samples.

    Two programs may write all questions differently. So a column tells samples apart only if it is equal for at least
    half of the pairs.
    """
    by_id = _pairs_by(a.ids, b.ids)
    fields = (("question", a.question, b.question), ("choices", a.choices, b.choices), ("media", a.media, b.media))
    notes: list[str] = []
    revised: set[int] = set()
    unlike = False
    for name, first, second in fields:
        known = [n for n, (i, j) in enumerate(by_id) if first[i] is not None and second[j] is not None]
        different = {n for n in known if first[by_id[n][0]] != second[by_id[n][1]]}
        if different and 2 * len(different) <= len(known):
            revised |= different
        elif different and name == "question":
            unlike = True
    by_content = _pairs_by(_contents(a), _contents(b)) if not by_id or unlike else []
    if unlike and len(by_content) > len(by_id) // 2:
        by_id, revised = by_content, set()
        by: Literal["id", "content"] = "content"
        notes.append("the ids name different samples, so samples are paired by their questions and choices")
    elif unlike:
        _refuse_other_benchmark(a, b, by_id)
        notes.append("samples are paired by id: A and B write all questions differently")
        by = "id"
    elif not by_id and by_content:
        by_id, by = by_content, "content"
        notes.append("no id is in both, so samples are paired by their questions and choices")
    else:
        by = "id"
    kept = [pair for n, pair in enumerate(by_id) if n not in revised]
    if not kept:
        raise ConfigError(
            f"{a.name} and {b.name} have no sample in common, neither by id nor by question: they are not about the "
            f"same benchmark, or about different splits of it. The ids are {_some(a.ids)} and {_some(b.ids)}"
        )
    return _pairs(a, b, kept, len(revised), by, notes)


def _pairs(
    a: Side, b: Side, kept: list[tuple[int, int]], revised: int, by: Literal["id", "content"], notes: list[str]
) -> Pairs:
    first, second = (np.array(rows, np.int64) for rows in zip(*kept, strict=True))
    alone = [np.setdiff1d(np.arange(len(side)), rows) for side, rows in ((a, first), (b, second))]
    nothing = [np.full(len(rows), -1, np.int64) for rows in alone]
    rows_a, rows_b = np.concatenate([first, alone[0], nothing[1]]), np.concatenate([second, nothing[0], alone[1]])
    ids = [a.ids[i] if i >= 0 else b.ids[j] for i, j in zip(rows_a.tolist(), rows_b.tolist(), strict=True)]
    duplicates = _copies(a, alone[0]), _copies(b, alone[1])
    return Pairs((rows_a, rows_b), ids, len(kept), revised, duplicates, by, notes)


def _pairs_by(first: Texts, second: Texts) -> list[tuple[int, int]]:
    """The places of equal texts, each used once, in the order of the first."""
    places: dict[str, list[int]] = {}
    for place, text in enumerate(second):
        if text is not None:
            places.setdefault(text, []).append(place)
    for listed in places.values():
        listed.reverse()
    return [(place, places[text].pop()) for place, text in enumerate(first) if text is not None and places.get(text)]


def _contents(side: Side) -> list[str | None]:
    listed = zip(side.question, side.choices, strict=True)
    return [None if question is None else f"{question}\0{choices or ''}" for question, choices in listed]


def _copies(side: Side, rows: Codes) -> int:
    """How many of the rows are further copies of another sample of the side."""
    contents = _contents(side)
    media = side.media
    counts = Counter((content, media[n]) for n, content in enumerate(contents) if content is not None)
    return sum(contents[n] is not None and counts[contents[n], media[n]] > 1 for n in rows.tolist())


def _refuse_other_benchmark(a: Side, b: Side, pairs: list[tuple[int, int]]) -> None:
    """Equal ids with other questions and other gold answers are not the same samples."""
    known = [(a.gold[i], b.gold[j]) for i, j in pairs if a.gold[i] is not None and b.gold[j] is not None]
    if known and 2 * sum(first == second for first, second in known) < len(known):
        raise ConfigError(
            f"{a.name} and {b.name} are not about the same benchmark: of {len(pairs):,} samples with the same id, most "
            "have other questions and other gold answers"
        )


def _some(ids: Sequence[str]) -> str:
    return f"{', '.join(ids[:3])}{', …' if len(ids) > 3 else ''}"


# Why an answer is another one


def causes_of(a: Side, b: Side, pairs: Pairs) -> tuple[list[Key], Codes, Mask, Mask]:
    """The parts to which other answers belong: the keys, the key of each pair (-1: the same answer), what is unknown.

    The last of the results says which pairs may have different requests.

    A pair whose prompt and parameters are both different belongs to both. If no pair has the same prompt and the same
    parameters, nothing tells how often a second answer is another one, unless both are generated at temperature 0.
    """
    rows_a, rows_b = (rows[: pairs.both] for rows in pairs.rows)
    same_decoding = _same_settings(a.decoding, b.decoding)
    prompts = _prompts(a, b, rows_a, rows_b, same_decoding)
    is_noisy = not (True in prompts and same_decoding is True) and not _is_deterministic(a, b)
    keys: dict[Key, int] = {}
    codes, unknown = np.full(pairs.both, -1, np.int64), np.zeros(pairs.both, np.bool_)
    for n, (i, j) in enumerate(zip(rows_a.tolist(), rows_b.tolist(), strict=True)):
        moves_letters = is_reordered(a.choices[i], b.choices[j])  # so that a letter is another answer
        if (a.answer[i] == b.answer[j] and not moves_letters) or a.failed[i] or b.failed[j]:
            continue
        prompt, decoding = False if moves_letters else prompts[n], same_decoding
        if decoding is not False and (a.is_cut[i] != b.is_cut[j] or thinks(a.answer[i]) != thinks(b.answer[j])):
            same_text = _without_thinking(a.answer[i]) == _without_thinking(b.answer[j])
            decoding = False if same_text or a.is_cut[i] != b.is_cut[j] else decoding
            prompt = True if same_text else prompt
        key = (*(("prompt",) if prompt is not True else ()), *(("decoding",) if decoding is not True else ()))
        if (prompt is not False and decoding is not False) or is_noisy:
            key = (*key, "answer")  # a second answer to the same request could be another one, too
        unknown[n] = prompt is None or decoding is None
        codes[n] = keys.setdefault(key, len(keys))
    asked_other = np.array([prompt is not True or same_decoding is not True for prompt in prompts], np.bool_)
    return list(keys), codes, unknown, asked_other


def _prompts(a: Side, b: Side, rows_a: Codes, rows_b: Codes, same_decoding: bool | None) -> list[bool | None]:
    """Whether the prompts of each pair are the same; None if it is not known."""
    same = _same_settings(a.prompting, b.prompting)
    if same is False:
        return [False] * len(rows_a)
    if a.request is None or b.request is None:
        return [same] * len(rows_a)
    equal: list[bool | None] = []
    as_a = _with_parameters_of(a, b, rows_a, rows_b) if same_decoding is False else {}
    for i, j in zip(rows_a.tolist(), rows_b.tolist(), strict=True):
        first, second = a.request[i], b.request[j]
        if first is None or second is None:
            equal.append(same)
        elif first.startswith("digest:") != second.startswith("digest:"):
            equal.append(None)
        elif first.startswith("digest:"):  # of the prompt and the parameters
            equal.append(first == second or (as_a.get(j, first) == first if same_decoding is False else False))
        else:
            equal.append(first == second)
    return equal


def is_reordered(first: str | None, second: str | None) -> bool:
    """Whether the same choices have another order."""
    if first is None or second is None or first == second:
        return False
    return sorted(first.split("\n")) == sorted(second.split("\n"))


def _is_deterministic(a: Side, b: Side) -> bool:
    return all(side.decoding is not None and side.decoding.get("temperature") == 0 for side in (a, b))


def _with_parameters_of(a: Side, b: Side, rows_a: Codes, rows_b: Codes) -> dict[int, str | None]:
    """The digests of B's requests with A's parameters, which are those of A if the prompts are the same."""
    if b.asked_with is None or a.request is None or b.request is None or a.decoding is None:
        return {}
    pairs = zip(rows_a.tolist(), rows_b.tolist(), strict=True)
    rows = [j for i, j in pairs if a.request[i] != b.request[j] and b.request[j] is not None]
    return dict(zip(rows, b.asked_with(rows, a.decoding), strict=True))


def _same_settings(first: Mapping[str, object] | None, second: Mapping[str, object] | None) -> bool | None:
    return None if first is None or second is None else dict(first) == dict(second)


def thinks(answer: str | None) -> bool:
    """Whether the answer starts with what the model thinks."""
    return answer is not None and "</think" in answer and _THINKING.match(answer) is not None


def _without_thinking(answer: str | None) -> str | None:
    return None if answer is None else _THINKING.sub("", answer, count=1).strip()
