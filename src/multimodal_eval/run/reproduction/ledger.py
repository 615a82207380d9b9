"""A ledger: a YAML file with published figures, the answers behind them, and what they were found to be.

docs/reproduce.md has its keys. `Reproduction` has per entry the figures, ours and the published ones, and why they
differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.yaml_text import read_yaml

__all__ = [
    "OUR_LEDGER",
    "OVERALL",
    "UNITS",
    "Cell",
    "Counts",
    "Declared",
    "Entry",
    "Kind",
    "Ledger",
    "Published",
    "Reason",
    "Reproduced",
    "Reproduction",
    "Status",
    "Verdict",
    "read_ledger",
]

Declared = Literal["equal", "within rounding", "explained"]
OVERALL = "overall"
OUR_LEDGER = Path(__file__).parents[2] / "benchmarks" / "ledger.yaml"
UNITS = {"%": 100.0, "percent": 100.0, "fraction": 1.0, "points of 1000": 1000.0}
_DIGITS = 12


class Published(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """A published figure: counts, or a value in a unit, or both."""

    figure: str = OVERALL  # or CATEGORY=VALUE
    correct: float | None = None
    total: Annotated[int, msgspec.Meta(ge=1)] | None = None
    value: float | None = None
    unit: str | None = None  # None: that of the recipe
    digits: Annotated[int, msgspec.Meta(ge=0, le=_DIGITS)] | None = None  # None: those of the value

    @property
    def printed_digits(self) -> int:
        """The digits after the point."""
        if self.digits is not None:
            return self.digits
        text = "" if self.value is None else repr(self.value)
        return min(len(text.partition(".")[2]), _DIGITS) if "e" not in text else _DIGITS


class Entry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """The published figures of a model on a benchmark, and its answers."""

    recipe: str  # a name, or a path relative to the ledger
    answers: str  # a file, relative to the folder of the data
    published: list[Published]
    questions: str | None = None
    model: str | None = None  # None: the answers are those of one model
    columns: dict[str, str | list[str]] = {}  # field -> column; several columns make one field, as in recipes
    rule: str | None = None  # None: that of the recipe's published figures
    source: str | None = None  # where the figures are printed
    declared: Declared = "equal"
    why: str | None = None

    @property
    def title(self) -> str:
        """The benchmark and the model."""
        return f"{self.recipe}, {self.model}" if self.model else self.recipe


class Ledger(msgspec.Struct, frozen=True):
    """The entries of a file."""

    file: Path
    entries: list[Entry]

    def only(self, words: Sequence[str]) -> Ledger:
        """The entries whose recipe or model has one of these names, or fits one of these patterns."""
        if not words:
            return self
        kept = [
            entry
            for entry in self.entries
            if any(fnmatchcase(name, word) for word in words for name in (entry.recipe, entry.model or ""))
        ]
        if not kept:
            known = dict.fromkeys(name for entry in self.entries for name in (entry.recipe, entry.model) if name)
            shown = ", ".join(words)
            raise ConfigError(
                f"{self.file}: no entry has the recipe or the model {shown}.{did_you_mean(words[0], list(known))}"
            )
        return Ledger(self.file, kept)


def read_ledger(file: Path) -> Ledger:
    """The ledger in a file."""
    content = read_yaml(file, "the ledger", unique_keys=True)
    if not isinstance(content, list) or not content:
        raise ConfigError(
            f"{file}: a ledger is a list of entries: `- recipe: NAME`, and below it `answers`, `published` …"
        )
    return Ledger(file, [_entry(file, number, item) for number, item in enumerate(content, 1)])


def _entry(file: Path, number: int, item: object) -> Entry:
    from multimodal_eval.core.setting_words import in_words

    name = f"{item.get('recipe')}, {item.get('model')}" if isinstance(item, dict) else "?"
    where = f"{file}: entry {number} ({name})"
    if not isinstance(item, dict):
        raise ConfigError(f"{file}: entry {number} must have keys: recipe, answers, published …")
    choices = ("equal", "within rounding", "explained")
    if item.get("declared", "equal") not in choices:
        raise ConfigError(
            f"{where}: `declared` must be {', '.join(choices[:2])} or {choices[2]}. Got {item['declared']!r}"
        )
    try:
        entry = msgspec.convert(item, Entry)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {in_words(str(error), item, Entry, {'$.published': Published})}") from None
    if entry.declared == "explained" and not (entry.why or "").strip():
        raise ConfigError(f"{where}: an entry declared explained needs the key `why`: the cause of the difference")
    if not entry.published:
        raise ConfigError(f"{where}: `published` is empty. Name a figure: `- {{figure: {OVERALL}, value: 34.8}}`")
    seen = set()
    for published in entry.published:
        here = f"{where}: `published`, {published.figure}"
        if published.figure != OVERALL and "=" not in published.figure:
            raise ConfigError(f"{here}: `figure` must be {OVERALL}, or CATEGORY=VALUE such as subject=algebra")
        if published.figure in seen:
            raise ConfigError(f"{here}: the figure is named twice. Leave one of them out")
        seen.add(published.figure)
        if published.value is None and (published.correct is None or published.total is None):
            raise ConfigError(f"{here}: give `value`, or `correct` and `total`, or all of them")
        if (published.correct is None) != (published.total is None):
            raise ConfigError(f"{here}: `correct` and `total` belong together. Give both of them, or only `value`")
        if published.unit is not None and published.unit not in UNITS:
            raise ConfigError(f"{here}: `unit` must be one of {', '.join(UNITS)}. Got {published.unit!r}")
    return entry


Status = Literal["equal", "within rounding", "different"]
Kind = Literal[
    "split",
    "model",
    "shifted ids",
    "missing ids",
    "unknown ids",
    "doubled ids",
    "category",
    "gold",
    "rule",
    "reversed verdicts",
    "cut answers",
    "draw",
    "extraction",
    "verdicts",
    "stored score",
    "denominator",
    "labels",
    "average",
    "unit",
    "rounding",
    "printed value",
    "unscored",
]


@dataclass(frozen=True)
class Verdict:
    """A sample with two verdicts: ours, and that of the authors."""

    id: str
    ours: float | None
    authors: float | None


@dataclass(frozen=True)
class Reason:
    """Why a figure differs, or what is unusual in the answers. `ids` are the first of `count`."""

    kind: Kind
    sentence: str
    count: int = 0
    ids: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True)
class Counts:
    """A score with its counts; `correct` is None if it is not a count."""

    correct: float | None
    total: int
    value: float  # in the unit of the published figure


@dataclass(frozen=True)
class Cell:
    """A published figure, ours, and that of the verdicts that the authors stored."""

    published: Published
    unit: str
    ours: Counts | None  # None: no sample belongs to it
    stored: Counts | None
    status: Status
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Reproduced:
    """An entry of a ledger, computed again."""

    entry: Entry
    rule: str
    answers: int
    compared: int  # verdicts of the authors
    equal_verdicts: int
    cells: tuple[Cell, ...]
    notes: tuple[Reason, ...]  # about the answers, whether figures differ or not

    @property
    def status(self) -> Status:
        """That of the worst figure."""
        order: tuple[Status, ...] = ("equal", "within rounding", "different")
        return max((cell.status for cell in self.cells), key=order.index)

    @property
    def holds(self) -> bool:
        """Whether the figures are what the entry declares."""
        if self.entry.declared == "explained":
            return True
        return self.status == "equal" or self.status == self.entry.declared


class Reproduction(Displayed):
    """All entries of a ledger, computed again."""

    def __init__(self, ledger: str, entries: tuple[Reproduced, ...]) -> None:
        self.ledger, self.entries = ledger, entries

    @property
    def broken(self) -> list[Reproduced]:
        """The entries that are not what they declare."""
        return [entry for entry in self.entries if not entry.holds]

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON output."""
        import msgspec

        listed = []
        for each in self.entries:
            content = {**msgspec.to_builtins(each.entry), "declared": each.entry.declared}
            cells = [
                {
                    **asdict(cell),
                    "published": {"figure": cell.published.figure, **msgspec.to_builtins(cell.published)},
                }
                for cell in each.cells
            ]
            content["published"] = cells
            content |= {
                "rule": each.rule,
                "answers_read": each.answers,
                "verdicts_compared": each.compared,
                "verdicts_equal": each.equal_verdicts,
                "status": each.status,
                "holds": each.holds,
                "notes": [asdict(note) for note in each.notes],
            }
            listed.append(content)
        return {"ledger": self.ledger, "entries": listed, "broken": [each.entry.title for each in self.broken]}
