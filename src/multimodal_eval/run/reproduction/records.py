"""What was found: per entry of a ledger the figures, ours and the published ones, and why they differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from multimodal_eval.core.display import Displayed
from multimodal_eval.run.reproduction.ledger import Entry, Published

__all__ = ["Cell", "Counts", "Kind", "Reason", "Reproduced", "Reproduction", "Status", "Verdict"]

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
